// The box of a form that takes one file: chosen, dropped anywhere on the page or pasted, and taken away again.
import {fileSize} from "./dom.js";

/** The file that a paste brings, unless there is text beside it and a field to put it in. */
function pastedFile(event) {
  const file = event.clipboardData?.files[0] ?? null;
  const typing = event.target instanceof Element && event.target.closest("input:not([type=file]), textarea, dialog");
  return typing && (!file || event.clipboardData.types.includes("text/plain")) ? null : file;
}

export class FileDrop {
  #file = null;

  /**
   * box: has an input of files and [data-target], [data-chosen], [data-name], [data-size], [data-remove] in it.
   * isOpen(): whether files are taken now. onFile(File or null): another file is there. pastes: also by paste.
   */
  constructor(box, {isOpen, onFile, pastes = false}) {
    Object.assign(this, {box, isOpen, onFile});
    this.input = box.querySelector("[type=file]");
    this.input.addEventListener("change", () => this.input.files[0] && this.set(this.input.files[0]));
    this.#part("remove").addEventListener("click", () => {
      this.set(null);
      this.input.focus();
    });
    this.#takeDrops();
    if (pastes) window.addEventListener("paste", (event) => this.#paste(event));
  }

  get file() { return this.#file; }

  set(file) {
    this.#file = file;
    this.input.value = "";  // so that the same file can be chosen again
    this.#part("chosen").hidden = !file;
    this.#part("target").hidden = Boolean(file);
    if (file) {
      this.#part("name").textContent = file.name;
      this.#part("size").textContent = fileSize(file.size);
    }
    this.onFile(file);
  }

  /** Something else has the box for a while, until set(). */
  giveWay() {
    this.#part("target").hidden = true;
    this.#part("chosen").hidden = true;
  }

  /** The box is back, with the file that it had. */
  takeBack() {
    this.#part("target").hidden = Boolean(this.#file);
    this.#part("chosen").hidden = !this.#file;
  }

  #part(name) { return this.box.querySelector(`[data-${name}]`); }

  #takeDrops() {
    const carriesFiles = (event) => this.isOpen() && event.dataTransfer?.types.includes("Files");
    window.addEventListener("dragover", (event) => {
      event.preventDefault();  // else the browser leaves the page for the file
      this.box.classList.toggle("over", carriesFiles(event));
    });
    window.addEventListener("dragleave", (event) => event.relatedTarget || this.box.classList.remove("over"));
    window.addEventListener("drop", (event) => {
      event.preventDefault();
      this.box.classList.remove("over");
      const file = event.dataTransfer?.files[0];
      if (file && this.isOpen()) this.set(file);
    });
  }

  #paste(event) {
    const file = this.isOpen() ? pastedFile(event) : null;
    if (!file) return;
    event.preventDefault();
    this.set(file);
  }
}
