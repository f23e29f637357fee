// The page at /: what the model can do decides what is shown; a run goes from a form through the API to the result.
import {Api} from "./api.js";
import {AudioForm} from "./audio_form.js";
import {byId} from "./dom.js";
import {Gauges} from "./gauges.js";
import {ImageForm} from "./image_form.js";
import {KeyDialog} from "./key_dialog.js";
import {Live} from "./live.js";
import {Player} from "./player.js";
import {ResultPanel} from "./result_panel.js";
import {TextForm} from "./text_form.js";

const kEncoded = {audio: "windows of audio", image: "pictures", text: "texts"};

/** Which form fits what the model can do; null: that is not told. */
function modeOf({modalities = [], task}) {
  if (modalities.includes("image")) return "image";
  return {transcription: "audio", text: "text"}[task] ?? null;
}

class App {
  #model = "";
  #run = null;  // the AbortController of what is under way

  constructor() {
    this.api = new Api((reason) => this.keyDialog.ask(reason));
    this.keyDialog = new KeyDialog(byId("key-dialog"), this.api);
    this.player = new Player(byId("player"), byId("audio"), byId("player-note"));
    this.result = new ResultPanel(this.player);
    this.audioForm = new AudioForm((file) => this.#setFile(file));
    this.imageForm = new ImageForm(() => this.#dropResult());
    this.textForm = new TextForm();
    this.live = new Live({
      api: this.api, form: this.audioForm, result: this.result,
      options: () => ({...this.audioForm.options(), model: this.#model}),
    });
    this.#listen();
    new Gauges(byId("gauges"), byId("gauges-note"), this.api).start();
  }

  #listen() {
    byId("key-button").addEventListener("click", async () => {
      if (await this.keyDialog.ask("")) await this.load();
    });
    byId("banner-retry").addEventListener("click", () => this.load());
    byId("mode").addEventListener("change", (event) => this.#setMode(event.target.value));
    this.#onSubmit(this.audioForm, (signal) => this.#runAudio(signal), () => this.#checkAudio());
    this.#onSubmit(this.imageForm, (signal) => this.#runImage(signal), () => this.#checkImage());
    this.#onSubmit(this.textForm, (signal) => this.#runText(signal), () => this.#checkText());
  }

  /** Learns what the server has. */
  async load() {
    byId("banner").hidden = true;
    try {
      const [model] = await this.api.models();
      this.#model = model?.id ?? "";
      byId("model-name").textContent = this.#model || "no model";
      if (this.#model) document.title = `${this.#model} \u00b7 Transept`;
      this.#adapt(model?.transept ?? {});
    } catch (error) {
      byId("banner-text").textContent = error.status === 401 ? "The server wants an API key." : error.message;
      byId("banner").hidden = false;
    }
  }

  #adapt(abilities) {
    const encodes = abilities.role === "encode";
    const mode = modeOf(abilities);
    byId("encode-note").hidden = !encodes;
    byId("work").hidden = encodes;
    if (encodes) {
      byId("encode-model").textContent = this.#model;
      byId("encode-kind").textContent = kEncoded[mode] ?? kEncoded.text;
      return;
    }
    for (const form of [this.audioForm, this.imageForm, this.textForm]) form.adapt(abilities);
    byId("mode").hidden = mode !== null;
    this.#setMode(mode ?? this.#chosenMode());
  }

  #chosenMode() { return byId("mode").querySelector("input:checked").value; }

  #setMode(mode) {
    this.audioForm.form.hidden = mode !== "audio";
    this.imageForm.form.hidden = mode !== "image";
    this.textForm.form.hidden = mode !== "text";
  }

  #setFile(file) {
    this.player.load(file);
    this.#dropResult();
  }

  #dropResult() {
    this.#run?.abort();
    this.result.clear();
  }

  #onSubmit(owner, run, check) {
    owner.form.addEventListener("submit", (event) => {
      event.preventDefault();
      owner.errors.clear();
      if (!this.#run && check()) this.#start(owner, run);
    });
    owner.form.querySelector("[data-cancel]").addEventListener("click", () => this.#run?.abort());
  }

  #checkAudio() {
    const missing = this.live.running || this.audioForm.recorder.recording ? "Stop the recording first."
        : this.audioForm.file ? "" : "Choose, drop or record audio first.";
    if (missing) this.audioForm.errors.show(missing, "file");
    return !missing;
  }

  #checkImage() {
    const {lack} = this.imageForm;
    if (lack) this.imageForm.errors.show(lack, "multi_modal_data");
    return !lack;
  }

