// The server's routes as functions. Addresses are relative to the page, so that it works below a proxy's prefix.
import {readEvents} from "./sse.js";

const kLargeFile = 10 << 20;  // bytes; servers may refuse what is larger
const kLargeJson = 4 << 20;
const kKeyName = "transept-api-key";

/** What the server refused, in its own words. `param` names the field, or is null. */
export class ApiError extends Error {
  constructor(message, {status = 0, param = null, retryAfter = null} = {}) {
    super(message);
    this.name = "ApiError";
    Object.assign(this, {status, param, retryAfter});
  }
}

async function errorOf(response) {
  const retryAfter = Number(response.headers.get("retry-after")) || null;
  let error = {};
  try {
    error = (await response.json()).error ?? {};
  } catch {
    // A proxy's page, or nothing: the status has to do.
  }
  const message = error.message || `The server answered ${response.status} ${response.statusText}`.trim();
  return new ApiError(message, {status: response.status, param: error.param ?? null, retryAfter});
}

const notUnderstood = () => new ApiError("The server's answer is not what this page understands.");

async function jsonOf(response) {
  try {
    return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw error.name === "SyntaxError" ? notUnderstood() : new ApiError("The connection ended before the answer did.");
  }
}

/** A server that refuses a large body closes the connection, and the browser does not read its reason. */
function endOfUpload(error, what, param) {
  if (error.status !== 0) return error;
  const reason = `The connection ended during the upload. The ${what} may be larger than the server takes.`;
  return new ApiError(reason, {param});
}

const isStream = (response) => (response.headers.get("content-type") ?? "").startsWith("text/event-stream");

/** The events of a stream; one that tells an error is thrown. */
async function* eventsOf(response) {
  for await (const event of readEvents(response.body)) {
    if (event.error) throw new ApiError(event.error.message, {param: event.error.param});
    yield event;
  }
}

function formOf(fields, file) {
  const form = new FormData();
  for (const [name, value] of fields) {
    if (value !== "" && value !== null && value !== undefined) form.append(name, value);
  }
  form.append("file", file, file.name);
  return form;
}

export class Api {
  /** askKey(reason): a promise of whether the user gave another key. */
  constructor(askKey, storage = sessionStorage) {
    this.askKey = askKey;
    this.storage = storage;
  }

  get key() { return this.storage.getItem(kKeyName) ?? ""; }
  set key(value) {
    if (value) this.storage.setItem(kKeyName, value);
    else this.storage.removeItem(kKeyName);
  }

  /** A reply that is not an error. Where a key is wanted the user is asked for one, and the request goes out again. */
  async request(path, {quiet = false, headers = {}, ...init} = {}) {
    for (;;) {
      const key = this.key;
      const sent = {...init, headers: {...headers, ...(key ? {Authorization: `Bearer ${key}`} : {})}};
      const response = await this.#send(path, sent);
      if (response.ok) return response;
      const error = await errorOf(response);
      if (error.status !== 401 || quiet) throw error;
      // Someone else's question may have brought a key meanwhile.
      if (this.key === key && !(await this.askKey(key ? error.message : ""))) throw error;
      init.signal?.throwIfAborted();
    }
  }

