// Live: the page writes while one speaks. Goes from the microphone through a session to the turns.
import {byId, clockTime} from "./dom.js";
import {LevelMeter} from "./level_meter.js";
import {LiveSession} from "./live_session.js";
import {LiveTurns} from "./live_turns.js";
import {Microphone} from "./microphone.js";

const kStates = {open: "Listening\u2026", waiting: "The connection was lost. Connecting again\u2026",
                 lost: "The server cannot be reached."};

export class Live {
  #microphone = null;  // while it runs
  #session = null;

  /** form: the AudioForm; options(): model, language and prompt as they are set. */
  constructor({api, form, result, options}) {
    Object.assign(this, {api, form, result, options});
    this.button = byId("live-button");
    this.turns = new LiveTurns(byId("live-turns"));
    this.meter = new LevelMeter(byId("level"));
    this.button.addEventListener("click", () => (this.#microphone ? this.stop() : this.start()));
  }

  get running() { return this.#microphone !== null; }

  async start() {
    this.form.errors.clear();
    let session = null;
    const early = [];  // what is heard before the session is there
    const microphone = new Microphone({
      onPiece: (piece) => (session ? session.push(piece) : early.push(piece)),
      onLevel: (level, seconds) => this.#showLevel(level, seconds),
      onEnd: () => this.stop(),
    });
    this.#microphone = microphone;
    let rate;
    try {
      rate = await microphone.start();
    } catch (error) {
      this.#microphone = null;
      this.form.errors.show(error.message, "file");
      this.button.focus();
      return;
    }
    this.form.showRecording(true);
    this.button.classList.add("on");
    byId("live-label").textContent = "Stop";
    this.meter.clear();
    this.turns.clear();
    this.result.beginLive("Connecting\u2026");
    const options = this.options();
    session = new LiveSession({
      rate,
      connect: () => this.api.realtime(options.model),
      config: this.#config(options, rate),
      listeners: {
        onTurn: (item, ms) => this.turns.add(item, ms),
        onDelta: (item, text) => this.turns.tell(item, text),
        onOpen: (item, text) => this.turns.open(item, text),
        onEnd: (item, end) => this.turns.end(item, end),
        onDrop: (item) => this.turns.drop(item),
        onState: (state) => this.#showState(state),
      },
    });
    this.#session = session;
    for (const piece of early) session.push(piece);
    session.start();
  }

  #config({model, language, prompt}, rate) {
    return {
      type: "transcription",
      audio: {input: {
        format: {type: "audio/pcm", rate},
        transcription: {model, ...(language && {language}), ...(prompt && {prompt})},
        turn_detection: {type: "server_vad"},
      }},
      include: ["transept.hypothesis"],
    };
  }

  /** The last words still come. */
  async stop() {
    const [microphone, session] = [this.#microphone, this.#session];
    if (!microphone || !session) return;
    this.#microphone = this.#session = null;
    microphone.stop();
    this.form.showRecording(false);
    this.button.classList.remove("on");
    this.button.disabled = true;
    byId("live-label").textContent = "Live";
    this.result.say("Waiting for the last words\u2026", "busy");
    await session.finish();
    this.button.disabled = false;
    this.result.showLive(this.turns.segments());
  }

  #showState(state) {
    if (!this.#microphone) return;
    if (state === "lost") {
      this.stop();
      this.form.errors.show(kStates.lost, "file");
    } else {
      this.result.say(kStates[state] ?? state, state === "open" ? "busy" : "bad");
    }
  }

  #showLevel(level, seconds) {
    this.meter.add(level);
    const text = clockTime(seconds);
    if (byId("timer").textContent !== text) byId("timer").textContent = text;
  }
}