  #checkText() {
    if (this.textForm.text.trim()) return true;
    this.textForm.errors.show("Write something first.", "text");
    return false;
  }

  async #start(owner, run) {
    const controller = new AbortController();
    this.#run = controller;
    this.#showRunning(owner.form, true);
    try {
      await run(controller.signal);
    } catch (error) {
      this.#fail(owner, error);
    } finally {
      this.#run = null;
      this.#showRunning(owner.form, false);
    }
  }

  #fail(owner, error) {
    if (error.name === "AbortError") {
      this.result.stop("Cancelled");
      return;
    }
    if (!["ApiError", "EarlyEnd"].includes(error.name)) console.error(error);
    const wait = error.status === 429 && error.retryAfter ? ` Try again in ${error.retryAfter} s.` : "";
    this.result.stop("Not done", "bad");
    owner.errors.show(error.message + wait, error.param);
  }

  // The two buttons stand in one place; whoever had the focus there keeps it.
  #showRunning(form, running) {
    const [run, cancel] = [form.querySelector("[data-run]"), form.querySelector("[data-cancel]")];
    const [old, fresh] = running ? [run, cancel] : [cancel, run];
    const focused = document.activeElement === old;
    old.hidden = true;
    fresh.hidden = false;
    if (focused) fresh.focus({preventScroll: true});  // the result may just have been scrolled to
  }

  async #runAudio(signal) {
    const {file, codes, hasSubtitles} = this.audioForm;
    const options = {...this.audioForm.options(), model: this.#model};
    const begin = performance.now();
    this.result.begin(options.translate ? "Translating\u2026" : "Transcribing\u2026");
    const reply = await this.api.transcribe(file, options, {
      signal,
      onText: (text) => this.result.append(text),
      onSegment: (segment) => this.result.addSegment(segment),
      onProgress: (done, all) => this.result.showProgress(done, all),
    });
    signal.throwIfAborted();
    this.result.showAudio(reply, {
      file,
      codes,
      language: options.translate ? "en" : options.language,
      seconds: (performance.now() - begin) / 1000,
      subtitles: hasSubtitles ? (format) => this.api.subtitles(file, options, format, {}) : null,
    });
  }

  async #runText(signal) {
    const begin = performance.now();
    const seconds = () => (performance.now() - begin) / 1000;
    if (this.textForm.translates) {
      this.result.begin("Translating\u2026");
      const {text} = this.textForm;  // as it is now: it may be edited meanwhile
      const reply = await this.api.translate({model: this.#model, ...this.textForm.translation()}, {signal});
      this.result.showText({text: TextForm.rejoin(text, reply.texts), usage: reply.usage}, {seconds: seconds()});
      return;
    }
    this.result.begin("Running\u2026");
    const {reply, notes} = await this.#complete(this.textForm.completion(), signal);
    this.result.showText(reply, {seconds: seconds(), notes});
  }

  async #runImage(signal) {
    const {picture} = this.imageForm;  // as it is now
    const begin = performance.now();
    this.result.begin("Reading\u2026");
    const {reply, notes} = await this.#complete(this.imageForm.completion(), signal);
    this.result.showPicture(reply, {picture, seconds: (performance.now() - begin) / 1000, notes});
  }

  async #complete(fields, signal) {
    const body = {model: this.#model, ...fields};
    const reply = await this.api.complete(body, {signal, onText: (text) => this.result.append(text)});
    signal.throwIfAborted();
    return {reply, notes: reply.finishReason === "length" ? ["ended by the limit of tokens"] : []};
  }
}

await new App().load();
