// What a user does with audio. Each scenario is given t: {server (null: a real one), open(options), state(changes)}.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";

import {makeWav} from "./audio.mjs";
import {until} from "./browser.mjs";
import {kSentences, kSpeech, makeTranscript} from "./fake_server.mjs";

const wav = (seconds = 20) => ({name: "the talk.wav", mimeType: "audio/wav", buffer: makeWav(seconds)});
const kRun = "#audio-form [data-run]";
const kCancel = "#audio-form [data-cancel]";
const text = (page, selector) => page.locator(selector).innerText();
const isDone = (page) => until("done", async () => (await text(page, "#status")).startsWith("Done"));

async function transcribed(t, options) {
  const page = await t.open(options);
  await page.setInputFiles("#file", wav());
  await page.click(kRun);
  await isDone(page);
  return page;
}

async function downloaded(page, format) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(`[data-download=${format}]`)]);
  return {name: download.suggestedFilename(), text: readFileSync(await download.path(), "utf8")};
}

const dropFile = (page, name) => page.evaluate((fileName) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([new Uint8Array(2000)], fileName, {type: "audio/wav"}));
  // dispatchEvent gives false where the page kept the browser from leaving for the file.
  return ["dragover", "drop"].map((type) =>
    document.body.dispatchEvent(new DragEvent(type, {dataTransfer: transfer, bubbles: true, cancelable: true})));
}, name);

const fake = {};

fake["a chosen file becomes segments, and what is asked for is what was set"] = async (t) => {
  const page = await t.open();
  await page.setInputFiles("#file", wav());
  await page.selectOption("#language", "de");
  await page.click("summary:visible");
  await page.fill("#audio-prompt", "Nave, transept");
  await page.fill("#audio-temperature", "0.2");
  await page.click(kRun);
  await isDone(page);
  assert.deepEqual(await page.locator(".segment p").allInnerTexts(), kSentences);
  const {path, parts} = t.state.requests.at(-1);
  assert.equal(path, "/v1/audio/transcriptions");
  assert.deepEqual(parts.filter((part) => !part.filename).map((part) => [part.name, part.value]), [
    ["model", "whisper-tiny"], ["language", "de"], ["prompt", "Nave, transept"], ["temperature", "0.2"], ["stream", "true"],
    ["stream_options[include_progress]", "true"], ["response_format", "verbose_json"], ["timestamp_granularities[]", "segment"], ["timestamp_granularities[]", "word"],
  ]);
  const file = parts.find((part) => part.filename);
  assert.equal(file.filename, "the talk.wav");
  assert.equal(Buffer.from(file.value, "latin1").compare(wav().buffer), 0);
  assert.equal(t.state.requests.filter((each) => each.path.startsWith("/v1/audio")).length, 1, "one upload");
};

fake["what is left alone is not sent"] = async (t) => {
  await transcribed(t);
  const names = t.state.requests.at(-1).parts.map((part) => part.name);
  assert.deepEqual(names, ["model", "stream", "stream_options[include_progress]", "response_format", "timestamp_granularities[]", "timestamp_granularities[]", "file"]);
};

fake["a file may be dropped anywhere, and taken away again"] = async (t) => {
  const page = await t.open();
  assert.deepEqual(await dropFile(page, "dropped.wav"), [false, false]);
  assert.equal(await text(page, "#chosen-name"), "dropped.wav");
  await page.click("#remove");
  assert.ok(await page.locator("#drop-target").isVisible());
  await page.click(kRun);
  assert.match(await text(page, "#file-error"), /Choose, drop or record/);
  assert.equal(t.state.requests.filter((each) => each.path.startsWith("/v1/audio")).length, 0);
};

fake["text without times arrives while it is decoded"] = async (t) => {
  t.state.delayMs = 100;
  const page = await t.open();
  await page.setInputFiles("#file", wav());
  await page.uncheck("#times");
  await page.click(kRun);
  const lengths = new Set();
  await until("done", async () => {
    const length = (await text(page, "#transcript")).length;
    if (length > 0) lengths.add(length);
    return (await text(page, "#status")).startsWith("Done");
  });
  assert.ok(lengths.size > 2, `seen growing: ${[...lengths]}`);
  assert.equal(await text(page, "#transcript"), kSentences.join(" "));
  const values = Object.fromEntries(t.state.requests.at(-1).parts.map((part) => [part.name, part.value]));
  assert.equal(values.stream, "true");
  assert.equal(values.response_format, "json");
};

