// Debian's Chromium under Playwright, and what every scenario watches for: breaches of the policy, errors, requests
// that leave the server.
import {mkdtempSync, rmSync} from "node:fs";
import {createRequire} from "node:module";
import {tmpdir} from "node:os";
import {join} from "node:path";

const kArguments = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
                    "--disable-component-update", "--disable-sync", "--autoplay-policy=no-user-gesture-required",
                    "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"];

/** playwright-core from a node_modules beside this file, or below TRANSEPT_PAGE_NODE. */
function findPlaywright() {
  const bases = [process.env.TRANSEPT_PAGE_NODE && join(process.env.TRANSEPT_PAGE_NODE, "x.js"), import.meta.url];
  for (const base of bases.filter(Boolean)) {
    try {
      return createRequire(base)("playwright-core").chromium;
    } catch (error) {
      if (error.code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  throw new Error("no playwright-core: `npm install` in tests/page, or set TRANSEPT_PAGE_NODE to where it is installed");
}

export class Browser {
  /** microphone: a WAV file that the fake microphone plays once; else it beeps. */
  static async start({microphone = null} = {}) {
    const sound = microphone ? [`--use-file-for-fake-audio-capture=${microphone}%noloop`] : [];
    const profile = mkdtempSync(join(tmpdir(), "transept-page-"));
    const context = await findPlaywright().launchPersistentContext(profile, {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args: [...kArguments, ...sound],
    });
    return new Browser(context.browser() ?? context, context, profile);
  }

  constructor(browser, context, profile) {
    Object.assign(this, {browser, context, profile});
  }

  async close() {
    await this.context.close();
    rmSync(this.profile, {recursive: true, force: true});
  }

  /** A page in a tab of its own, with what it did wrong in `problems`. options: width, height, dark, calm, script. */
  async open(address, options = {}) {
    const page = await this.context.newPage();
    const problems = [];
    const policy = [];
    page.setDefaultTimeout(10000);
    await page.setViewportSize({width: options.width ?? 1200, height: options.height ?? 860});
    await page.emulateMedia({colorScheme: options.dark ? "dark" : "light", reducedMotion: options.calm ? "reduce" : null});
    await page.exposeFunction("reportBreach", (text) => policy.push(text));
    await page.addInitScript(() => document.addEventListener("securitypolicyviolation",
        (event) => window.reportBreach(`${event.violatedDirective}: ${event.blockedURI} ${event.sourceFile}`)));
    if (options.script) await page.addInitScript(options.script);
    page.on("console", (message) => {
      // Refused requests are reported on the console, too, whatever the page makes of them.
      const refused = message.text().startsWith("Failed to load resource");
      if (message.type() === "error" && !refused) problems.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
    page.on("websocket", (socket) => {
      if (!socket.url().startsWith(address.replace(/^http/, "ws"))) problems.push(`outside: ${socket.url()}`);
    });
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(address) && !/^(blob|data):/.test(url)) problems.push(`outside: ${url}`);
    });
    await page.goto(address);
    await page.locator("form[novalidate]:visible, #encode-note:visible, #banner:visible, dialog[open]").first().waitFor();
    return Object.assign(page, {problems, policy});
  }
}

/** Waits until `look` gives something true; its last value is in the error. */
export async function until(what, look, timeoutMs = 8000) {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const value = await look();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited in vain: ${what} (${JSON.stringify(value)})`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
