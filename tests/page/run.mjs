#!/usr/bin/env node
// The page's tests: its modules under node --test, then the page in Chromium against a fake server, or with
// --base-url URL against a real one (what depends on the fake's script is left out then). A word filters by name.
// --microphone: a WAV file of speech that Chromium's microphone plays; scenarios of a live server want one.
//   node tests/page/run.mjs [--base-url URL] [--key KEY] [--microphone WAV] [filter]
import {spawnSync} from "node:child_process";
import {readdirSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";
import {parseArgs} from "node:util";

import {Browser} from "./browser.mjs";
import {startFakeServer} from "./fake_server.mjs";
import {imageScenarios} from "./scenarios_image.mjs";
import {liveScenarios} from "./scenarios_live.mjs";
import {pageScenarios} from "./scenarios_page.mjs";
import {speechScenarios} from "./scenarios_speech.mjs";

const kHere = dirname(fileURLToPath(import.meta.url));
const {values: options, positionals: [filter = ""]} = parseArgs({
  options: {"base-url": {type: "string"}, key: {type: "string"}, microphone: {type: "string"}}, allowPositionals: true,
});
const counts = {passed: 0, failed: 0, skipped: 0};

function runUnitTests() {
  const files = readdirSync(join(kHere, "unit")).sort().map((name) => join(kHere, "unit", name));
  const {stdout, status} = spawnSync(process.execPath, ["--test", "--test-reporter=tap", ...files], {encoding: "utf8"});
  const count = (word) => Number(new RegExp(`^# ${word} (\\d+)`, "m").exec(stdout)?.[1] ?? 0);
  counts.passed += count("pass");
  counts.failed += Math.max(count("fail"), status === 0 ? 0 : 1);
  if (status !== 0) console.log(stdout);
  console.log(`modules: ${count("pass")} passed, ${count("fail")} failed`);
}

/** What the server's model reads: "audio", "image" or "text", or null where that is not told. */
async function inputOf(address) {
  const headers = options.key ? {authorization: `Bearer ${options.key}`} : {};
  const reply = await (await fetch(new URL("v1/models", address), {headers})).json();
  const {task, modalities = []} = reply.data?.[0]?.transept ?? {};
  return modalities.includes("image") ? "image" : {transcription: "audio", text: "text"}[task] ?? null;
}

async function runScenario(browser, server, address, name, run) {
  const pages = [];
  const keyScript = options.key ? `sessionStorage.setItem("transept-api-key", ${JSON.stringify(options.key)});` : "";
  const t = {
    server,
    state: server?.reset({}),
    open: async (pageOptions = {}) => {
      const page = await browser.open(address, {...pageOptions, script: keyScript + (pageOptions.script ?? "")});
      pages.push(page);
      return page;
    },
  };
  const problems = [];
  try {
    await run(t);
  } catch (error) {
    problems.push(error.stack);
  }
  problems.push(...pages.flatMap((page) => [...page.problems, ...page.policy.map((breach) => `policy: ${breach}`)]));
  for (const page of pages) await page.close();
  ++counts[problems.length > 0 ? "failed" : "passed"];
  console.log(`${problems.length > 0 ? "FAILED" : "ok    "} ${name}`);
  for (const problem of problems) console.log(`    ${problem.replaceAll("\n", "\n    ")}`);
}

async function runScenarios() {
  const server = options["base-url"] ? null : await startFakeServer();
  const address = server ? server.address : new URL("/", options["base-url"]).href;
  const input = server ? null : await inputOf(address);
  const browser = await Browser.start({microphone: options.microphone});
  const groups = [speechScenarios, liveScenarios, imageScenarios, pageScenarios];
  const chosen = groups.flatMap((group) => [...(server ? Object.entries(group.fake) : []), ...Object.entries(group.any)]);
  counts.skipped += server ? 0 : groups.reduce((sum, group) => sum + Object.keys(group.fake).length, 0);
  try {
    for (const [name, run] of chosen) {
      const wanted = /^(audio|image|text|microphone):/.exec(name)?.[1];
      const fits = wanted === "microphone" ? input === "audio" && options.microphone : !input || !wanted || wanted === input;
      if (!name.includes(filter)) continue;
      if (fits) await runScenario(browser, server, address, name, run);
      else ++counts.skipped;
    }
  } finally {
    await browser.close();
    server?.close();
  }
}

if (!filter) runUnitTests();
try {
  await runScenarios();
} catch (error) {
  ++counts.failed;  // no browser, no server
  console.log(error.message);
}
if (counts.skipped) console.log(`skipped: ${counts.skipped} that need the fake server or another model`);
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exit(counts.failed > 0 || counts.passed === 0 ? 1 : 0);
