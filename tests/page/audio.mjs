// A WAV file to listen to: tones whose pitch changes every half second, 16 kHz, 16 bit, mono.

export function makeWav(seconds, sampleRate = 16000) {
  const numSamples = Math.round(seconds * sampleRate);
  const bytes = Buffer.alloc(44 + 2 * numSamples);
  bytes.write("RIFF", 0);
  bytes.writeUInt32LE(36 + 2 * numSamples, 4);
  bytes.write("WAVEfmt ", 8);
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(sampleRate, 24);
  bytes.writeUInt32LE(2 * sampleRate, 28);
  bytes.writeUInt16LE(2, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write("data", 36);
  bytes.writeUInt32LE(2 * numSamples, 40);
  for (let i = 0; i < numSamples; ++i) {
    const pitch = 220 + 40 * Math.floor(2 * i / sampleRate);
    bytes.writeInt16LE(Math.round(6000 * Math.sin(2 * Math.PI * pitch * i / sampleRate)), 44 + 2 * i);
  }
  return bytes;
}