  async #send(path, init) {
    try {
      return await fetch(new URL(path, document.baseURI), {cache: "no-store", credentials: "same-origin", ...init});
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError("The server cannot be reached.");
    }
  }

  #postJson(path, body, signal) {
    return this.request(path, {
      method: "POST", body: JSON.stringify(body), headers: {"Content-Type": "application/json"}, signal,
    });
  }

  async models() { return (await jsonOf(await this.request("v1/models"))).data ?? []; }

  /** A WebSocket of a live session, not yet open. A browser has no headers for it: the key goes as a subprotocol. */
  realtime(model) {
    const address = new URL("v1/realtime", document.baseURI);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    address.searchParams.set("model", model);
    const key = this.key;
    return new WebSocket(address, ["realtime", ...(key ? [`openai-insecure-api-key.${key}`] : [])]);
  }

  async metrics() { return (await this.request("metrics", {quiet: true})).text(); }

  /**
   * options: model, translate, language, prompt, temperature, times ("none", "segment", "word"). Without times
   * onText(delta) hears the text grow; with times onSegment(segment with its words) and onProgress(seconds, duration) do.
   * Gives {text} with usage, or verbose_json.
   */
  async transcribe(file, options, {signal, ...listeners}) {
    const fields = [...this.#audioFields(options), ["stream", "true"]];
    if (options.times === "none") {
      fields.push(["response_format", "json"]);
    } else {
      fields.push(["stream_options[include_progress]", "true"]);
      fields.push(["response_format", "verbose_json"], ["timestamp_granularities[]", "segment"]);
      if (options.times === "word") fields.push(["timestamp_granularities[]", "word"]);
    }
    const response = await this.#postAudio(file, fields, options, signal);
    if (!isStream(response)) throw notUnderstood();
    return options.times === "none" ? this.#readText(response, listeners) : this.#readSegments(response, listeners);
  }

  /** srt or vtt as the server writes them. */
  async subtitles(file, options, format, {signal}) {
    const fields = [...this.#audioFields(options), ["response_format", format]];
    return (await this.#postAudio(file, fields, options, signal)).text();
  }

  #audioFields({model, language, prompt, temperature}) {
    return [["model", model], ["language", language], ["prompt", prompt], ["temperature", temperature]];
  }

  async #postAudio(file, fields, {translate}, signal) {
    const path = translate ? "v1/audio/translations" : "v1/audio/transcriptions";
    try {
      return await this.request(path, {method: "POST", body: formOf(fields, file), signal});
    } catch (error) {
      throw file.size < kLargeFile ? error : endOfUpload(error, "file", "file");
    }
  }

  async #readText(response, {onText}) {
    const reply = {text: ""};
    for await (const event of eventsOf(response)) {
      if (event.type === "transcript.text.delta") {
        reply.text += event.delta;
        onText(event.delta);
      } else if (event.type === "transcript.text.done") {
        reply.text = event.text;
        if (event.usage) reply.usage = event.usage;
      }
    }
    return reply;
  }

  /** The verbose_json reply that the events make together. */
  async #readSegments(response, {onSegment, onProgress}) {
    const segments = [];
    let words = null;
    let whole = {};
    for await (const {type, ...event} of eventsOf(response)) {
      if (type === "transcript.text.segment") {
        const {id, speaker, words: own, ...rest} = event;
        segments.push({id: Number(id), ...rest});
        if (own) words = [...(words ?? []), ...own];
        onSegment({...segments.at(-1), words: own ?? []});
      } else if (type === "transept.progress") {
        onProgress(event.seconds_done, event.seconds_all);
      } else if (type === "transcript.text.done") {
        whole = event;
      }
    }
    const {usage, ...head} = whole;
    return {...head, segments, ...(words && {words}), usage};
  }

  /**
   * body: fields of /v1/completions; streamed, unless it asks for a structured answer. Gives {text, finishReason,
   * usage}, and `structured` and `images` where the server does.
   */
  async complete(body, {signal, onText}) {
    const streamed = {...body, stream: true, stream_options: {include_usage: true}};
    const response = await this.#postCompletion(body.return_structured ? body : streamed, signal);
    const reply = {text: "", finishReason: null, usage: null};
    const take = (event) => {
      const choice = event.choices?.[0];
      reply.text += choice?.text ?? "";
      reply.finishReason = choice?.finish_reason ?? reply.finishReason;
      reply.usage = event.usage ?? reply.usage;
      if (event.images) reply.images = event.images;
      if (choice?.structured !== undefined) reply.structured = choice.structured;
      if (choice?.text) onText(choice.text);
    };
    if (!isStream(response)) {
      take(await jsonOf(response));
    } else {
      for await (const event of eventsOf(response)) take(event);
    }
    return reply;
  }

  async #postCompletion(body, signal) {
    try {
      return await this.#postJson("v1/completions", body, signal);
    } catch (error) {
      const picture = body.prompt.multi_modal_data?.image;
      if (!picture) throw error;
      const param = "multi_modal_data";
      if (error.status !== 413) throw picture.length < kLargeJson ? error : endOfUpload(error, "picture", param);
      throw new ApiError(`The picture is larger than the server takes: ${error.message}`, {status: 413, param});
    }
  }

  /** body: fields of /v1/translate, `text` a list. Gives {texts, detected, usage}. */
  async translate(body, {signal}) {
    const {translations = [], usage = null} = await jsonOf(await this.#postJson("v1/translate", body, signal));
    return {
      texts: translations.map((translation) => translation.text),
      detected: translations[0]?.detected_source_lang ?? null,
      usage,
    };
  }
}
