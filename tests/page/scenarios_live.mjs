// Speaking to the page: Chromium's fake microphone, which beeps, and a server that says what it hears from a script.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";

import {until} from "./browser.mjs";

const kTranscription = "conversation.item.input_audio_transcription.";
const text = (page, selector) => page.locator(selector).innerText();
const says = (page, words) => until(words, async () => (await text(page, "#status")) === words);

/** The page with a session that listens, and the server's side of it. */
async function listening(t, options) {
  const page = await t.open(options);
  await page.click("#live-button");
  await until("a session", () => t.state.sockets.length > 0);
  await says(page, "Listening\u2026");
  return {page, socket: t.state.sockets[0]};
}

function turn(socket, item) {
  return {
    start: (ms) => socket.send({type: "input_audio_buffer.speech_started", item_id: item, audio_start_ms: ms}),
    tell: (delta) => socket.send({type: `${kTranscription}delta`, item_id: item, delta}),
    open: (words) => socket.send({type: "transept.hypothesis", item_id: item, text: words}),
    commit: () => socket.send({type: "input_audio_buffer.committed", item_id: item}),
    complete: (transcript, more = {}) => socket.send({
      type: `${kTranscription}completed`, item_id: item, transcript, usage: {type: "duration", seconds: 2}, ...more}),
  };
}

const fake = {};

fake["live: the microphone's samples go to a session that is configured as the form is"] = async (t) => {
  const page = await t.open();
  await page.selectOption("#language", "de");
  await page.click("summary:visible");
  await page.fill("#audio-prompt", "Nave, transept");
  await page.click("#live-button");
  await until("pieces", () => t.state.sockets[0]?.pieces.length > 3);
  const [socket] = t.state.sockets;
  assert.equal(socket.address, "/v1/realtime?model=whisper-tiny");
  assert.deepEqual(socket.protocols, ["realtime"]);
  assert.deepEqual(socket.events, [{type: "session.update", session: {
    type: "transcription",
    audio: {input: {
      format: {type: "audio/pcm", rate: 16000},
      transcription: {model: "whisper-tiny", language: "de", prompt: "Nave, transept"},
      turn_detection: {type: "server_vad"},
    }},
    include: ["transept.hypothesis"],
  }}]);
  assert.ok(socket.pieces.every((piece) => piece.length === 3200), "100 ms each");
  await until("sound", () => socket.pieces.some((piece) => new Int16Array(new Uint8Array(piece).buffer).some((sample) => Math.abs(sample) > 500)));
  assert.match(await text(page, "#timer"), /^0:0\d$/);
};

fake["live: words appear as they are said, grey while they are open"] = async (t) => {
  const {page, socket} = await listening(t);
  const first = turn(socket, "a");
  first.start(1200);
  first.tell("The nave");
  first.open(" was");
  await until("open words", async () => (await text(page, ".turn .open")) === " was" || (await page.locator(".turn .open").textContent()) === " was");
  assert.equal(await page.locator(".turn .told").textContent(), "The nave");
  const [told, open] = await Promise.all([".told", ".open"].map((name) =>
    page.locator(`.turn ${name}`).evaluate((element) => getComputedStyle(element).color)));
  assert.notEqual(told, open);
  first.tell(" was quiet.");
  await until("the words", async () => (await page.locator(".turn .told").textContent()) === "The nave was quiet.");
  assert.equal(await page.locator(".turn .open").textContent(), "", "what was open is told");
  first.complete("The nave was quiet.");
  const second = turn(socket, "b");
  second.start(65000);
  second.tell("Nobody spoke");
  await until("two turns", async () => (await page.locator(".turn").count()) === 2);
  assert.deepEqual(await page.locator(".turn .time").allTextContents(), ["0:01", "1:05"]);
};

fake["live: screen readers hear confirmed words alone"] = async (t) => {
  const {page, socket} = await listening(t);
  turn(socket, "a").start(0);
  await until("a turn", async () => (await page.locator(".turn").count()) === 1);
  assert.equal(await page.locator("#live-turns").getAttribute("role"), "log");
  assert.equal(await page.locator("#live-turns").getAttribute("aria-live"), "polite");
  assert.equal(await page.locator(".turn .open").getAttribute("aria-hidden"), "true");
  assert.equal(await page.locator(".turn .time").getAttribute("aria-hidden"), "true");
  assert.equal(await page.locator(".turn .told").getAttribute("aria-hidden"), null);
};

fake["live: the end waits for the last words, which can be taken away"] = async (t) => {
  const {page, socket} = await listening(t);
  const first = turn(socket, "a");
  first.start(500);
  first.tell("The last");
  await until("a turn", async () => (await page.locator(".turn .told").textContent()) === "The last");
  await page.click("#live-button");
  await says(page, "Waiting for the last words\u2026");
  await until("a commit", () => socket.events.at(-1).type === "input_audio_buffer.commit");
  assert.ok(await page.locator("#recording").isHidden());
  const count = socket.pieces.length;
  first.commit();
  first.tell(" words.");
  first.complete("The last words.");
  await says(page, "Done: 1 turn");
  assert.equal(socket.pieces.length, count, "no sound after the end");
  assert.equal(await page.locator(".turn .told").textContent(), "The last words.");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("[data-download=srt]")]);
  assert.equal(download.suggestedFilename(), "live.srt");
  assert.equal(readFileSync(await download.path(), "utf8"), "1\n00:00:00,500 --> 00:00:02,500\nThe last words.\n\n");
  assert.equal(await text(page, "#live-label"), "Live");
  assert.ok(await page.locator("#record").isEnabled());
};

