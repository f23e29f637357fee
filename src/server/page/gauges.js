// The server's load, read from /metrics once a second while the page is seen.
import {parseMetrics, Rate, readGauges} from "./metrics.js";

const kPeriodMs = 1000;
const kNumPoints = 60;
const kWidth = 120;
const kHeight = 28;

const kFormats = {
  running: (value) => String(value),
  waiting: (value) => String(value),
  cacheUse: (value) => `${(100 * value).toFixed(value < 0.1 && value > 0 ? 1 : 0)}\u202f%`,
  tokensPerSecond: (value) => (value < 10 && value > 0 ? value.toFixed(1) : Math.round(value).toLocaleString("en")),
};

// The lowest value that fills a line's height: without it one request would look like a storm.
const kCeilings = {running: 4, waiting: 4, cacheUse: 1, tokensPerSecond: 20};

class Gauge {
  #history = [];

  constructor(element, name) {
    this.name = name;
    this.value = element.querySelector("[data-value]");
    this.line = element.querySelector("polyline");
  }

  show(value) {
    this.value.textContent = value === null ? "\u2013" : kFormats[this.name](value);
    this.#history.push(value ?? 0);
    if (this.#history.length > kNumPoints) this.#history.shift();
    const ceiling = Math.max(kCeilings[this.name], ...this.#history);
    const first = kNumPoints - this.#history.length;
    const points = this.#history.map((sample, index) => {
      const x = (first + index) * kWidth / (kNumPoints - 1);
      const y = kHeight - 1.5 - sample / ceiling * (kHeight - 3);
      return `${x.toFixed(1)},${y.toFixed(1)}`;
    });
    this.line.setAttribute("points", points.join(" "));
  }
}

export class Gauges {
  #timer = 0;
  #rate = new Rate();
  #reading = false;

  /** root holds an element [data-gauge=NAME] for each gauge; note says why there is nothing to show. */
  constructor(root, note, api) {
    this.note = note;
    this.api = api;
    this.gauges = [...root.querySelectorAll("[data-gauge]")].map((item) => new Gauge(item, item.dataset.gauge));
  }

  start() {
    document.addEventListener("visibilitychange", () => this.#follow());
    this.#follow();
  }

  #follow() {
    clearInterval(this.#timer);
    if (document.hidden) return;
    this.#rate.reset();
    this.#timer = setInterval(() => this.#read(), kPeriodMs);
    this.#read();
  }

  async #read() {
    if (this.#reading) return;  // a slow answer: no queue of questions behind it
    this.#reading = true;
    try {
      const {tokens, ...values} = readGauges(parseMetrics(await this.api.metrics()));
      this.#show({...values, tokensPerSecond: this.#rate.add(tokens, performance.now() / 1000)});
      this.note.textContent = "";
    } catch (error) {
      this.#rate.reset();
      this.#show({});
      this.note.textContent = error.status === 401 || error.status === 403
          ? "The load is shown to those with a key." : "The server does not answer.";
    } finally {
      this.#reading = false;
    }
  }

  #show(values) {
    for (const gauge of this.gauges) gauge.show(values[gauge.name] ?? null);
  }
}
