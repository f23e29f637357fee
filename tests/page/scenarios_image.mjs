// What a user does with pictures. Each scenario is given t, as in scenarios_speech.mjs.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";

import {until} from "./browser.mjs";
import {kImage, kText} from "./fake_server.mjs";
import {cardFaults, namelessControls, weakTexts} from "./looks.mjs";
import {makePng} from "./png.mjs";

const png = (name = "the square.png") => ({name, mimeType: "image/png", buffer: makePng(640, 480)});
const kRun = "#image-form [data-run]";
const kStructured = {...kImage, has_structured_answers: true};
const kCars = {"<OD>": {bboxes: [[64, 48, 320, 240], [160, 120, 640, 480], [600, 2, 640, 20]], labels: ["car", "a wheel", "car"]}};
const kReceipt = {menu: [{nm: "Tea", price: "2"}, {nm: "<b>Scone</b>", price: "3"}], total: "5"};

const text = (page, selector) => page.locator(selector).innerText();
const isDone = (page) => until("done", async () => (await text(page, "#status")).startsWith("Done"));
const chosen = (page) => page.locator("#image-preview:visible").waitFor();
const asked = (t) => t.state.requests.filter((each) => each.path === "/v1/completions");

async function openWith(t, changes = {}, options = {}) {
  Object.assign(t.state, {abilities: kImage, modelId: "pictures", ...changes});
  return t.open(options);
}

async function read(t, changes, options) {
  const page = await openWith(t, changes, options);
  await page.setInputFiles("#image-file", png());
  await chosen(page);
  await page.click(kRun);
  await isDone(page);
  return page;
}

const readStructured = (t, structured, options) => read(t, {abilities: kStructured, structured}, options);

async function downloaded(page, format) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(`[data-download=${format}]`)]);
  return {name: download.suggestedFilename(), text: readFileSync(await download.path(), "utf8")};
}

/** A drop or a paste of a file somewhere on the page. */
const give = (page, kind, {name, mimeType, buffer}, more = {}) => page.evaluate(([type, fileName, mime, bytes, extra]) => {
  const transfer = new DataTransfer();
  if (fileName) transfer.items.add(new File([Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0))], fileName, {type: mime}));
  if (extra.text) transfer.items.add(extra.text, "text/plain");
  const target = document.querySelector(extra.target ?? "body");
  const init = {bubbles: true, cancelable: true};
  if (type === "paste") return [target.dispatchEvent(new ClipboardEvent("paste", {...init, clipboardData: transfer}))];
  return ["dragover", "drop"].map((each) => target.dispatchEvent(new DragEvent(each, {...init, dataTransfer: transfer})));
}, [kind, name, mimeType, buffer.toString("base64"), more]);

const fake = {};

fake["a picture streams its answer, and what is asked for is what was set"] = async (t) => {
  const page = await openWith(t, {delayMs: 150});
  for (const form of ["#audio-form", "#text-form", "#mode", "#player"]) assert.ok(await page.locator(form).isHidden(), form);
  await page.setInputFiles("#image-file", png());
  await chosen(page);
  await page.fill("#image-prompt", "<CAPTION>");
  await page.click("summary:visible");
  await page.fill("#image-max-tokens", "30");
  await page.fill("#image-temperature", "0.5");
  await page.locator("#image-prompt").press("Enter");
  const seen = new Set();
  await until("done", async () => {
    seen.add(await text(page, "#transcript"));
    return (await text(page, "#status")) === "Done";
  });
  const partial = [...seen].filter((each) => each && each !== t.state.completion);
  assert.ok(partial.length > 0 && partial.every((each) => t.state.completion.startsWith(each.trimEnd())), `seen: ${partial}`);
  assert.equal(await text(page, "#transcript"), t.state.completion);
  const address = `data:image/png;base64,${png().buffer.toString("base64")}`;
  assert.deepEqual(asked(t).at(-1).fields, {
    model: "pictures", prompt: {prompt: "<CAPTION>", multi_modal_data: {image: address}}, max_tokens: 30, temperature: 0.5,
    stream: true, stream_options: {include_usage: true},
  });
  assert.match(await text(page, "#meta"),
               /^9 tokens\s+\u00b7\s+[\d.]+ s\s+\u00b7\s+picture 640 \u00d7 480, used 384 \u00d7 384, 577 positions$/);
  for (const part of ["#found", "#structured"]) assert.ok(await page.locator(part).isHidden(), part);
  assert.equal(await page.locator("[data-download]:visible").count(), 1);
  assert.deepEqual(await downloaded(page, "txt"), {name: "the square.txt", text: `${t.state.completion}\n`});
};