fake["live: a transcript that has other words takes their place"] = async (t) => {
  const {page, socket} = await listening(t);
  const first = turn(socket, "a");
  first.start(0);
  first.tell("The knave");
  first.complete("The nave", {transept_revised: true});
  await until("the transcript", async () => (await page.locator(".turn .told").textContent()) === "The nave");
};

fake["live: a turn in which nothing was said leaves no line"] = async (t) => {
  const {page, socket} = await listening(t);
  const first = turn(socket, "a");
  first.start(0);
  await until("a turn", async () => (await page.locator(".turn").count()) === 1);
  first.complete("");
  await until("none", async () => (await page.locator(".turn").count()) === 0);
};

fake["live: a lost connection is made again, and what was said stays"] = async (t) => {
  const {page, socket} = await listening(t);
  const [first, second] = [turn(socket, "a"), turn(socket, "b")];
  first.start(0);
  first.complete("It stays.");
  second.start(300);
  second.tell("Half");
  await until("two turns", async () => (await page.locator(".turn").count()) === 2);
  socket.close();
  await until("another session", () => t.state.sockets.length === 2);
  await says(page, "Listening\u2026");
  assert.deepEqual(await page.locator(".turn .told").allTextContents(), ["It stays."], "the other one is heard again");
  await until("its sound", () => t.state.sockets[1].pieces.length > 0);
  turn(t.state.sockets[1], "c").start(0);
  await until("two turns", async () => (await page.locator(".turn").count()) === 2);
};

fake["live: a key goes beside the subprotocol, never in the address"] = async (t) => {
  t.state.key = "sk-secret";
  const {socket} = await listening(t, {script: 'sessionStorage.setItem("transept-api-key", "sk-secret");'});
  assert.deepEqual(socket.protocols, ["realtime", "openai-insecure-api-key.sk-secret"]);
  assert.equal(socket.address, "/v1/realtime?model=whisper-tiny");
};

fake["live: a microphone that may not be used says so, and nothing is opened"] = async (t) => {
  const page = await t.open({script: `navigator.mediaDevices.getUserMedia = async () => {
    throw new DOMException("no", "NotAllowedError");
  };`});
  await page.click("#live-button");
  await until("words", async () => /not allowed to use the microphone/.test(await text(page, "#file-error")));
  assert.equal(t.state.sockets.length, 0);
  assert.equal(await text(page, "#live-label"), "Live");
};

fake["live: refusals are shown in the server's words"] = async (t) => {
  const {page, socket} = await listening(t);
  socket.send({type: "error", error: {code: "invalid_value", message: "session.audio.input: no such thing"}});
  await says(page, "session.audio.input: no such thing");
};

fake["live: by keyboard, on a phone, in the dark"] = async (t) => {
  const page = await t.open({width: 360, height: 740, dark: true});
  await page.locator("#live-button").focus();
  await page.keyboard.press("Enter");
  await until("a session", () => t.state.sockets.length > 0);
  const first = turn(t.state.sockets[0], "a");
  await says(page, "Listening\u2026");
  first.start(0);
  first.tell("A word that is long: ".repeat(8));
  await until("words", async () => (await page.locator(".turn .told").textContent()).length > 100);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(overflow <= 0, `${overflow} pixels too wide`);
  await page.locator("#live-button").focus();
  await page.keyboard.press("Space");
  await until("a commit", () => t.state.sockets[0].events.at(-1).type === "input_audio_buffer.commit");
  first.complete("A word.");
};

const any = {};

/** 16-bit samples as a WAV file. */
function wavOf(samples, rate) {
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + samples.length, 4);
  head.write("WAVEfmt ", 8);
  [16, 0x10001, rate, 2 * rate, 0x100002].forEach((value, index) => head.writeUInt32LE(value, 16 + 4 * index));
  head.write("data", 36);
  head.writeUInt32LE(samples.length, 40);
  return Buffer.concat([head, samples]);
}

any["microphone: words appear while one speaks, and each turn ends with the text of its sound"] = async (t) => {
  const page = await t.open();
  const [pieces, events] = [[], []];
  page.on("websocket", (socket) => {
    socket.on("framesent", ({payload}) => typeof payload !== "string" && pieces.push(payload));
    socket.on("framereceived", ({payload}) => events.push(JSON.parse(payload)));
  });
  await page.click("#live-button");
  const ofType = (type) => events.filter((event) => event.type.endsWith(type));
  await until("words before the end of the turn", () => ofType("transcription.delta").length > 1, 30000);
  assert.equal(ofType("speech_stopped").length, 0, "it is still spoken");
  await until("the turn's end", () => ofType("transcription.completed").length > 0, 60000);
  await page.click("#live-button");
  await until("done", async () => (await text(page, "#status")).startsWith("Done"), 40000);
  const sound = Buffer.concat(pieces);
  const address = new URL("v1/audio/transcriptions", page.url());
  for (const [index, {item_id: item, transcript}] of ofType("transcription.completed").entries()) {
    const start = ofType("speech_started").find((event) => event.item_id === item);
    const stop = ofType("speech_stopped").find((event) => event.item_id === item);
    if (!start || !stop) continue;  // what was committed at the end
    const form = new FormData();
    form.append("model", (await (await fetch(new URL("v1/models", page.url()))).json()).data[0].id);
    const samples = sound.subarray(32 * start.audio_start_ms, 32 * stop.audio_end_ms);
    form.append("file", new Blob([wavOf(samples, 16000)]), "turn.wav");
    const offline = (await (await fetch(address, {method: "POST", body: form})).json()).text.trim();
    assert.equal(transcript, offline, `turn ${index}`);
    assert.ok(await page.locator(".turn .told", {hasText: transcript}).count() > 0, transcript);
  }
  assert.ok(ofType("transcription.completed")[0].transcript.length > 10);
};

export const liveScenarios = {fake, any};
