// The microphone as pieces of samples, while one speaks.
import {LevelWatch} from "./level_watch.js";
import {microphoneProblem} from "./recorder.js";

const kRate = 16000;  // what speech models take: a third of what most microphones give

export class Microphone {
  #stream = null;
  #context = null;
  #level = null;

  /** onPiece(ArrayBuffer of 16-bit samples) ten times a second; onLevel(0..1, seconds); onEnd() if it goes away. */
  constructor({onPiece, onLevel, onEnd}) {
    Object.assign(this, {onPiece, onLevel, onEnd});
  }

  /** Gives the sampling rate. Throws an Error with words for the user. */
  async start() {
    if (!navigator.mediaDevices?.getUserMedia || !window.AudioWorkletNode) {
      throw new Error("This browser hears a microphone only on pages served from localhost or over https.");
    }
    try {
      this.#stream = await navigator.mediaDevices.getUserMedia({audio: {channelCount: 1}});
      const source = this.#connect();
      await this.#context.audioWorklet.addModule(new URL("page/live_worklet.js", document.baseURI));
      const pieces = new AudioWorkletNode(this.#context, "live-pieces", {
        numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit",
      });
      pieces.port.onmessage = ({data}) => this.onPiece(data);
      source.connect(pieces);
      this.#level = new LevelWatch(this.#context, source, this.onLevel);
      this.#stream.getAudioTracks()[0].addEventListener("ended", () => this.onEnd());
      return this.#context.sampleRate;
    } catch (error) {
      this.stop();
      throw new Error(microphoneProblem(error), {cause: error});
    }
  }

  // Some browsers do not change a microphone's rate.
  #connect() {
    try {
      this.#context = new AudioContext({sampleRate: kRate});
      return this.#context.createMediaStreamSource(this.#stream);
    } catch {
      this.#context?.close();
      this.#context = new AudioContext();
      return this.#context.createMediaStreamSource(this.#stream);
    }
  }

  stop() {
    this.#level?.stop();
    this.#context?.close();
    this.#stream?.getTracks().forEach((track) => track.stop());
    this.#stream = this.#context = this.#level = null;
  }
}
