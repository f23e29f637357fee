// Hands on the microphone's sound in pieces of a tenth of a second, as 16-bit samples. Runs on the audio thread.

class LivePieces extends AudioWorkletProcessor {
  #piece = new Int16Array(Math.round(sampleRate / 10));
  #count = 0;

  process([[channel]]) {
    for (const sample of channel ?? []) {
      this.#piece[this.#count++] = Math.max(-32768, Math.min(32767, Math.round(sample * 32768)));
      if (this.#count < this.#piece.length) continue;
      const {buffer, length} = this.#piece;
      this.port.postMessage(buffer, [buffer]);
      this.#piece = new Int16Array(length);
      this.#count = 0;
    }
    return true;
  }
}

registerProcessor("live-pieces", LivePieces);
