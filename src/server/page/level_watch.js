// How loud a source of sound is, about as often as the screen is drawn.

export class LevelWatch {
  #frame = 0;

  /** onLevel(0..1, seconds since the beginning) */
  constructor(context, source, onLevel) {
    const analyser = new AnalyserNode(context, {fftSize: 1024});
    source.connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    const begin = performance.now();
    const look = () => {
      analyser.getFloatTimeDomainData(samples);
      const power = samples.reduce((total, sample) => total + sample * sample, 0) / samples.length;
      // -60 dB and below is nothing, 0 dB is all.
      const level = Math.min(1, Math.max(0, 1 + 10 * Math.log10(power + 1e-12) / 60));
      onLevel(level, (performance.now() - begin) / 1000);
      this.#frame = requestAnimationFrame(look);
    };
    look();
  }

  stop() { cancelAnimationFrame(this.#frame); }
}
