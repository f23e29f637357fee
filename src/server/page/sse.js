// Server-sent events out of a fetch reply, cut anywhere (WHATWG HTML, 9.2). No DOM.

export class SseParser {
  #line = "";
  #event = "";
  #data = [];
  #afterCr = false;
  #atStart = true;

  /** Gives the events that `text` completes, as {event, data}; an unfinished one waits for more text. */
  push(text) {
    const events = [];
    for (const char of text) {
      if (this.#atStart) {
        this.#atStart = false;
        if (char === "\uFEFF") continue;
      }
      const endsCrLf = char === "\n" && this.#afterCr;
      this.#afterCr = char === "\r";
      if (endsCrLf) continue;
      if (char !== "\n" && char !== "\r") {
        this.#line += char;
        continue;
      }
      this.#takeLine(this.#line, events);
      this.#line = "";
    }
    return events;
  }

  #takeLine(line, events) {
    if (line === "") {
      if (this.#data.length > 0) events.push({event: this.#event || "message", data: this.#data.join("\n")});
      this.#event = "";
      this.#data = [];
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    if (field === "event") this.#event = value;
  }
}

// A connection that breaks is an end like any other; who cancelled knows it already.
async function readOr(reader) {
  try {
    return await reader.read();
  } catch (error) {
    throw error.name === "AbortError" ? error : new EarlyEnd();
  }
}

/** The data of a reply's events as they come, up to [DONE]. Throws EarlyEnd if the bytes stop before it. */
export async function* readEvents(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new SseParser();
  try {
    for (;;) {
      const {done, value} = await readOr(reader);
      for (const event of parser.push(done ? decoder.decode() : decoder.decode(value, {stream: true}))) {
        if (event.data === "[DONE]") return;
        yield JSON.parse(event.data);
      }
      if (done) throw new EarlyEnd();
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

export class EarlyEnd extends Error {
  constructor() {
    super("The connection ended before the answer did. What arrived is shown.");
    this.name = "EarlyEnd";
  }
}
