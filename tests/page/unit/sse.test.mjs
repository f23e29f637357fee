// Events are the same however the bytes are cut, and what is no whole event is none.
import assert from "node:assert/strict";
import test from "node:test";

import {EarlyEnd, readEvents, SseParser} from "../../../src/server/page/sse.js";

const kStream = "\uFEFF: a comment\ndata: one\n\nevent: late\r\ndata:two\r\ndata: three\r\n\r\nid: 7\n\ndata\n\ndata:  x\r\rdata: never";
const kEvents = [
  {event: "message", data: "one"}, {event: "late", data: "two\nthree"}, {event: "message", data: ""},
  {event: "message", data: " x"},
];

test("events of all line ends, comments, names and empty data", () => {
  assert.deepEqual(new SseParser().push(kStream), kEvents);
});

test("every cut gives the same events", () => {
  for (let at = 0; at <= kStream.length; ++at) {
    const parser = new SseParser();
    const events = [...parser.push(kStream.slice(0, at)), ...parser.push(kStream.slice(at))];
    assert.deepEqual(events, kEvents, `cut at ${at}`);
  }
});

const streamOf = (chunks, onCancel = () => {}) => new ReadableStream({
  start(controller) {
    for (const chunk of chunks) controller.enqueue(chunk);
    controller.close();
  },
  cancel: onCancel,
});

const bytesOf = (text) => [...Buffer.from(text)].map((byte) => Uint8Array.of(byte));

async function collect(body) {
  const seen = [];
  for await (const event of readEvents(body)) seen.push(event);
  return seen;
}

test("bytes one by one, through characters of several, up to [DONE]", async () => {
  const body = streamOf(bytesOf('data: {"a":"\u00e9\u{1F600}"}\n\ndata: {"a":2}\n\ndata: [DONE]\n\ndata: {"a":3}\n\n'));
  assert.deepEqual(await collect(body), [{a: "\u00e9\u{1F600}"}, {a: 2}]);
});

test("an end before [DONE] is an error, after the events that came", async () => {
  const seen = [];
  await assert.rejects(async () => {
    for await (const event of readEvents(streamOf(bytesOf('data: {"a":1}\n\ndata: {"a"')))) seen.push(event);
  }, EarlyEnd);
  assert.deepEqual(seen, [{a: 1}]);
});

test("who stops listening cancels the body", async () => {
  let cancelled = false;
  const body = new ReadableStream({
    pull(controller) { controller.enqueue(Buffer.from('data: {"a":1}\n\n')); },
    cancel() { cancelled = true; },
  });
  for await (const event of readEvents(body)) {
    assert.deepEqual(event, {a: 1});
    break;
  }
  assert.ok(cancelled);
});
