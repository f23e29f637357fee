// A PNG file to look at: a shaded ground with a bright frame inside it. 8 bits of red, green and blue.
import {deflateSync} from "node:zlib";

const kCrcTable = Array.from({length: 256}, (_, n) => {
  let value = n;
  for (let bit = 0; bit < 8; ++bit) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value >>> 0;
});

function crc32(bytes) {
  let value = 0xffffffff;
  for (const byte of bytes) value = kCrcTable[(value ^ byte) & 255] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const out = Buffer.alloc(8 + body.length);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(crc32(body), 4 + body.length);
  return out;
}

export function makePng(width, height) {
  const rows = Buffer.alloc(height * (1 + 3 * width));
  for (let y = 0; y < height; ++y) {
    for (let x = 0; x < width; ++x) {
      const inFrame = x > width / 4 && x < width / 2 && y > height / 4 && y < height / 2;
      rows.set(inFrame ? [240, 210, 90] : [x % 256, y % 256, 120], y * (1 + 3 * width) + 1 + 3 * x);
    }
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  return Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), chunk("IHDR", head), chunk("IDAT", deflateSync(rows)),
                        chunk("IEND", Buffer.alloc(0))]);
}
