// What holds whatever the model is: text, keys, gauges, keyboard, looks, policy.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";

import {makeWav} from "./audio.mjs";
import {until} from "./browser.mjs";
import {kText, kTranslation} from "./fake_server.mjs";
import {cardFaults, namelessControls, weakTexts} from "./looks.mjs";

const kRun = "#text-form [data-run]";
const text = (page, selector) => page.locator(selector).innerText();
const isDone = (page) => until("done", async () => (await text(page, "#status")).startsWith("Done"));
/** What has the focus: its id, the name of its group, or its words. */
const focused = (page) => page.evaluate(() => {
  const {id, name, textContent} = document.activeElement;
  return id || name || textContent.trim();
});
const gauge = (page, name) => text(page, `[data-gauge=${name}] [data-value]`);

const fake = {};

fake["a completion streams, with what was set"] = async (t) => {
  Object.assign(t.state, {abilities: kText, modelId: "bart", delayMs: 150});
  const page = await t.open();
  assert.ok(await page.locator("#audio-form").isHidden());
  assert.equal(await text(page, "#model-name"), "bart");
  await page.fill("#text", "A long text.\nTwo lines.");
  await page.click("summary:visible");
  await page.fill("#decoder-prompt", "Une");
  await page.fill("#max-tokens", "40");
  await page.locator("#text").press("Control+Enter");
  const seen = new Set();
  await until("done", async () => {
    seen.add(await text(page, "#transcript"));
    return (await text(page, "#status")) === "Done";
  });
  const partial = [...seen].filter((each) => each && each !== t.state.completion);
  assert.ok(partial.length > 0 && partial.every((each) => t.state.completion.startsWith(each.trimEnd())), `seen: ${partial}`);
  assert.equal(await text(page, "#transcript"), t.state.completion);
  assert.deepEqual(t.state.requests.at(-1).fields, {
    model: "bart", prompt: "A long text.\nTwo lines.", decoder_prompt: "Une", max_tokens: 40, stream: true,
    stream_options: {include_usage: true},
  });
  assert.match(await text(page, "#meta"), /^9 tokens/);
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("[data-download=txt]")]);
  assert.equal(readFileSync(await download.path(), "utf8"), `${t.state.completion}\n`);
  assert.equal(await page.locator("[data-download]:visible").count(), 1);
};

fake["a translation keeps the lines, and languages swap"] = async (t) => {
  Object.assign(t.state, {abilities: kTranslation});
  const page = await t.open();
  await page.selectOption("#source", "en");
  await page.selectOption("#target", "fr");
  await page.click("#swap");
  await page.fill("#text", "Un.\n\n  \nDeux.");
  await page.click(kRun);
  await isDone(page);
  assert.equal(await text(page, "#transcript"), "en(Un.)\n\n\nen(Deux.)");
  const {path, fields} = t.state.requests.at(-1);
  assert.equal(path, "/v1/translate");
  assert.deepEqual(fields, {model: "whisper-tiny", text: ["Un.", "Deux."], source_lang: "fr", target_lang: "en"});
};

fake["errors of text stand beside their fields; one without a field beside the button"] = async (t) => {
  Object.assign(t.state, {abilities: kText});
  const page = await t.open();
  await page.click(kRun);
  assert.equal(await text(page, "#text-error").then((words) => words.includes("Write something first.")), true);
  await page.fill("#text", "x");
  t.state.error = {status: 400, error: {message: "must be at least 1", param: "max_tokens"}};
  await page.click(kRun);
  await until("inside the folded part", () => page.locator("#max-tokens-error").isVisible());
  t.state.error = {status: 400, error: {message: "must be a list", param: "stop[0]"}};
  await page.click(kRun);
  await until("beside the button", async () =>
    (await page.locator('#text-form [data-error-for="*"]').textContent()) === "stop[0]: must be a list");
  t.state.error = {status: 502, error: undefined};
  await page.click(kRun);
  await until("no body", async () => /answered 502/.test(await page.locator('#text-form [data-error-for="*"]').textContent()));
};

fake["a server that does not say what it does gets both forms"] = async (t) => {
  Object.assign(t.state, {abilities: null});
  const page = await t.open();
  assert.ok(await page.locator("#audio-form").isVisible());
  await page.locator("#mode label", {hasText: "Text"}).click();
  assert.ok(await page.locator("#audio-form").isHidden());
  await page.fill("#text", "x");
  await page.click(kRun);
  await isDone(page);
};

fake["an encode instance says what it is and offers no form"] = async (t) => {
  Object.assign(t.state, {abilities: {...kText, role: "encode"}, modelId: "bart"});
  const page = await t.open();
  assert.ok(await page.locator("#encode-note").isVisible());
  assert.equal(await text(page, "#encode-model"), "bart");
  assert.equal(await text(page, "#encode-kind"), "texts");
  for (const part of ["#text-form", "#audio-form", "#result"]) assert.ok(await page.locator(part).isHidden(), part);
};

