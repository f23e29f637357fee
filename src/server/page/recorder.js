// Records the microphone into a file, and tells how loud it is meanwhile.
import {LevelWatch} from "./level_watch.js";

const kTypes = [["audio/webm;codecs=opus", "webm"], ["audio/ogg;codecs=opus", "ogg"], ["audio/mp4", "m4a"]];
const kReasons = {
  NotAllowedError: "The browser was not allowed to use the microphone. Allow it for this page in the browser's "
      + "settings, or choose a file instead.",
  NotFoundError: "No microphone was found. Connect one, or choose a file instead.",
  NotReadableError: "The microphone is in use by another program, or was disconnected.",
};

/** Words for what getUserMedia and MediaRecorder throw. */
export function microphoneProblem(error) {
  return kReasons[error.name] ?? `Recording failed: ${error.message}`;
}

const twoDigits = (value) => String(value).padStart(2, "0");

function nameOf(date, extension) {
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(twoDigits).join("-");
  return `recording-${date.getFullYear()}-${twoDigits(date.getMonth() + 1)}-${twoDigits(date.getDate())}-${time}.${extension}`;
}

export class Recorder {
  #stream = null;
  #recorder = null;
  #context = null;
  #level = null;

  /** onLevel(0..1, seconds) about as often as the screen is drawn; onEnd(File or null) once after each start. */
  constructor({onLevel, onEnd}) {
    this.onLevel = onLevel;
    this.onEnd = onEnd;
  }

  get recording() { return this.#recorder !== null; }

  /** Throws an Error with words for the user. */
  async start() {
    if (!navigator.mediaDevices?.getUserMedia || !window.MediaRecorder) {
      throw new Error("This browser records only on pages served from localhost or over https.");
    }
    const known = kTypes.find(([type]) => MediaRecorder.isTypeSupported(type)) ?? ["", "webm"];
    try {
      this.#stream = await navigator.mediaDevices.getUserMedia({audio: {channelCount: 1}});
      this.#recorder = new MediaRecorder(this.#stream, known[0] ? {mimeType: known[0]} : {});
    } catch (error) {
      this.#release();
      throw new Error(microphoneProblem(error), {cause: error});
    }
    const chunks = [];
    this.#recorder.ondataavailable = (event) => event.data.size > 0 && chunks.push(event.data);
    this.#recorder.onstop = () => {
      const type = this.#recorder.mimeType;
      this.#release();
      this.onEnd(chunks.length > 0 ? new File(chunks, nameOf(new Date(), known[1]), {type}) : null);
    };
    this.#recorder.start(1000);
    this.#context = new AudioContext();
    this.#level = new LevelWatch(this.#context, this.#context.createMediaStreamSource(this.#stream), this.onLevel);
  }

  stop() {
    if (this.#recorder?.state === "recording") this.#recorder.stop();
  }

  #release() {
    this.#level?.stop();
    this.#context?.close();
    this.#stream?.getTracks().forEach((track) => track.stop());
    this.#stream = this.#context = this.#recorder = this.#level = null;
  }
}