fake["what is left alone is not sent, and a picture may stand alone"] = async (t) => {
  await read(t);
  assert.deepEqual(Object.keys(asked(t).at(-1).fields), ["model", "prompt", "stream", "stream_options"]);
  assert.deepEqual(Object.keys(asked(t).at(-1).fields.prompt), ["multi_modal_data"]);
};

fake["a picture may be dropped or pasted anywhere, and taken away again"] = async (t) => {
  const page = await openWith(t);
  assert.deepEqual(await give(page, "drop", png("dropped.png")), [false, false]);
  await chosen(page);
  assert.equal(await text(page, "#image-drop [data-name]"), "dropped.png");
  await page.click("#image-drop [data-remove]");
  assert.ok(await page.locator("#image-preview").isHidden());
  assert.ok(await page.locator("#image-drop [data-target]").isVisible());
  await page.click(kRun);
  assert.match(await text(page, "#image-error"), /Choose, drop or paste a picture/);
  assert.equal(await page.evaluate(() => document.activeElement.id), "image-file");
  assert.equal(asked(t).length, 0);
  assert.deepEqual(await give(page, "paste", png("pasted.png")), [false]);
  await chosen(page);
  assert.equal(await text(page, "#image-drop [data-name]"), "pasted.png");
  assert.ok(await page.locator("#image-error").isHidden());
};

fake["text that is pasted into a field stays text, also where a picture comes with it"] = async (t) => {
  const page = await openWith(t);
  assert.deepEqual(await give(page, "paste", png(), {target: "#image-prompt", text: "words"}), [true]);
  assert.deepEqual(await give(page, "paste", {...png(), name: ""}, {text: "words"}), [true]);
  assert.ok(await page.locator("#image-drop [data-chosen]").isHidden());
  assert.deepEqual(await give(page, "paste", png(), {target: "#image-prompt"}), [false]);
  await chosen(page);
};

fake["models of text take no picture by paste or drop"] = async (t) => {
  const page = await openWith(t, {abilities: kText});
  assert.ok(await page.locator("#image-form").isHidden());
  assert.deepEqual(await give(page, "paste", png()), [true]);
  await give(page, "drop", png());
  assert.ok(await page.locator("#image-drop [data-chosen]").evaluate((each) => each.hidden));
};

fake["a file that is no picture is refused in words, and one that the browser cannot show is sent"] = async (t) => {
  const page = await openWith(t);
  await page.setInputFiles("#image-file", {name: "a.gif", mimeType: "image/gif", buffer: Buffer.from("GIF89a")});
  await until("told", async () => /a\.gif is not a JPEG, PNG or WebP/.test(await page.locator("#image-error").textContent()));
  assert.ok(await page.locator("#image-drop [data-target]").isVisible());
  await page.setInputFiles("#image-file", {name: "a.png", mimeType: "image/png", buffer: Buffer.from("no picture at all")});
  await page.locator("#image-note:visible").waitFor();
  assert.equal(await page.locator(".error:visible").count(), 0);
  await page.click(kRun);
  await isDone(page);
};