fake["a decode instance is as any server"] = async (t) => {
  Object.assign(t.state, {abilities: {...kText, role: "decode"}});
  const page = await t.open();
  assert.ok(await page.locator("#text-form").isVisible());
  assert.ok(await page.locator("#encode-note").isHidden());
};

fake["markup in names and texts is text"] = async (t) => {
  const markup = "<img src=x onerror=alert(1)><b>bold</b>";
  Object.assign(t.state, {abilities: kText, completion: markup, modelId: markup});
  const page = await t.open();
  await page.fill("#text", "x");
  await page.click(kRun);
  await isDone(page);
  assert.equal(await text(page, "#transcript"), markup);
  assert.equal(await text(page, "#model-name"), markup);
  assert.equal(await page.locator("#transcript img, #model-name img").count(), 0);
};

fake["a key is asked for, refused, taken, kept for the tab, sent, and forgotten"] = async (t) => {
  Object.assign(t.state, {abilities: kText, key: "right-key"});
  const page = await t.open();
  assert.equal(await focused(page), "key");
  await page.keyboard.press("Escape");
  await until("the banner", async () => /wants an API key/.test(await page.locator("#banner-text").textContent()));
  await page.click("#banner-retry");
  await page.locator("#key-dialog").waitFor();
  await page.keyboard.type("wrong-key");
  await page.keyboard.press("Enter");
  await until("refused", async () => /Incorrect API key/.test(await page.locator("#key-error").textContent()));
  await page.fill("#key", "right-key");
  await page.keyboard.press("Enter");
  await page.locator("#text-form").waitFor();
  assert.ok(await page.locator("#key-dialog").isHidden());
  await page.fill("#text", "x");
  await page.click(kRun);
  await isDone(page);
  assert.equal(t.state.requests.at(-1).authorization, "Bearer right-key");
  const kept = await page.evaluate(() => ({local: localStorage.length, tab: Object.values(sessionStorage), cookie: document.cookie}));
  assert.deepEqual(kept, {local: 0, tab: ["right-key"], cookie: ""});
  await page.reload();
  await page.locator("#text-form").waitFor();
  await page.click("#key-button");
  await page.click("[data-forget]");
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
};

fake["a run that meets a new key goes on once it is given, and ends if it is not"] = async (t) => {
  Object.assign(t.state, {abilities: kText});
  const page = await t.open();
  await page.fill("#text", "x");
  t.state.key = "later";
  await page.click(kRun);
  await page.locator("#key-dialog").waitFor();
  await page.keyboard.press("Escape");
  await until("told", async () => /Incorrect API key/.test(await page.locator('#text-form [data-error-for="*"]').textContent()));
  await page.click(kRun);
  await page.fill("#key", "later");
  await page.keyboard.press("Enter");
  await isDone(page);
};

