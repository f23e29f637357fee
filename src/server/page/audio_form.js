// Audio to be transcribed: a file that is chosen, dropped or recorded, and what is wanted of it.
import {byId, clockTime, FieldErrors, fileSize, fillSelect} from "./dom.js";
import {languageChoices} from "./languages.js";
import {LevelMeter} from "./level_meter.js";
import {Recorder} from "./recorder.js";

export class AudioForm {
  #file = null;

  /** onFile(File or null): another file is there. */
  constructor(onFile) {
    this.onFile = onFile;
    this.form = byId("audio-form");
    this.errors = new FieldErrors(this.form);
    this.meter = new LevelMeter(byId("level"));
    this.recorder = new Recorder({
      onLevel: (level, seconds) => this.#showLevel(level, seconds), onEnd: (file) => this.#endRecording(file),
    });
    this.#takeFiles();
    byId("record").addEventListener("click", () => this.#toggleRecording());
    this.form.addEventListener("change", (event) => event.target.name === "task" && this.#nameTask());
  }

  get file() { return this.#file; }

  /** model: the `transept` member of the server's model, or {}. */
  adapt(model) {
    this.times = model.has_word_timestamps !== false ? "word" : model.has_timestamps !== false ? "segment" : "none";
    this.hasSubtitles = model.has_timestamps !== false;
    byId("times-field").hidden = this.times === "none";
    byId("times-label").textContent = this.times === "segment" ? "Times" : "Word times";
    this.codes = model.languages ?? [];
    fillSelect(byId("language"), languageChoices(this.codes), "Detect");
    // A model of one language has nothing to choose, and nothing to translate from.
    byId("language-field").hidden = this.codes.length < 2;
    byId("task").hidden = this.codes.length === 1;
  }

  options() {
    const language = byId("language").value;
    return {
      translate: this.form.elements.task.value === "translate",
      language,
      prompt: byId("audio-prompt").value.trim(),
      temperature: byId("audio-temperature").value.trim(),
      times: byId("times").checked ? this.times : "none",
    };
  }

  #takeFiles() {
    const input = byId("file");
    input.addEventListener("change", () => input.files[0] && this.#setFile(input.files[0]));
    byId("remove").addEventListener("click", () => {
      this.#setFile(null);
      input.focus();
    });
    const drop = byId("drop");
    const carriesFiles = (event) => !this.form.hidden && event.dataTransfer?.types.includes("Files");
    window.addEventListener("dragover", (event) => {
      event.preventDefault();  // else the browser leaves the page for the file
      drop.classList.toggle("over", carriesFiles(event));
    });
    window.addEventListener("dragleave", (event) => event.relatedTarget || drop.classList.remove("over"));
    window.addEventListener("drop", (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      const file = event.dataTransfer?.files[0];
      if (file && !this.form.hidden && !this.recorder.recording) this.#setFile(file);
    });
  }

  #setFile(file) {
    this.#file = file;
    this.errors.clear();
    byId("file").value = "";  // so that the same file can be chosen again
    byId("chosen").hidden = !file;
    byId("drop-target").hidden = Boolean(file);
    if (file) {
      byId("chosen-name").textContent = file.name;
      byId("chosen-size").textContent = fileSize(file.size);
    }
    this.onFile(file);
  }

  async #toggleRecording() {
    if (this.recorder.recording) {
      this.recorder.stop();
      return;
    }
    this.errors.clear();
    try {
      await this.recorder.start();
    } catch (error) {
      this.errors.show(error.message, "file");
      byId("record").focus();
      return;
    }
    byId("drop-target").hidden = true;
    byId("chosen").hidden = true;
    byId("recording").hidden = false;
    byId("record-label").textContent = "Stop recording";
    byId("record").classList.add("on");
    this.meter.clear();
  }

  #showLevel(level, seconds) {
    this.meter.add(level);
    const text = clockTime(seconds);
    if (byId("timer").textContent !== text) byId("timer").textContent = text;
  }

  #endRecording(file) {
    byId("recording").hidden = true;
    byId("record-label").textContent = "Record";
    byId("record").classList.remove("on");
    this.#setFile(file ?? this.#file);
    if (!file) this.errors.show("Nothing was recorded.", "file");
  }

  #nameTask() {
    byId("run-audio-label").textContent = this.options().translate ? "Translate" : "Transcribe";
  }
}
