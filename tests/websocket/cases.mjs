// node's ws against the echo server of WEBSOCKET_ECHO. A line a case: `ok NAME`, `FAIL NAME: why`.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import WebSocket from "ws";

const server = spawn(process.env.WEBSOCKET_ECHO, [], { stdio: ["pipe", "pipe", "inherit"] });
const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
const url = `ws://127.0.0.1:${(await lines.next()).value}/echo`;

async function open(options = {}, protocols = []) {
  const socket = new WebSocket(url, protocols, options);
  await once(socket, "open");
  return socket;
}
async function reply(socket) {
  const [data, isBinary] = await once(socket, "message");
  return isBinary ? data : data.toString();
}
async function closing(socket) {
  const [code, why] = await once(socket, "close");
  return [code, why.toString()];
}

const cases = {
  async messages_come_back_as_they_were() {
    const socket = await open();
    for (const message of ["", "a", "\u20ac\u{1f600}".repeat(1000), "x".repeat(65536), Buffer.alloc(0), Buffer.alloc(65536, 7)]) {
      socket.send(message);
      assert.deepEqual(await reply(socket), message);
    }
    socket.close(4999, "bye");
    assert.equal((await closing(socket))[0], 4999);
  },
  async its_offer_of_compression_is_passed_over() {
    const socket = await open({ perMessageDeflate: { threshold: 0 } });
    assert.equal(socket.extensions, "");
    socket.send("x".repeat(1000));
    assert.equal(await reply(socket), "x".repeat(1000));
    socket.terminate();
  },
  async fragments_are_joined() {
    const socket = await open();
    for (const part of ["a", "", "b".repeat(5000)]) socket.send(part, { fin: false });
    socket.ping("in between");
    socket.send("c", { fin: true });
    assert.equal(await reply(socket), "a" + "b".repeat(5000) + "c");
    socket.terminate();
  },
  async pings_are_answered() {
    const socket = await open();
    socket.ping("p".repeat(125));
    assert.equal((await once(socket, "pong"))[0].toString(), "p".repeat(125));
    socket.terminate();
  },
  async a_subprotocol_is_chosen() {
    const socket = await open({}, ["x", "echo"]);
    assert.equal(socket.protocol, "echo");
    socket.terminate();
    const refused = new WebSocket(url, ["other"]);
    const [, response] = await once(refused, "unexpected-response");
    assert.equal(response.statusCode, 400);
  },
  async the_limit_is_exact() {
    const socket = await open();
    socket.send("x".repeat(65537));
    assert.equal((await closing(socket))[0], 1009);
  },
  async another_version_is_told_the_right_one() {
    const socket = new WebSocket(url, [], { protocolVersion: 8 });
    const [, response] = await once(socket, "unexpected-response");
    assert.equal(response.statusCode, 426);
    assert.equal(response.headers["sec-websocket-version"], "13");
  },
  async unmasked_frames_close() {
    const socket = await open();
    socket.send("a", { mask: false });
    assert.equal((await closing(socket))[0], 1002);
  },
  async wrong_text_closes() {
    const socket = await open();
    socket.send(Buffer.from([0xff]), { binary: false });
    assert.equal((await closing(socket))[0], 1007);
  },
  async the_server_closes() {
    const socket = await open();
    socket.send("close 4001 warum nicht \u20ac");
    assert.deepEqual(await closing(socket), [4001, "warum nicht \u20ac"]);
  },
  async many_messages_keep_their_order() {
    const socket = await open();
    const got = [];
    socket.on("message", (data) => got.push(Number(data)));
    for (let i = 0; i < 5000; ++i) socket.send(String(i));
    while (got.length < 5000) await once(socket, "message");
    assert.deepEqual(got, [...Array(5000).keys()]);
    socket.terminate();
  },
};

let failed = 0;
for (const [name, run] of Object.entries(cases)) {
  if (!`ws: ${name}`.includes(process.env.WEBSOCKET_FILTER ?? "")) continue;
  const late = new Promise((_, reject) => setTimeout(reject, 30000, new Error("30 s have passed")).unref());
  try {
    await Promise.race([run(), late]);
    console.log(`ok ws: ${name}`);
  } catch (why) {
    console.log(`FAIL ws: ${name}: ${String(why.message).split("\n")[0]}`);
    ++failed;
  }
}
server.stdin.end();
process.exit(failed ? 1 : 0);