fake["gauges show what /metrics says, each second, while the page is seen"] = async (t) => {
  const page = await t.open();
  await until("two readings", async () => (await gauge(page, "tokensPerSecond")) !== "\u2013");
  assert.equal(await gauge(page, "running"), "2");
  assert.equal(await gauge(page, "waiting"), "1");
  assert.equal((await gauge(page, "cacheUse")).replace(/\s/g, ""), "37%");
  const speed = Number(await gauge(page, "tokensPerSecond"));
  assert.ok(speed > 30 && speed < 80, `${speed} tokens/s of 50`);
  t.state.metrics.running = 11;
  await until("the next reading", async () => (await gauge(page, "running")) === "11", 2500);
  const readings = () => t.state.metrics.readings;
  const setHidden = (hidden) => page.evaluate((value) => {
    Object.defineProperty(document, "hidden", {configurable: true, get: () => value});
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
  await setHidden(true);
  await page.waitForTimeout(200);
  const before = readings();
  await page.waitForTimeout(1600);
  assert.equal(readings(), before, "none while hidden");
  await setHidden(false);
  await until("again", () => readings() > before, 1000);
  await until("no rate over the pause", async () => (await gauge(page, "tokensPerSecond")) === "\u2013", 800);
};

fake["gauges without permission or without a server say so"] = async (t) => {
  t.state.metricsStatus = 401;
  const page = await t.open();
  await until("the note", async () => /with a key/.test(await text(page, "#gauges-note")));
  assert.equal(await gauge(page, "running"), "\u2013");
  assert.ok(await page.locator("#key-dialog").isHidden(), "no question for the gauges' sake");
  t.state.metricsStatus = 200;
  await until("back", async () => (await gauge(page, "running")) === "2", 2500);
  await page.route("**/metrics", (route) => route.abort("connectionrefused"));
  await until("gone", async () => /does not answer/.test(await text(page, "#gauges-note")), 2500);
};

fake["a server that cannot be reached at first can be tried again"] = async (t) => {
  const page = await t.open({script: `
    const real = window.fetch;
    let first = true;
    window.fetch = (...all) => {
      if (!String(all[0]).endsWith("/v1/models") || !first) return real(...all);
      first = false;
      return Promise.reject(new TypeError("refused"));
    };`});
  assert.match(await text(page, "#banner"), /cannot be reached/);
  await page.click("#banner-retry");
  await page.locator("#audio-form").waitFor();
  assert.ok(await page.locator("#banner").isHidden());
};

fake["the keyboard alone: skip links, order, a file, words, downloads"] = async (t) => {
  const page = await t.open();
  const order = [];
  for (let i = 0; i < 12 && order.at(-1) !== "Transcribe"; ++i) {
    await page.keyboard.press("Tab");
    order.push(await focused(page));
  }
  assert.deepEqual(order, ["Skip to the input", "Skip to the result", "key-button", "file", "record", "live-button", "task", "language",
                           "times", "More options", "Transcribe"]);
  await page.setInputFiles("#file", {name: "a.wav", mimeType: "audio/wav", buffer: makeWav(20)});
  await page.locator("#audio-form [data-run]").focus();
  await page.keyboard.press("Enter");
  await isDone(page);
  await page.locator("#audio").focus();
  const stops = [];
  for (let i = 0; i < 30 && stops.at(-1) !== "copy"; ++i) {
    await page.keyboard.press("Tab");
    stops.push(await focused(page));
  }
  const own = stops.filter((each) => each !== "audio" && each !== "transcript");
  assert.deepEqual(own.slice(-3), ["0:00", "The", "copy"], "one stop for times, one for words");
  assert.equal(await page.locator(".word[role=button]").count(), 1);
  await page.locator(".word[tabindex='0']").focus();
  const moves = [["ArrowRight", "nave"], ["End", "again"], ["Home", "The"], ["ArrowLeft", "The"], ["ArrowDown", "We"],
                 ["ArrowRight", "walked"], ["ArrowUp", "The"]];
  for (const [key, expected] of moves) {
    await page.keyboard.press(key);
    assert.equal(await focused(page), expected, key);
  }
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  const now = await page.locator("#audio").evaluate((audio) => audio.currentTime);
  assert.ok(Math.abs(now - t.state.transcript.segments[1].start) < 1);
  await page.keyboard.press("Escape");
  assert.ok(await page.locator("#audio").evaluate((audio) => audio.paused));
};

const any = {};

any["every control has a name, every description exists, ids are unique"] = async (t) => {
  const page = await t.open();
  for (const folded of await page.locator("summary:visible").all()) await folded.click();
  assert.deepEqual(await namelessControls(page), []);
  const broken = await page.evaluate(() => {
    const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
    const references = [...document.querySelectorAll("[aria-describedby], [aria-labelledby], label[for]")].flatMap((each) =>
      `${each.getAttribute("aria-describedby") ?? ""} ${each.getAttribute("aria-labelledby") ?? ""} ${each.htmlFor ?? ""}`.split(/\s+/));
    return [...ids.filter((id, index) => ids.indexOf(id) !== index), ...references.filter((id) => id && !ids.includes(id))];
  });
  assert.deepEqual(broken, []);
  assert.equal(await page.locator("h1").count(), 1);
  assert.equal(await page.locator("main").count(), 1);
};

any["light and dark differ, and both can be read"] = async (t) => {
  const grounds = [];
  for (const dark of [false, true]) {
    const page = await t.open({dark});
    for (const folded of await page.locator("summary:visible").all()) await folded.click();
    grounds.push(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
    assert.deepEqual(await weakTexts(page), []);
  }
  assert.notEqual(grounds[0], grounds[1]);
};

fake["results, marks and errors can be read in light and dark"] = async (t) => {
  for (const dark of [false, true]) {
    t.state.error = null;
    const page = await t.open({dark});
    await page.setInputFiles("#file", {name: "a.wav", mimeType: "audio/wav", buffer: makeWav(20)});
    await page.click("#audio-form [data-run]");
    await isDone(page);
    await page.locator(".word").nth(3).click();
    await page.keyboard.press("Escape");
    await until("the mark", async () => (await page.locator(".word.now").count()) === 1);
    assert.deepEqual(await weakTexts(page), []);
    t.state.error = {status: 400, error: {message: "bad", param: "file"}};
    await page.click("#audio-form [data-run]");
    await page.locator("#file-error:visible").waitFor();
    assert.deepEqual(await weakTexts(page), []);
    await page.click("#key-button");
    assert.deepEqual(await weakTexts(page), []);
  }
};

fake["a narrow page shows the result when it is asked for, with long names and without scrolling sideways"] = async (t) => {
  t.state.modelId = `an-organisation/${"a-rather-long-name-".repeat(5)}`;
  t.state.transcript.segments[0].text = ` ${"unbroken".repeat(30)}`;
  t.state.abilities.languages = ["en", "de", "fr", "no_such_language_that_anyone_would_know_of_and_that_is_long"];
  const page = await t.open({width: 320, height: 640, calm: true});
  const name = `${"long_".repeat(30)}.wav`;
  await page.setInputFiles("#file", {name, mimeType: "audio/wav", buffer: makeWav(20)});
  await page.click("#audio-form [data-run]");
  await isDone(page);
  const {overflow, top} = await page.evaluate(() => ({
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    top: document.getElementById("result").getBoundingClientRect().top,
  }));
  assert.equal(overflow, 0);
  assert.ok(top < 320, `the result begins ${top} pixels below the top`);
  for (const button of await page.locator("#downloads button:visible").all()) {
    const box = await button.boundingBox();
    assert.ok(box.x >= 0 && box.x + box.width <= 320, "inside");
  }
};

fake["on a phone the result's card is as wide as the page lets it be and as high as what is in it"] = async (t) => {
  const right = {outside: [], below: 0, sideways: 0};
  t.state.delayMs = 40;
  const page = await t.open({width: 390, height: 844, calm: true});
  await page.setInputFiles("#file", {name: "a.wav", mimeType: "audio/wav", buffer: makeWav(20)});
  await page.click("#audio-form [data-run]");
  await until("a segment", async () => (await page.locator(".segment").count()) === 1);
  assert.deepEqual(await cardFaults(page), right, "while it runs");
  await isDone(page);
  assert.deepEqual(await cardFaults(page), right, "segments");
  await page.uncheck("#times");
  await page.click("#audio-form [data-run]");
  await isDone(page);
  assert.deepEqual(await cardFaults(page), right, "plain text");
  t.state.error = {status: 400, error: {message: "bad", param: "file"}};
  await page.click("#audio-form [data-run]");
  await page.locator("#file-error:visible").waitFor();
  assert.deepEqual(await cardFaults(page), right, "an error");
};

any["narrow and enlarged pages do not scroll sideways"] = async (t) => {
  for (const width of [320, 390, 700]) {
    const page = await t.open({width, height: 700});
    for (const folded of await page.locator("summary:visible").all()) await folded.click();
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(overflow, 0, `at ${width} pixels`);
    const small = await page.evaluate(() => [...document.querySelectorAll("button, select, summary")]
        .filter((each) => each.checkVisibility() && each.getBoundingClientRect().height < 20).map((each) => each.outerHTML));
    assert.deepEqual(small, []);
  }
};

any["who wants no motion gets none"] = async (t) => {
  const page = await t.open({calm: true});
  const moving = await page.evaluate(() => {
    document.getElementById("status").dataset.tone = "busy";
    return [getComputedStyle(document.getElementById("status"), "::before").animationName,
            getComputedStyle(document.querySelector(".dot")).animationName];
  });
  assert.deepEqual(moving, ["none", "none"]);
};

any["the policy is strict, and it is the policy that stops a script in the page"] = async (t) => {
  const page = await t.open();
  const response = await page.request.get(page.url());
  const policy = response.headers()["content-security-policy"] ?? "";
  for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "form-action 'none'"]) {
    assert.ok(policy.includes(part), `${part} in "${policy}"`);
  }
  assert.ok(!/unsafe|\*/.test(policy), policy);
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.wasRun = true";
    document.body.append(script);
  });
  assert.equal(await page.evaluate(() => window.wasRun), undefined);
  await until("the breach is seen", () => page.policy.length > 0);
  await until("and told on the console", () => page.problems.length > 0);
  page.policy.length = page.problems.length = 0;
};

any["text: it is run, and its answer can be taken away"] = async (t) => {
  if (t.server) t.state.abilities = kText;
  const page = await t.open();
  await page.fill("#text", "The nave was quiet.");
  await page.click(kRun);
  await isDone(page);
  assert.ok((await text(page, "#transcript")).length > 0);
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("[data-download=txt]")]);
  assert.equal(download.suggestedFilename(), "answer.txt");
};

any["gauges have numbers"] = async (t) => {
  const page = await t.open();
  for (const name of ["running", "waiting", "cacheUse", "tokensPerSecond"]) {
    await until(name, async () => (await gauge(page, name)) !== "\u2013");
  }
};

export const pageScenarios = {fake, any};