fake["regions lie on the picture where they are in it, at any width"] = async (t) => {
  const page = await readStructured(t, kCars);
  assert.equal(asked(t).at(-1).fields.return_structured, true);
  assert.ok(!("stream" in asked(t).at(-1).fields), "the form of a whole answer");
  assert.equal(await text(page, "#status"), "Done: 3 regions");
  for (const width of [1200, 900, 390]) {
    await page.setViewportSize({width, height: 860});
    await page.locator("#found-regions .tag text").first().waitFor();
    // Of four corners of a box the sides of its outline, without its stroke, and the picture's own as it is shown.
    const places = () => page.evaluate(() => {
      const image = document.getElementById("found-picture");
      const frame = image.getBoundingClientRect();
      const scale = Math.min(frame.width / image.naturalWidth, frame.height / image.naturalHeight);
      const [left, top] = [frame.left + (frame.width - scale * 640) / 2, frame.top + (frame.height - scale * 480) / 2];
      return [...document.querySelectorAll("#found-regions .line")].map((line) => {
        const matrix = line.getScreenCTM();
        const corners = [...line.points].map((point) => point.matrixTransform(matrix));
        return [corners[0].x - left, corners[0].y - top, corners[2].x - left, corners[2].y - top].map((v) => Math.round(v / scale));
      });
    });
    await until(`boxes at ${width}`, async () => JSON.stringify(await places())
        === JSON.stringify([[160, 120, 640, 480], [64, 48, 320, 240], [600, 2, 640, 20]]));
    await until(`words of one size at ${width}`, async () => {
      const tags = await page.evaluate(() => {
        const frame = document.getElementById("found-regions").getBoundingClientRect();
        return [...document.querySelectorAll("#found-regions .tag")].map((tag) => {
          const [box, words] = [...tag.children].map((each) => each.getBoundingClientRect());
          const fits = words.left >= box.left && words.right <= box.right && box.left >= frame.left - 1 && box.right <= frame.right + 1
              && box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1;
          return {height: Math.round(box.height), fits};
        });
      });
      return tags.length === 3 && tags.every((tag) => tag.height === 18 && tag.fits);
    });
  }
  assert.deepEqual(await page.locator("#found-regions .tag text").allTextContents(), ["2 a wheel", "1 car", "3 car"]);
  assert.deepEqual(await page.locator("#found-list button").allInnerTexts().then((all) => all.map((each) => each.replace(/\s+/g, " "))),
                   ["1 car", "2 a wheel", "3 car"]);
  assert.equal(await text(page, "#found-list li:nth-child(2) .hint"), "160, 120 to 640, 480");
  assert.ok(await page.locator("#structured").isHidden(), "there are no fields besides");
  assert.deepEqual(JSON.parse((await downloaded(page, "json")).text), kCars);
};