fake["segments and how far it is are shown as windows are done, and their words play at once"] = async (t) => {
  t.state.delayMs = 40;
  const page = await t.open();
  await page.setInputFiles("#file", wav());
  await page.click(kRun);
  const {duration, segments} = t.state.transcript;
  const progress = () => page.locator("#progress").evaluate((bar) => bar.value);
  await until("the first segment's progress", async () => Math.abs(await progress() - segments[0].end / duration) < 0.01
      || Math.abs(await progress() - segments[0].end) < 0.01);
  assert.ok(!(await text(page, "#status")).startsWith("Done"), "it runs still");
  assert.equal(await text(page, "#meta"), "0:05 of 0:19");
  assert.deepEqual(await page.locator(".segment p").allInnerTexts(), kSentences.slice(0, 1));
  await page.locator(".word", {hasText: "quiet"}).evaluate((word) => { word.wasThere = true; });
  await page.locator(".word", {hasText: "quiet"}).click();
  const place = await page.locator("#audio").evaluate((audio) => audio.currentTime);
  assert.ok(place > 1 && place < 3, `plays from ${place} s`);
  const seen = new Set();
  await until("done", async () => {
    seen.add(await page.locator(".segment").count());
    return (await text(page, "#status")).startsWith("Done");
  });
  assert.deepEqual([...seen], [1, 2, 3]);
  assert.ok(await page.locator("#progress").isHidden());
  assert.ok(await page.locator(".word", {hasText: "quiet"}).evaluate((word) => word.wasThere && word === document.activeElement),
            "what was there stays, and the focus in it");
};

fake["a run with times that is cancelled keeps its segments, which can be taken away"] = async (t) => {
  t.state.hang = true;
  const page = await t.open();
  await page.setInputFiles("#file", wav());
  await page.click(kRun);
  await until("a segment", async () => (await page.locator(".segment").count()) > 0);
  await page.click(kCancel);
  await until("cancelled", async () => (await text(page, "#status")) === "Cancelled");
  assert.ok(await page.locator("#progress").isHidden());
  const count = await page.locator(".segment").count();
  assert.equal((await downloaded(page, "txt")).text, `${kSentences.slice(0, count).join("\n")}\n`);
  assert.ok((await downloaded(page, "srt")).text.startsWith(`1\n00:00:00,200 --> 00:00:05,000\n${kSentences[0]}\n`));
  assert.ok(await page.locator("[data-download=json]").isHidden(), "no reply that is whole");
};

fake["audio in which nobody speaks is told in words"] = async (t) => {
  t.state.transcript = {...makeTranscript([]), language: "", duration: 45};
  const page = await transcribed(t);
  assert.equal(await text(page, "#transcript"), "(no speech)");
};

fake["a click on a word plays from there, and words are marked as they play"] = async (t) => {
  const page = await transcribed(t);
  const {words} = t.state.transcript;
  assert.equal(await page.locator(".word").count(), words.length);
  const at = words.findIndex((word) => word.word === "crossing");
  await page.locator(".word", {hasText: "crossing"}).click();
  const time = () => page.locator("#audio").evaluate((audio) => ({now: audio.currentTime, paused: audio.paused}));
  const first = await time();
  assert.ok(first.now >= words[at].start - 0.01 && first.now < words[at].start + 1.5, JSON.stringify(first));
  await until("it plays", async () => (await time()).now > first.now);
  await until("the mark moves", async () => (await page.locator(".word.now").innerText()) === words[at + 2].word);
  await page.keyboard.press("Escape");
  assert.ok((await time()).paused);
  await page.locator(".time").nth(2).click();
  const third = await time();
  assert.ok(Math.abs(third.now - t.state.transcript.segments[2].start) < 1);
};

fake["segments are what plays where words have no times"] = async (t) => {
  t.state.withWords = false;
  const page = await transcribed(t);
  assert.equal(await page.locator(".word").count(), kSentences.length);
  await page.locator(".word").nth(1).click();
  const now = await page.locator("#audio").evaluate((audio) => audio.currentTime);
  assert.ok(Math.abs(now - t.state.transcript.segments[1].start) < 1);
};

fake["downloads hold what is shown"] = async (t) => {
  const page = await transcribed(t);
  const srt = await downloaded(page, "srt");
  assert.equal(srt.name, "the talk.srt");
  assert.ok(srt.text.startsWith(`1\n00:00:00,200 --> 00:00:05,000\n${kSentences[0]}\n\n2\n`), srt.text);
  assert.ok(srt.text.includes("shut -> and then"));
  const vtt = await downloaded(page, "vtt");
  assert.equal(vtt.name, "the talk.vtt");
  assert.ok(vtt.text.startsWith(`WEBVTT\n\n00:00.200 --> 00:05.000\n${kSentences[0]}\n\n`), vtt.text);
  assert.equal((await downloaded(page, "txt")).text, `${kSentences.join("\n")}\n`);
  assert.deepEqual(JSON.parse((await downloaded(page, "json")).text), t.state.transcript);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.click("#copy");
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `${kSentences.join("\n")}\n`);
};

