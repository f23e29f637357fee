import assert from "node:assert/strict";
import test from "node:test";

import {LiveSession} from "../../../src/server/page/live_session.js";

const kRate = 16000;
const piece = (mark) => new Int16Array(1600).fill(mark).buffer;  // 100 ms
const markOf = (buffer) => new Int16Array(buffer)[0];

/** A session over sockets of the test's own, and what its listeners were told. */
function begin(t) {
  t.mock.timers.enable({apis: ["setTimeout"]});
  const sockets = [];
  const told = [];
  const connect = () => {
    const socket = {
      readyState: 0, sent: [], closed: false,
      send: (data) => socket.sent.push(data),
      close: () => { socket.closed = true; },
      open: () => { socket.readyState = 1; socket.onopen(); },
      say: (type, fields = {}) => socket.onmessage({data: JSON.stringify({type, ...fields})}),
      ready: () => { socket.open(); socket.say("session.updated"); },
      lose: () => { socket.readyState = 3; socket.onclose(); },
      get marks() { return socket.sent.filter((data) => typeof data !== "string").map(markOf); },
      get events() { return socket.sent.filter((data) => typeof data === "string").map((data) => JSON.parse(data)); },
    };
    sockets.push(socket);
    return socket;
  };
  const names = ["onTurn", "onDelta", "onOpen", "onEnd", "onDrop", "onState"];
  const listeners = Object.fromEntries(names.map((name) => [name, (...values) => told.push([name, ...values])]));
  const session = new LiveSession({connect, rate: kRate, config: {type: "transcription"}, listeners});
  session.start();
  return {session, sockets, told, tick: (ms) => t.mock.timers.tick(ms)};
}

const kTranscription = "conversation.item.input_audio_transcription.";
const started = (socket, item, ms) => socket.say("input_audio_buffer.speech_started", {item_id: item, audio_start_ms: ms});
const completed = (socket, item, transcript, seconds = 1) =>
  socket.say(`${kTranscription}completed`, {item_id: item, transcript, usage: {type: "duration", seconds}});

test("what is said before the session is ready follows its configuration", (t) => {
  const {session, sockets: [socket], told} = begin(t);
  session.push(piece(1));
  socket.open();
  assert.deepEqual(socket.events, [{type: "session.update", session: {type: "transcription"}}]);
  session.push(piece(2));
  assert.deepEqual(socket.marks, []);
  socket.say("session.updated");
  session.push(piece(3));
  assert.deepEqual(socket.marks, [1, 2, 3]);
  assert.deepEqual(told, [["onState", "open"]]);
});

test("a turn goes from its words to its end", (t) => {
  const {sockets: [socket], told} = begin(t);
  socket.ready();
  started(socket, "a", 250);
  socket.say(`${kTranscription}delta`, {item_id: "a", delta: "one"});
  socket.say("transept.hypothesis", {item_id: "a", text: " two"});
  completed(socket, "a", "one two", 1.5);
  assert.deepEqual(told.slice(1), [["onTurn", "a", 250], ["onDelta", "a", "one"], ["onOpen", "a", " two"],
    ["onEnd", "a", {text: "one two", revised: false, endMs: 1750, error: undefined}]]);
});

test("a lost connection is made again, and an unfinished turn is heard again", (t) => {
  const {session, sockets, told, tick} = begin(t);
  sockets[0].ready();
  for (let mark = 0; mark < 40; ++mark) session.push(piece(mark));
  started(sockets[0], "a", 500);
  completed(sockets[0], "a", "done");
  started(sockets[0], "b", 3000);
  for (let mark = 40; mark < 80; ++mark) session.push(piece(mark));
  sockets[0].lose();
  assert.deepEqual(told.slice(-2), [["onDrop", "b"], ["onState", "waiting"]]);
  session.push(piece(80));
  tick(499);
  assert.equal(sockets.length, 1);
  tick(1);
  sockets[1].ready();
  assert.equal(sockets[1].marks[0], 30, "from the turn's first piece on");
  assert.equal(sockets[1].marks.at(-1), 80);
  started(sockets[1], "c", 100);
  assert.deepEqual(told.at(-1), ["onTurn", "c", 3100], "times go on");
});

test("in silence only the last two seconds are kept", (t) => {
  const {session, sockets, tick} = begin(t);
  sockets[0].ready();
  for (let mark = 0; mark < 100; ++mark) session.push(piece(mark));
  sockets[0].lose();
  tick(500);
  sockets[1].ready();
  assert.equal(sockets[1].marks[0], 80);
});

