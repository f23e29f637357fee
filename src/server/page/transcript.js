// The text of a result, growing while it streams: as it is, or in segments whose words play the audio.
//
// For the keyboard the words are one stop, as are the times at the left (roving tabindex). Only the word that has the
// stop is a button to a screen reader, so that the text is read as text and not as hundreds of buttons.
import {clockTime, element, spokenTime} from "./dom.js";
import {indexAt, piecesOf} from "./words.js";

export class Transcript {
  #live = null;     // the Text node that grows
  #list = null;     // the list of segments that grows
  #spots = [];      // {node, start, row} of every word, in order
  #times = [];      // the buttons at the left
  #currentSpot = 0;
  #playingIndex = -1;
  #frame = 0;

  constructor(root, audio, hint) {
    Object.assign(this, {root, audio, hint});
    root.addEventListener("click", (event) => this.#onClick(event));
    root.addEventListener("keydown", (event) => this.#onKey(event));
    audio.addEventListener("play", () => this.#follow());
    audio.addEventListener("seeked", () => this.#mark());
    audio.addEventListener("pause", () => cancelAnimationFrame(this.#frame));
  }

  clear() {
    cancelAnimationFrame(this.#frame);
    this.root.replaceChildren();
    this.root.removeAttribute("lang");
    this.root.removeAttribute("tabindex");
    this.hint.hidden = true;
    this.#live = null;
    this.#list = null;
    this.#spots = [];
    this.#times = [];
    this.#currentSpot = 0;
    this.#playingIndex = -1;
  }

  append(text) {
    if (!this.#live) {
      this.#live = document.createTextNode("");
      this.root.replaceChildren(element("p", {className: "plain growing"}, this.#live));
    }
    this.#grow(() => this.#live.appendData(text));
  }

  #grow(add) {
    const {root} = this;
    const atEnd = root.scrollTop + root.clientHeight > root.scrollHeight - 40;
    add();
    if (atEnd) root.scrollTop = root.scrollHeight;  // who scrolled up to read is left there
  }

  /** What stands there when the stream was cut off. */
  settle() { this.root.querySelector(".growing")?.classList.remove("growing"); }

  showText(text) {
    this.clear();
    this.root.append(element("p", {className: "plain"}, text));
    // Nothing in it takes the focus, so it has to be the box that keys scroll.
    if (this.root.scrollHeight > this.root.clientHeight) this.root.tabIndex = 0;
  }

  /** A segment of verbose_json with its `words`, which may be none. playable: the browser can play the audio. */
  addSegment(segment, playable) {
    if (!this.#list) {
      this.#list = element("ol", {className: "segments"});
      this.root.replaceChildren(this.#list);
      this.hint.hidden = !playable;
      this.root.classList.toggle("playable", playable);
    }
    this.#grow(() => this.#list.append(this.#row(segment, this.#times.length)));
    if (this.#times.length > 1) return;
    this.#times[0].tabIndex = 0;
    this.#giveStop(0);
  }

  #row(segment, row) {
    const time = element("button", {type: "button", className: "time", tabIndex: -1}, clockTime(segment.start));
    time.setAttribute("aria-label", `Play from ${spokenTime(segment.start)}`);
    time.dataset.start = segment.start;
    this.#times.push(time);
    const text = element("p", {dir: "auto"});
    // Without times of words the segment is played as a whole.
    const words = segment.words.length > 0 ? piecesOf(segment.text.trim(), segment.words) : [];
    const pieces = words.some((piece) => piece.word) ? words : [{text: segment.text.trim(), word: segment}];
    for (const piece of pieces) {
      if (!piece.word) {
        text.append(piece.text);
        continue;
      }
      const node = element("span", {className: "word"}, piece.text);
      node.dataset.spot = this.#spots.length;
      this.#spots.push({node, start: piece.word.start, row});
      text.append(node);
    }
    return element("li", {className: "segment"}, time, text);
  }

  #giveStop(index) {
    const old = this.#spots[this.#currentSpot]?.node;
    old?.removeAttribute("tabindex");
    old?.removeAttribute("role");
    this.#currentSpot = index;
    const node = this.#spots[index]?.node;
    if (!node) return;
    node.tabIndex = 0;
    node.setAttribute("role", "button");
  }

  #playFrom(start) {
    this.audio.currentTime = start;
    this.audio.play().catch(() => {});  // the player's note already says that it cannot
  }

  #onClick(event) {
    if (!String(window.getSelection())) {  // a click that ends a selection is for copying
      const time = event.target.closest(".time");
      const word = event.target.closest(".word");
      if (word) {
        this.#giveStop(Number(word.dataset.spot));
        word.focus({preventScroll: true});
        this.#playFrom(this.#spots[this.#currentSpot].start);
      }
      if (time) this.#playFrom(Number(time.dataset.start));
    }
  }

  #onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Escape") {
      this.audio.pause();
      return;
    }
    const onTime = event.target.classList.contains("time");
    const goal = onTime ? this.#timeGoal(event) : this.#wordGoal(event);
    if (goal === null) return;
    event.preventDefault();
    goal();
  }

  #timeGoal({key, target}) {
    const at = this.#times.indexOf(target);
    const steps = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: this.#times.length - 1};
    const next = this.#times[steps[key]];
    if (!next) return null;
    return () => {
      target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    };
  }

  #wordGoal({key, target}) {
    if (!target.classList.contains("word")) return null;
    const at = this.#currentSpot;
    if (key === "Enter" || key === " ") return () => this.#playFrom(this.#spots[at].start);
    const rowStart = (row) => this.#spots.findIndex((spot) => spot.row === row);
    const steps = {
      ArrowRight: () => at + 1, ArrowLeft: () => at - 1, Home: () => 0, End: () => this.#spots.length - 1,
      ArrowDown: () => rowStart(this.#spots[at].row + 1), ArrowUp: () => rowStart(this.#spots[at].row - 1),
    };
    const next = steps[key]?.();
    if (next === undefined) return null;
    return () => {
      if (!this.#spots[next]) return;
      this.#giveStop(next);
      this.#spots[next].node.focus();
    };
  }

  #follow() {
    cancelAnimationFrame(this.#frame);
    const look = () => {
      this.#mark();
      this.#frame = requestAnimationFrame(look);
    };
    look();
  }

  #mark() {
    const index = indexAt(this.#spots, this.audio.currentTime + 0.01);
    if (index === this.#playingIndex) return;
    this.#spots[this.#playingIndex]?.node.classList.remove("now");
    this.#playingIndex = index;
    const node = this.#spots[index]?.node;
    node?.classList.add("now");
    if (node && !this.audio.paused) this.#keepInSight(node);
  }

  // Scrolls the text and never the page: who reads on elsewhere is left alone.
  #keepInSight(node) {
    const box = this.root.getBoundingClientRect();
    const place = node.getBoundingClientRect();
    if (this.root.scrollHeight <= this.root.clientHeight) return;
    if (place.top < box.top || place.bottom > box.bottom - 40) {
      const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
      const top = this.root.scrollTop + place.top - box.top - box.height / 3;
      this.root.scrollTo({top, behavior: calm ? "auto" : "smooth"});
    }
  }
}