fake["subtitles of a text without times come from the server, when asked for"] = async (t) => {
  const page = await t.open();
  await page.setInputFiles("#file", wav());
  await page.uncheck("#times");
  await page.click(kRun);
  await isDone(page);
  const before = t.state.requests.length;
  assert.equal((await downloaded(page, "vtt")).text, "vtt of the server\n");
  assert.equal(t.state.requests.length, before + 1);
  assert.equal(t.state.requests.at(-1).parts.find((part) => part.name === "response_format").value, "vtt");
};

fake["translation goes to its own route"] = async (t) => {
  const page = await t.open();
  await page.setInputFiles("#file", wav());
  await page.locator("label", {hasText: "Translate to English"}).click();
  assert.equal(await text(page, kRun), "Translate");
  await page.click(kRun);
  await isDone(page);
  assert.equal(t.state.requests.at(-1).path, "/v1/audio/translations");
  assert.equal(await page.locator("#transcript").getAttribute("lang"), "en");
};

fake["an error stands beside the control that it is about, which has the focus"] = async (t) => {
  const page = await t.open();
  await page.setInputFiles("#file", wav());
  const cases = [["file", "#file-error", "file"], ["language", "#language-error", "language"],
                 ["timestamp_granularities[0]", "#times-error", "times"], ["temperature", "#audio-temperature-error", "audio-temperature"]];
  for (const [param, place, control] of cases) {
    t.state.error = {status: 400, error: {message: `bad ${param}`, type: "invalid_request_error", param, code: null}};
    await page.click(kRun);
    await until("the error", async () => (await page.locator(place).textContent()) === `bad ${param}`);
    assert.ok(await page.locator(place).isVisible());
    assert.equal(await page.locator(".error:visible").count(), 1, "the one before is gone");
    assert.equal(await page.evaluate(() => document.activeElement.id), control);
    assert.equal(await page.locator(`#${control}`).getAttribute("aria-invalid"), "true");
  }
  t.state.error = null;
  await page.click(kRun);
  await isDone(page);
  assert.equal(await page.locator(".error:visible, [aria-invalid=true]").count(), 0);
};

fake["a busy server and one that is gone are told in words"] = async (t) => {
  const page = await t.open();
  await page.setInputFiles("#file", wav());
  t.state.error = {status: 429, error: {message: "The queue is full.", param: null}, headers: {"retry-after": "7"}};
  await page.click(kRun);
  const place = page.locator('#audio-form [data-error-for="*"]');
  await until("the error", async () => (await place.textContent()) === "The queue is full. Try again in 7 s.");
  await page.route("**/v1/audio/**", (route) => route.abort("connectionrefused"));
  await page.click(kRun);
  await until("the error", async () => (await place.textContent()) === "The server cannot be reached.");
  assert.ok(await page.locator(kRun).isVisible());
};

fake["a stream that breaks off keeps its text and says so"] = async (t) => {
  const page = await t.open();
  await page.setInputFiles("#file", wav());
  await page.uncheck("#times");
  for (const way of ["cut", "reset"]) {
    Object.assign(t.state, {cut: false, reset: false, [way]: true});
    await page.click(kRun);
    await until(way, async () => /ended before/.test(await page.locator('#audio-form [data-error-for="*"]').textContent()));
    const shown = await text(page, "#transcript");
    assert.ok(shown.length > 20 && kSentences.join(" ").startsWith(shown), shown);
    assert.equal(await text(page, "#status"), "Not done");
    assert.equal(await page.locator("[data-download]:visible").count(), 1, "what came can be taken away");
  }
};

fake["a long text that streams is followed, unless the reader scrolled up"] = async (t) => {
  t.state.transcript = makeTranscript(Array(30).fill(kSentences).flat());
  Object.assign(t.state, {hang: true, delayMs: 0});
  const page = await t.open({height: 600});
  await page.setInputFiles("#file", wav());
  await page.uncheck("#times");
  await page.click(kRun);
  const place = () => page.locator("#transcript").evaluate((box) => ({
    top: box.scrollTop, rest: box.scrollHeight - box.clientHeight - box.scrollTop,
  }));
  await until("it is longer than its box, and at its end", async () => {
    const {top, rest} = await place();
    return top > 100 && rest < 40;
  });
  await page.locator("#transcript").evaluate((box) => { box.scrollTop = 0; });
  await page.waitForTimeout(400);
  assert.equal((await place()).top, 0);
};

fake["an answer that is no JSON is told in words"] = async (t) => {
  const page = await t.open();
  await page.setInputFiles("#file", wav());
  await page.route("**/v1/audio/**", (route) => route.fulfill({status: 200, contentType: "text/html", body: "<p>a proxy</p>"}));
  await page.click(kRun);
  const place = page.locator('#audio-form [data-error-for="*"]');
  await until("the error", async () => /not what this page understands/.test(await place.textContent()));
};