test("two minutes of one turn are kept, no more", (t) => {
  const {session, sockets, tick} = begin(t);
  sockets[0].ready();
  started(sockets[0], "a", 0);
  for (let mark = 0; mark < 1300; ++mark) session.push(piece(mark));
  sockets[0].lose();
  tick(500);
  sockets[1].ready();
  assert.equal(sockets[1].marks[0], 100);
});

test("it is given up after five tries", async (t) => {
  const {session, sockets, told, tick} = begin(t);
  for (const wait of [500, 1000, 2000, 4000, 8000]) {
    sockets.at(-1).lose();
    tick(wait);
  }
  assert.equal(sockets.length, 6);
  sockets.at(-1).lose();
  assert.deepEqual(told.at(-1), ["onState", "lost"]);
  tick(60000);
  assert.equal(sockets.length, 6);
  await session.finish();
});

test("a connection that worked counts the tries anew", (t) => {
  const {sockets, tick} = begin(t);
  sockets[0].lose();
  tick(500);
  sockets[1].lose();
  tick(1000);
  sockets[2].ready();
  sockets[2].lose();
  tick(500);
  assert.equal(sockets.length, 4);
});

test("the end waits for the last words", async (t) => {
  const {session, sockets: [socket], told} = begin(t);
  socket.ready();
  started(socket, "a", 0);
  const finished = session.finish();
  session.push(piece(9));
  assert.deepEqual(socket.events.at(-1), {type: "input_audio_buffer.commit"});
  assert.deepEqual(socket.marks, []);
  socket.say("input_audio_buffer.committed", {item_id: "a"});
  assert.equal(socket.closed, false);
  completed(socket, "a", "last words");
  await finished;
  assert.equal(socket.closed, true);
  assert.equal(told.at(-1)[0], "onEnd");
});

test("the end does not wait where nothing is open", async (t) => {
  const {session, sockets: [socket], told} = begin(t);
  socket.ready();
  const finished = session.finish();
  socket.say("error", {error: {code: "input_audio_buffer_commit_empty", message: "less than 100 ms"}});
  await finished;
  assert.equal(socket.closed, true);
  assert.ok(!told.some(([, words]) => words === "less than 100 ms"));
});

test("a commit that finds nothing waits for the turns before it", async (t) => {
  const {session, sockets: [socket]} = begin(t);
  socket.ready();
  started(socket, "a", 0);
  socket.say("input_audio_buffer.committed", {item_id: "a"});
  const finished = session.finish();
  socket.say("error", {error: {code: "input_audio_buffer_commit_empty", message: "less"}});
  assert.equal(socket.closed, false);
  completed(socket, "a", "words");
  await finished;
});

test("last words are waited for thirty seconds", async (t) => {
  const {session, sockets: [socket], tick} = begin(t);
  socket.ready();
  started(socket, "a", 0);
  const finished = session.finish();
  tick(30000);
  await finished;
  assert.equal(socket.closed, true);
});

test("a connection that is lost at the end is made again for the last words", async (t) => {
  const {session, sockets, tick} = begin(t);
  sockets[0].ready();
  session.push(piece(1));
  started(sockets[0], "a", 0);
  const finished = session.finish();
  sockets[0].lose();
  tick(500);
  sockets[1].ready();
  assert.deepEqual(sockets[1].marks, [1]);
  assert.deepEqual(sockets[1].events.at(-1), {type: "input_audio_buffer.commit"});
  sockets[1].say("input_audio_buffer.committed", {item_id: "b"});
  completed(sockets[1], "b", "words");
  await finished;
});

test("errors are told in the server's words, but for those that a new connection mends", (t) => {
  const {sockets: [socket], told} = begin(t);
  socket.ready();
  socket.say("error", {error: {code: "server_draining", message: "the server is shutting down"}});
  socket.say("error", {error: {code: "invalid_value", message: "session.audio: no"}});
  assert.deepEqual(told.slice(1), [["onState", "session.audio: no"]]);
});

test("a turn that fails says why", (t) => {
  const {sockets: [socket], told} = begin(t);
  socket.ready();
  started(socket, "a", 0);
  socket.say(`${kTranscription}failed`, {item_id: "a", error: {message: "the engine stopped"}});
  assert.deepEqual(told.at(-1), ["onEnd", "a", {text: null, revised: false, endMs: 0, error: "the engine stopped"}]);
});
