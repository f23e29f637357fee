// What is said, turn by turn: confirmed words plain, what is still open grey. Screen readers hear the former alone.
import {clockTime, element} from "./dom.js";

export class LiveTurns {
  #turns = new Map();

  constructor(root) {
    this.root = root;
  }

  clear() {
    this.#turns.clear();
    this.root.replaceChildren();
    this.root.hidden = true;
  }

  add(item, ms) {
    this.root.hidden = false;
    const told = element("span", {className: "told"});
    const open = element("span", {className: "open"});
    open.setAttribute("aria-hidden", "true");
    const time = element("span", {className: "time"}, clockTime(ms / 1000));
    time.setAttribute("aria-hidden", "true");
    const line = element("p", {className: "turn"}, time, element("span", {}, told, open));
    this.root.append(line);
    this.#turns.set(item, {line, told, open, start: ms / 1000, end: null});
  }

  tell(item, text) {
    const turn = this.#turns.get(item);
    if (!turn) return;
    turn.told.append(text);
    turn.open.textContent = "";
    this.#follow();
  }

  open(item, text) {
    const turn = this.#turns.get(item);
    if (turn) turn.open.textContent = text;
    this.#follow();
  }

  /** text null: it failed, for this reason; what was told stays. */
  end(item, {text, endMs, error}) {
    const turn = this.#turns.get(item);
    if (!turn) return;
    turn.end = endMs / 1000;
    turn.open.textContent = "";
    if (text !== null && text !== turn.told.textContent) turn.told.textContent = text;
    if (text === null) turn.line.append(element("span", {className: "failed"}, ` (${error})`));
    if (!turn.told.textContent && text !== null) this.drop(item);
  }

  drop(item) {
    this.#turns.get(item)?.line.remove();
    this.#turns.delete(item);
  }

  /** As segments of verbose_json; those that did not end, as far as they were told. */
  segments() {
    const told = [...this.#turns.values()].filter((turn) => turn.told.textContent);
    return told.map(({told: {textContent: text}, start, end}, id) => ({id, start, end: Math.max(end ?? start, start), text}));
  }

  // The newest words stay in view, unless somebody has scrolled up to read.
  #follow() {
    const {scrollHeight, scrollTop, clientHeight} = this.root;
    if (scrollHeight - scrollTop - clientHeight < 80) this.root.scrollTop = scrollHeight;
  }
}
