// What an answer says of a picture besides its text: the picture with the regions that were found, a list of them
// beside it, and what has no place in the picture as JSON.
//
// For the keyboard the list is one stop (roving tabindex). A name that is pressed is shown alone in the picture.
import {byId, element} from "./dom.js";
import {boundsOf, huesOf} from "./regions.js";

const kNumHues = 6;      // .hue-0 to .hue-5 of pictures.css
const kMostNames = 12;   // with more regions the picture has their numbers alone
const kTagLetters = 24;
const kTagPixels = 12;   // on the screen, whatever the scale

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function shortened(text) {
  const letters = [...text];
  return letters.length > kTagLetters ? `${letters.slice(0, kTagLetters - 1).join("")}\u2026` : text;
}

const outlineOf = (shape) => shape.map(([x, y]) => `${x},${y}`).join(" ");

export class PictureAnswer {
  #size = null;     // {width, height} of the picture as it was sent
  #regions = [];    // {group, tag, button, bounds}
  #pressed = -1;

  constructor() {
    this.found = byId("found");
    this.image = byId("found-picture");
    this.drawing = byId("found-regions");
    this.list = byId("found-list");
    this.block = byId("structured");
    this.json = byId("structured-json");
    this.image.addEventListener("load", () => this.#layOut());
    new ResizeObserver(() => this.#layOut()).observe(this.image);
    this.list.addEventListener("click", (event) => this.#press(this.#indexOf(event)));
    this.list.addEventListener("pointerover", (event) => this.#mark(this.#indexOf(event)));
    this.list.addEventListener("pointerleave", () => this.#mark(-1));
    this.list.addEventListener("keydown", (event) => this.#onKey(event));
  }

  clear() {
    this.found.hidden = true;
    this.block.hidden = true;
    this.image.removeAttribute("src");
    this.drawing.replaceChildren();
    this.list.replaceChildren();
    this.json.textContent = "";
    this.#size = null;
    this.#regions = [];
    this.#pressed = -1;
    this.#mark(-1);
  }

  /** rest: as splitStructured() gives it. */
  showJson(rest) {
    this.json.textContent = JSON.stringify(rest, null, 2);
    this.block.hidden = false;
  }

  /** regions: as splitStructured() gives them; size: one of an answer's `images`; undefined: as the browser has it. */
  showRegions(regions, address, size) {
    this.#size = size ?? null;
    const hues = huesOf(regions, kNumHues);
    const hasNames = regions.length <= kMostNames;
    this.#regions = regions.map((region, index) => this.#make(region, index, hues[index], hasNames));
    // What is large is drawn first, so that it hides nothing.
    const area = ({bounds: [left, top, right, bottom]}) => (right - left) * (bottom - top);
    const ordered = [...this.#regions].sort((a, b) => area(b) - area(a));
    this.drawing.replaceChildren(...ordered.map(({group}) => group), ...ordered.map(({tag}) => tag));
    this.list.replaceChildren(...this.#regions.map(({item}) => item));
    byId("found-none").hidden = regions.length > 0;
    if (this.#regions.length > 0) this.#regions[0].button.tabIndex = 0;
    this.found.hidden = false;
    this.image.src = address;
  }

  #make(region, index, hue, hasName) {
    const bounds = boundsOf(region);
    const number = String(index + 1);
    const outlines = ["under", "line"].flatMap((part) =>
      region.shapes.map((shape) => svg("polygon", {class: part, points: outlineOf(shape)})));
    const group = svg("g", {class: `region ${region.kind} hue-${hue}`}, ...outlines);
    const words = hasName && region.label ? `${number} ${shortened(region.label)}` : number;
    const tag = svg("g", {class: `tag hue-${hue}`}, svg("rect"), svg("text", {}, words));
    const button = element("button", {type: "button", className: "region-name", tabIndex: -1},
        element("span", {className: `number hue-${hue}`}, number),
        element("span", {dir: "auto"}, region.label || "(no name)"));
    button.setAttribute("aria-pressed", "false");
    button.dataset.region = index;
    const [left, top, right, bottom] = bounds.map((value) => Math.round(value));
    const place = element("span", {className: "hint"}, `${left}, ${top} to ${right}, ${bottom}`);
    const item = element("li", {}, button, place);
    return {group, tag, button, item, bounds};
  }

  // Names are as large on the screen as any text, so their size in the picture's pixels depends on its scale.
  #layOut() {
    if (this.found.hidden || !this.image.naturalWidth) return;
    const {width, height} = this.#size ?? {width: this.image.naturalWidth, height: this.image.naturalHeight};
    this.drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const unit = 1 / Math.min(this.image.clientWidth / width, this.image.clientHeight / height);
    if (!Number.isFinite(unit)) return;
    this.drawing.setAttribute("font-size", kTagPixels * unit);
    for (const {tag, bounds: [left, top]} of this.#regions) {
      const [box, text] = tag.children;
      const [tagWidth, tagHeight] = [text.getComputedTextLength() + 8 * unit, (kTagPixels + 6) * unit];
      const x = Math.max(0, Math.min(left, width - tagWidth));
      const y = Math.max(0, Math.min(top - tagHeight, height - tagHeight));
      for (const [name, value] of Object.entries({x, y, width: tagWidth, height: tagHeight, rx: 3 * unit})) {
        box.setAttribute(name, value);
      }
      text.setAttribute("x", x + 4 * unit);
      text.setAttribute("y", y + (kTagPixels + 1.5) * unit);
    }
  }

  #indexOf(event) {
    const button = event.target.closest("li")?.querySelector("[data-region]");
    return button ? Number(button.dataset.region) : -1;
  }

  /** Shows one region alone while it is pointed at; -1: the pressed one, or all. */
  #mark(index) {
    const shown = index >= 0 ? index : this.#pressed;
    this.drawing.classList.toggle("one", shown >= 0);
    this.#regions.forEach(({group, tag}, at) => {
      for (const each of [group, tag]) each.classList.toggle("now", at === shown);
    });
  }

  #press(index) {
    if (index < 0) return;
    this.#pressed = this.#pressed === index ? -1 : index;
    this.#regions.forEach(({button}, at) => button.setAttribute("aria-pressed", String(at === this.#pressed)));
    this.#giveStop(index);
    this.#mark(-1);
  }

  #giveStop(index) {
    this.#regions.forEach(({button}, at) => { button.tabIndex = at === index ? 0 : -1; });
  }

  #onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const at = this.#indexOf(event);
    const steps = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: this.#regions.length - 1};
    const next = this.#regions[steps[event.key]];
    if (!next) return;
    event.preventDefault();
    this.#giveStop(steps[event.key]);
    next.button.focus();
  }
}
