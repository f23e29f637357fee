// Audio to be transcribed: a file that is chosen, dropped or recorded, and what is wanted of it.
import {byId, clockTime, FieldErrors, fillSelect} from "./dom.js";
import {FileDrop} from "./file_drop.js";
import {languageChoices} from "./languages.js";
import {LevelMeter} from "./level_meter.js";
import {Recorder} from "./recorder.js";

export class AudioForm {
  /** onFile(File or null): another file is there. */
  constructor(onFile) {
    this.form = byId("audio-form");
    this.errors = new FieldErrors(this.form);
    this.meter = new LevelMeter(byId("level"));
    this.recorder = new Recorder({
      onLevel: (level, seconds) => this.#showLevel(level, seconds), onEnd: (file) => this.#endRecording(file),
    });
    this.drop = new FileDrop(byId("drop"), {
      isOpen: () => !this.form.hidden && !this.recorder.recording && !this.live,
      onFile: (file) => {
        this.errors.clear();
        onFile(file);
      },
    });
    byId("record").addEventListener("click", () => this.#toggleRecording());
    this.form.addEventListener("change", (event) => event.target.name === "task" && this.#nameTask());
  }

  get file() { return this.drop.file; }

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
    this.drop.giveWay();
    byId("recording").hidden = false;
    byId("live-button").disabled = true;
    byId("record-label").textContent = "Stop recording";
    byId("record").classList.add("on");
    this.meter.clear();
  }

  /** The microphone is heard live, or no longer. */
  showRecording(on) {
    byId("recording").hidden = !on;
    byId("record").disabled = on;
    this.live = on;
    if (on) this.drop.giveWay();
    else this.drop.takeBack();
  }

  #showLevel(level, seconds) {
    this.meter.add(level);
    const text = clockTime(seconds);
    if (byId("timer").textContent !== text) byId("timer").textContent = text;
  }

  #endRecording(file) {
    byId("recording").hidden = true;
    byId("live-button").disabled = false;
    byId("record-label").textContent = "Record";
    byId("record").classList.remove("on");
    this.drop.set(file ?? this.drop.file);
    if (!file) this.errors.show("Nothing was recorded.", "file");
  }

  #nameTask() {
    byId("run-audio-label").textContent = this.options().translate ? "Translate" : "Transcribe";
  }
}