/** The colour that is painted at a place of the picture, given in its pixels. */
async function paintedAt(page, [width, height], [x, y]) {
  const shot = await page.locator("#found-picture").screenshot();
  return page.evaluate(async ([bytes, w, h, px, py]) => {
    const image = new Image();
    image.src = `data:image/png;base64,${bytes}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight).getContext("2d");
    canvas.drawImage(image, 0, 0);
    const scale = Math.min(image.naturalWidth / w, image.naturalHeight / h);
    const place = [(image.naturalWidth - scale * w) / 2 + scale * px, (image.naturalHeight - scale * h) / 2 + scale * py];
    return [...canvas.getImageData(Math.round(place[0]), Math.round(place[1]), 1, 1).data.slice(0, 3)];
  }, [shot.toString("base64"), width, height, x, y]);
}

fake["a tall and a wide picture keep their boxes"] = async (t) => {
  for (const [width, height] of [[60, 900], [900, 60]]) {
    const structured = {"<OD>": {bboxes: [[0, 0, width, height]], labels: ["all"]}};
    const images = [{width, height, used_width: 9, used_height: 9, tiles: 1, positions: 1}];
    const page = await openWith(t, {abilities: kStructured, structured, images});
    await page.setInputFiles("#image-file", {...png(), buffer: makePng(width, height)});
    await chosen(page);
    await page.click(kRun);
    await isDone(page);
    const off = () => page.evaluate(([w, h]) => {
      const frame = document.getElementById("found-picture").getBoundingClientRect();
      const scale = Math.min(frame.width / w, frame.height / h);
      const box = document.querySelector("#found-regions .line").getBoundingClientRect();
      return Math.max(Math.abs(box.width - scale * w), Math.abs(box.height - scale * h),
                      Math.abs(box.left + box.right - frame.left - frame.right) / 2);
    }, [width, height]);
    await until("the box is the picture's", async () => (await off()) < 3);
    // The frame of makePng() begins at a quarter.
    assert.deepEqual(await paintedAt(page, [width, height], [width / 3, height / 3]), [240, 210, 90]);
    assert.notDeepEqual(await paintedAt(page, [width, height], [width / 6, height / 3]), [240, 210, 90]);
  }
};

fake["quads, outlines and both at once are drawn; nothing found is told"] = async (t) => {
  const page = await readStructured(t, {"<OCR_WITH_REGION>": {quad_boxes: [[10, 10, 90, 20, 88, 60, 8, 50]], labels: ["Tea"]}});
  const outlines = () => page.locator("#found-regions .line").evaluateAll((all) => all.map((each) => each.getAttribute("points")));
  const again = async (structured) => {
    t.state.structured = structured;
    await page.click(kRun);
    await isDone(page);
  };
  assert.deepEqual(await outlines(), ["10,10 90,20 88,60 8,50"]);
  await again({"<REFERRING_EXPRESSION_SEGMENTATION>": {polygons: [[[1, 1, 5, 1, 5, 5], [7, 7, 9, 7, 9, 9]]], labels: [""]}});
  assert.deepEqual(await outlines(), ["1,1 5,1 5,5", "7,7 9,7 9,9"]);
  assert.match(await text(page, "#found-list"), /\(no name\)/);
  assert.equal(await text(page, "#status"), "Done: 1 region");
  await again({"<OPEN_VOCABULARY_DETECTION>": {bboxes: [[0, 0, 9, 9]], bboxes_labels: ["a"], polygons: [[[1, 1, 2, 1, 2, 2]]], polygons_labels: ["b"]}});
  assert.deepEqual(await outlines(), ["0,0 9,0 9,9 0,9", "1,1 2,1 2,2"]);
  await again({"<OD>": {bboxes: [], labels: []}});
  assert.deepEqual(await outlines(), []);
  assert.ok(await page.locator("#found-none").isVisible());
  await again({"<OD>": {bboxes: Array.from({length: 13}, (_, i) => [i, i, i + 9, i + 9]), labels: Array(13).fill("a line of text")}});
  assert.ok(await page.locator("#found-none").isHidden());
  const tags = await page.locator("#found-regions .tag text").allTextContents();
  assert.ok(tags.length === 13 && tags.every((tag) => /^\d+$/.test(tag)), `many have numbers alone: ${tags}`);
};

fake["a name shows its region alone, by pointer and by keyboard; the list is one stop"] = async (t) => {
  const page = await readStructured(t, kCars);
  const shown = () => page.locator("#found-regions.one .region.now .line").evaluateAll((all) => all.map((each) => each.getAttribute("points")));
  const kWheel = ["160,120 640,120 640,480 160,480"];
  await page.locator("#found-list button").nth(1).hover();
  assert.deepEqual(await shown(), kWheel);
  await page.mouse.move(0, 0);
  assert.deepEqual(await shown(), []);
  assert.equal(await page.locator("#found-list [tabindex='0']").count(), 1);
  await page.locator("#found-list [tabindex='0']").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  assert.deepEqual(await shown(), kWheel);
  assert.deepEqual(await page.locator("#found-list button").evaluateAll((all) => all.map((each) => each.getAttribute("aria-pressed"))),
                   ["false", "true", "false"]);
  await page.keyboard.press("Enter");
  assert.deepEqual(await shown(), []);
  const focused = () => page.evaluate(() => document.activeElement.dataset.region ?? document.activeElement.id);
  const moves = [["End", "2"], ["ArrowDown", "2"], ["Home", "0"], ["ArrowUp", "0"]];
  for (const [key, expected] of moves) {
    await page.keyboard.press(key);
    assert.equal(await focused(), expected, key);
  }
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "copy");
};

fake["fields are a block of JSON that can be copied and downloaded"] = async (t) => {
  const page = await readStructured(t, kReceipt);
  assert.ok(await page.locator("#found").isHidden());
  assert.equal(await text(page, "#structured-json"), JSON.stringify(kReceipt, null, 2));
  assert.equal(await text(page, "#transcript"), t.state.completion);
  assert.deepEqual(await downloaded(page, "json"), {name: "the square.json", text: `${JSON.stringify(kReceipt, null, 2)}\n`});
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.click("#copy-structured");
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), JSON.stringify(kReceipt, null, 2));
  await page.click("#copy");
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `${t.state.completion}\n`);
  await page.click("#image-drop [data-remove]");
  assert.ok(await page.locator("#structured").isHidden(), "it goes with its picture");
};

fake["places that are none are shown as the JSON that they are"] = async (t) => {
  const page = await readStructured(t, {"<OD>": {bboxes: [[1, 2]], labels: ["x"]}});
  assert.ok(await page.locator("#found").isHidden());
  assert.match(await text(page, "#structured-json"), /"bboxes"/);
};

fake["markup in labels and fields is text"] = async (t) => {
  const markup = "<img src=x onerror=alert(1)>";
  const page = await readStructured(t, {"<OD>": {bboxes: [[0, 0, 9, 9]], labels: [markup]}, field: markup});
  assert.match(await text(page, "#found-list"), /<img src=x onerror/);
  assert.match(await text(page, "#structured-json"), /<img src=x onerror/);
  assert.equal(await page.locator("#found-list img, #structured img, #found-regions image").count(), 0);
};

fake["errors about pictures stand beside their fields"] = async (t) => {
  const page = await openWith(t);
  await page.setInputFiles("#image-file", png());
  await chosen(page);
  const cases = [["multi_modal_data", "#image-error", "image-file"], ["prompt", "#image-prompt-error", "image-prompt"],
                 ["decoder_prompt", "#image-prompt-error", "image-prompt"],
                 ["max_tokens", "#image-max-tokens-error", "image-max-tokens"],
                 ["temperature", "#image-temperature-error", "image-temperature"]];
  for (const [param, place, control] of cases) {
    t.state.error = {status: 400, error: {message: `bad ${param}`, param}};
    await page.click(kRun);
    await until("the error", async () => (await page.locator(place).textContent()) === `bad ${param}`);
    assert.ok(await page.locator(place).isVisible());
    assert.equal(await page.locator(".error:visible").count(), 1);
    assert.equal(await page.evaluate(() => document.activeElement.id), control);
  }
  t.state.error = {status: 400, error: {message: "not here", param: "return_structured"}};
  await page.click(kRun);
  await until("beside the button", async () =>
    (await page.locator('#image-form [data-error-for="*"]').textContent()) === "return_structured: not here");
};

fake["a picture that is too large for the server is told in words"] = async (t) => {
  const page = await openWith(t);
  await page.setInputFiles("#image-file", png());
  await chosen(page);
  t.state.error = {status: 413, error: {message: "the body has 9000000 bytes; at most 8388608 are taken", param: null}};
  await page.click(kRun);
  await until("told", async () => (await page.locator("#image-error").textContent())
      === "The picture is larger than the server takes: the body has 9000000 bytes; at most 8388608 are taken");
  // A small one that is not answered is not called too large.
  await page.route("**/v1/completions", (route) => route.abort("connectionreset"));
  await page.click(kRun);
  await until("gone", async () => (await page.locator('#image-form [data-error-for="*"]').textContent()) === "The server cannot be reached.");
  await page.setInputFiles("#image-file", {...png(), buffer: Buffer.concat([png().buffer, Buffer.alloc(4 << 20)])});
  await chosen(page);
  await page.click(kRun);
  await until("cut off", async () => /connection ended during the upload. The picture may be larger/.test(await page.locator("#image-error").textContent()));
};

fake["another picture ends the run of the one before, and Cancel ends one, too"] = async (t) => {
  const page = await openWith(t, {abilities: kStructured, hang: true});
  await page.setInputFiles("#image-file", png());
  await chosen(page);
  await page.click(kRun);
  await until("asked", () => asked(t).length === 1);
  await page.setInputFiles("#image-file", png("other.png"));
  await until("aborted", () => t.state.aborted === 1);
  await until("the button is back", () => page.locator(kRun).isVisible());
  await page.click(kRun);
  await until("asked again", () => asked(t).length === 2);
  await page.click("#image-form [data-cancel]");
  await until("cancelled", async () => (await text(page, "#status")) === "Cancelled");
  assert.ok(await page.locator("#found").isHidden());
};

fake["an encode instance of pictures says so"] = async (t) => {
  const page = await openWith(t, {abilities: {...kImage, role: "encode"}});
  assert.equal(await text(page, "#encode-kind"), "pictures");
  assert.ok(await page.locator("#image-form").isHidden());
};

fake["the keyboard alone reaches the picture, its prompt and the run"] = async (t) => {
  const page = await openWith(t);
  const order = [];
  for (let i = 0; i < 12 && order.at(-1) !== "Run"; ++i) {
    await page.keyboard.press("Tab");
    order.push(await page.evaluate(() => document.activeElement.id || document.activeElement.textContent.trim()));
  }
  assert.deepEqual(order, ["Skip to the input", "Skip to the result", "key-button", "image-file", "image-prompt", "More options", "Run"]);
};

fake["pictures, their regions and errors can be read in light and dark, and every control has a name"] = async (t) => {
  for (const dark of [false, true]) {
    t.state.error = null;
    const page = await readStructured(t, {...kCars, ...kReceipt}, {dark});
    await page.locator("#found-list button").nth(1).click();
    await page.click("summary:visible");
    assert.deepEqual(await weakTexts(page), []);
    assert.deepEqual(await namelessControls(page), []);
    t.state.error = {status: 400, error: {message: "bad", param: "multi_modal_data"}};
    await page.click(kRun);
    await page.locator("#image-error:visible").waitFor();
    assert.deepEqual(await weakTexts(page), []);
  }
};

fake["on a phone a picture's result is as wide as the page lets it be"] = async (t) => {
  const long = {"<OD>": {bboxes: [[0, 0, 640, 480], [1, 1, 9, 9]], labels: ["unbroken".repeat(30), "car"]}, field: "unbroken".repeat(40)};
  for (const width of [320, 390]) {
    const page = await readStructured(t, long, {width, height: 844, calm: true});
    await page.click("summary:visible");
    assert.deepEqual(await cardFaults(page), {outside: [], below: 0, sideways: 0});
  }
};

const any = {};

any["image: a picture is read, and its answer can be taken away"] = async (t) => {
  const page = await read(t.server ? t : {...t, state: {}});
  assert.ok((await text(page, "#transcript")).length > 0);
  assert.match(await text(page, "#meta"), /picture 640 \u00d7 480, used \d+ \u00d7 \d+, /);
  assert.equal((await downloaded(page, "txt")).name, "the square.txt");
};

export const imageScenarios = {fake, any};