fake["cancelling ends the request and keeps what came"] = async (t) => {
  t.state.hang = true;
  const page = await t.open();
  await page.setInputFiles("#file", wav());
  await page.uncheck("#times");
  await page.focus(kRun);
  await page.keyboard.press("Enter");
  await until("some text", async () => (await text(page, "#transcript")).length > 20);
  assert.ok(await page.locator(kCancel).evaluate((button) => button === document.activeElement), "the focus is on Cancel");
  await page.keyboard.press("Enter");
  await until("cancelled", async () => (await text(page, "#status")) === "Cancelled");
  await until("the server sees it", () => t.state.aborted === 1);
  assert.ok((await text(page, "#transcript")).length > 20);
  assert.ok(await page.locator(kRun).evaluate((button) => button === document.activeElement), "the focus is back");
  t.state.hang = false;
  await page.click(kRun);
  await isDone(page);
};

fake["another file ends the run of the one before"] = async (t) => {
  t.state.hang = true;
  const page = await t.open();
  await page.setInputFiles("#file", wav());
  await page.click(kRun);
  await until("asked", () => t.state.requests.some((each) => each.parts));
  await page.setInputFiles("#file", {...wav(3), name: "other.wav"});
  await until("aborted", () => t.state.aborted === 1);
  await until("the button is back", () => page.locator(kRun).isVisible());
  assert.equal(await text(page, "#chosen-name"), "other.wav");
};

fake["the microphone is recorded, shown while it runs, and can be heard and sent"] = async (t) => {
  const page = await t.open();
  await page.click("#record");
  await until("the timer runs", async () => (await text(page, "#timer")) === "0:02");
  const drawn = await page.locator("#level").evaluate((canvas) => canvas.getContext("2d")
      .getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0));
  assert.ok(drawn, "the level is drawn");
  await page.click(kRun);
  assert.match(await text(page, "#file-error"), /Stop the recording/);
  await page.click("#record");
  await until("a file", async () => /^recording-.*\.webm$/.test(await page.locator("#chosen-name").textContent()));
  const seconds = () => page.locator("#audio").evaluate((audio) => audio.duration);
  await until("its length is known", async () => (await seconds()) > 1 && (await seconds()) < 10);
  await page.click(kRun);
  await isDone(page);
  const file = t.state.requests.at(-1).parts.find((part) => part.filename);
  assert.equal(Buffer.from(file.value.slice(0, 4), "latin1").toString("hex"), "1a45dfa3", "Matroska's first bytes");
};

const refusal = (name) => `navigator.mediaDevices.getUserMedia = async () => { throw new DOMException("no", "${name}"); };`;

fake["a refused or absent microphone is explained"] = async (t) => {
  for (const [name, words] of [["NotAllowedError", /not allowed to use the microphone/], ["NotFoundError", /No microphone/]]) {
    const page = await t.open({script: refusal(name)});
    await page.click("#record");
    await until("the words", async () => words.test(await page.locator("#file-error").textContent()));
    assert.equal(await text(page, "#record-label"), "Record");
  }
};

fake["a model without times or languages is offered neither"] = async (t) => {
  t.state.abilities = {...kSpeech, languages: ["en"], has_timestamps: false, has_word_timestamps: false};
  const page = await t.open();
  for (const id of ["times-field", "language-field", "task"]) assert.ok(await page.locator(`#${id}`).isHidden(), id);
  await page.setInputFiles("#file", wav());
  await page.click(kRun);
  await isDone(page);
  assert.equal(await text(page, "#transcript"), kSentences.join(" "));
  const offered = await page.locator("[data-download]:visible").evaluateAll((all) => all.map((each) => each.dataset.download));
  assert.deepEqual(offered, ["txt", "json"]);
};

fake["a file that the browser cannot play is still transcribed"] = async (t) => {
  const page = await t.open();
  await page.setInputFiles("#file", {name: "odd.aiff", mimeType: "audio/aiff", buffer: Buffer.from("no audio at all")});
  await page.locator("#player-note").waitFor();
  await page.click(kRun);
  await isDone(page);
  assert.equal(await page.locator(".segment").count(), kSentences.length);
};

const any = {};

any["audio: a file is transcribed, and its files can be taken away"] = async (t) => {
  const page = await transcribed(t);
  const txt = await downloaded(page, "txt");
  assert.equal(txt.name, "the talk.txt");
  if (await page.locator("[data-download=srt]").isVisible()) {
    assert.equal((await downloaded(page, "srt")).name, "the talk.srt");
  }
};

export const speechScenarios = {fake, any};
