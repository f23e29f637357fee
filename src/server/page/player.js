// The audio that was given, to be heard beside its text.

export class Player {
  #address = null;

  constructor(box, audio, note) {
    Object.assign(this, {box, audio, note, playable: true});
    audio.addEventListener("error", () => this.#setPlayable(false));
    audio.addEventListener("loadedmetadata", () => this.#findDuration());
  }

  /** file: a File, or null for none. */
  load(file) {
    this.audio.pause();
    if (this.#address) URL.revokeObjectURL(this.#address);
    this.#address = file ? URL.createObjectURL(file) : null;
    this.#setPlayable(true);
    this.box.hidden = !file;
    if (file) this.audio.src = this.#address;
    else this.audio.removeAttribute("src");
    this.audio.load();
  }

  // A recording's header does not say how long it is; the browser learns it by going to the end.
  #findDuration() {
    if (this.audio.duration !== Infinity) return;
    this.audio.addEventListener("durationchange", () => { this.audio.currentTime = 0; }, {once: true});
    this.audio.currentTime = 1e7;
  }

  #setPlayable(playable) {
    if (!playable && !this.#address) return;  // an empty player reports an error, too
    this.playable = playable;
    this.audio.hidden = !playable;
    this.note.hidden = playable;
  }
}
