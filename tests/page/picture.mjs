#!/usr/bin/env node
// docs/img/page.png: the page with a transcript, in Chromium, of a real server that runs already:
//   transept serve openai/whisper-tiny &
//   TRANSEPT_PAGE_NODE=build/page node tests/page/picture.mjs http://127.0.0.1:8000/ jfk.wav docs/img/page.png
import {Browser, until} from "./browser.mjs";

const [address, audio, out] = process.argv.slice(2);
if (!out) throw new Error("usage: picture.mjs ADDRESS AUDIO OUT.png");
const browser = await Browser.start();
try {
  const page = await browser.open(address, {width: 1000, height: 700, calm: true});
  await page.setInputFiles("#file", audio);
  await page.click("#audio-form [data-run]");
  await until("a transcript", async () => (await page.locator("#status").innerText()).startsWith("Done"), 60000);
  await page.evaluate(() => document.activeElement.blur());
  await page.screenshot({path: out, fullPage: true});
} finally {
  await browser.close();
}
