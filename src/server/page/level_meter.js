// The last seconds of a recording's loudness, as bars in a canvas. Decoration: the timer beside it says that it runs.

const kBarWidth = 3;
const kGap = 2;

export class LevelMeter {
  #levels = [];
  #loudest = 0;
  #ticks = 0;

  constructor(canvas) {
    this.canvas = canvas;
  }

  clear() {
    this.#levels = [];
    this.#draw();
  }

  /** A bar for every few calls: the loudest of them. */
  add(level) {
    this.#loudest = Math.max(this.#loudest, level);
    if (++this.#ticks % 4 !== 0) return;
    this.#levels.push(this.#loudest);
    this.#loudest = 0;
    this.#draw();
  }

  #draw() {
    const {canvas} = this;
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(canvas.clientWidth * scale);
    canvas.height = Math.round(canvas.clientHeight * scale);
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    context.fillStyle = getComputedStyle(canvas).color;
    const numBars = Math.floor(canvas.clientWidth / (kBarWidth + kGap));
    this.#levels = this.#levels.slice(-numBars);
    this.#levels.forEach((level, index) => {
      const height = Math.max(2, level * canvas.clientHeight);
      const x = canvas.clientWidth - (this.#levels.length - index) * (kBarWidth + kGap);
      context.fillRect(x, (canvas.clientHeight - height) / 2, kBarWidth, height);
    });
  }
}
