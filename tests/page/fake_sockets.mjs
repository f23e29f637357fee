// WebSockets of the fake server (RFC 6455), from node's standard library alone: the handshake, frames of at most 64 KiB
// from the client, and close. Each becomes {address, protocols, events, pieces, send(event), close(), closed}.
import {createHash} from "node:crypto";

const kMagic = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

function frame(opcode, payload) {
  const long = payload.length > 125;
  const head = Buffer.alloc(long ? 4 : 2);
  head[0] = 0x80 | opcode;
  head[1] = long ? 126 : payload.length;
  if (long) head.writeUInt16BE(payload.length, 2);
  return Buffer.concat([head, payload]);
}

/** The first whole frame of `bytes` as {opcode, payload, size}; null: more bytes are needed. */
function readFrame(bytes) {
  if (bytes.length < 2) return null;
  const short = bytes[1] & 0x7f;
  const headSize = short === 126 ? 8 : 6;  // with the mask
  if (short === 127) throw new Error("a frame of more than 64 KiB");
  if (bytes.length < headSize) return null;
  const size = short === 126 ? bytes.readUInt16BE(2) : short;
  if (bytes.length < headSize + size) return null;
  const mask = bytes.subarray(headSize - 4, headSize);
  const payload = Buffer.from(bytes.subarray(headSize, headSize + size)).map((byte, index) => byte ^ mask[index % 4]);
  return {opcode: bytes[0] & 0xf, payload, size: headSize + size};
}

/** Answers an upgrade request; onEvent(socket, event) hears each JSON message. */
export function acceptSocket(request, stream, onEvent) {
  const protocols = (request.headers["sec-websocket-protocol"] ?? "").split(",").map((name) => name.trim()).filter(Boolean);
  const accept = createHash("sha1").update(request.headers["sec-websocket-key"] + kMagic).digest("base64");
  stream.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      + `Sec-WebSocket-Accept: ${accept}\r\n${protocols.length > 0 ? `Sec-WebSocket-Protocol: ${protocols[0]}\r\n` : ""}\r\n`);
  const socket = {
    address: request.url, protocols, events: [], pieces: [], closed: false,
    send: (event) => stream.write(frame(1, Buffer.from(JSON.stringify(event)))),
    close: () => stream.destroy(),
  };
  let bytes = Buffer.alloc(0);
  stream.on("data", (data) => {
    bytes = Buffer.concat([bytes, data]);
    for (let read = readFrame(bytes); read; read = readFrame(bytes)) {
      bytes = bytes.subarray(read.size);
      if (read.opcode === 1) {
        const event = JSON.parse(read.payload.toString("utf8"));
        socket.events.push(event);
        onEvent(socket, event);
      } else if (read.opcode === 2) {
        socket.pieces.push(read.payload);
      } else if (read.opcode === 8) {
        stream.end(frame(8, read.payload));
      }
    }
  });
  stream.on("close", () => { socket.closed = true; });
  stream.on("error", () => {});
  return socket;
}
