// Prometheus' text format, and the four numbers that the page shows. No DOM.

const kSample = /^([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*$/;
const kLabel = /([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"/g;
const kPrefix = "transept:";

function number(text) {
  if (/^[+]?Inf$/i.test(text)) return Infinity;
  if (/^-Inf$/i.test(text)) return -Infinity;
  return Number(text);  // "NaN" is NaN, and so is what is no number at all
}

function labels(text) {
  const found = {};
  for (const [, name, value] of (text ?? "").matchAll(kLabel)) {
    found[name] = value.replace(/\\(.)/g, (_, char) => (char === "n" ? "\n" : char));
  }
  return found;
}

/** name -> [{labels, value}]. Lines that are no samples are passed over. */
export function parseMetrics(text) {
  const families = new Map();
  for (const line of text.split("\n")) {
    if (line.startsWith("#")) continue;
    const match = kSample.exec(line);
    if (!match) continue;
    const [, name, labelText, value] = match;
    if (!families.has(name)) families.set(name, []);
    families.get(name).push({labels: labels(labelText), value: number(value)});
  }
  return families;
}

function combined(families, name, combine) {
  const values = (families.get(kPrefix + name) ?? []).map((sample) => sample.value).filter(Number.isFinite);
  return values.length > 0 ? values.reduce(combine) : null;
}

const sum = (a, b) => a + b;

/** Numbers of one reading; null for what the server does not tell. Several served models add up. */
export function readGauges(families) {
  return {
    running: combined(families, "num_requests_running", sum),
    waiting: combined(families, "num_requests_waiting", sum),
    cacheUse: combined(families, "kv_cache_usage_perc", Math.max),
    tokens: combined(families, "generation_tokens_total", sum),
  };
}

/** Tokens a second from a counter that grows. Over a few readings, or it would flicker. */
export class Rate {
  #readings = [];

  constructor(maxReadings = 3) {
    this.maxReadings = maxReadings;
  }

  /** The rate up to now, null before the second reading. A counter that went back belongs to a restarted server. */
  add(total, seconds) {
    const last = this.#readings.at(-1);
    if (total === null || (last && (total < last.total || seconds <= last.seconds))) this.#readings = [];
    if (total === null) return null;
    this.#readings.push({total, seconds});
    if (this.#readings.length > this.maxReadings) this.#readings.shift();
    if (this.#readings.length < 2) return null;
    const first = this.#readings[0];
    return (total - first.total) / (seconds - first.seconds);
  }

  /** After a pause the next reading begins anew. */
  reset() { this.#readings = []; }
}
