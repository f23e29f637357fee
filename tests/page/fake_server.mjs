// A server that answers as transept does, from a script: the page's files under its policy, and the routes that the
// page calls. Node's standard library alone. `state` is what a scenario sets, and where it finds what was asked.
import {readdirSync, readFileSync} from "node:fs";
import {createServer} from "node:http";
import {dirname, extname, join} from "node:path";
import {fileURLToPath} from "node:url";

import {acceptSocket} from "./fake_sockets.mjs";

const kPageDir = join(dirname(fileURLToPath(import.meta.url)), "../../src/server/page");
const policyAt = (host) => "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' blob:; "
    + `base-uri 'none'; form-action 'none'; frame-ancestors 'none'; connect-src 'self' ws://${host} wss://${host}`;
const kTypes = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
                ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"};

export const kSpeech = {task: "transcription", languages: ["en", "de", "fr", "zh", "ar"], has_timestamps: true,
                        has_word_timestamps: true};
export const kText = {task: "text", languages: ["en"], has_timestamps: false, has_word_timestamps: false};
export const kImage = {...kText, languages: [], modalities: ["image"], has_structured_answers: false};
export const kTranslation = {...kText, languages: ["en", "de", "fr"], source_target_languages: ["en", "de", "fr"]};

/** Sentences with a word every 0.4 s, as verbose_json tells them. */
export function makeTranscript(sentences) {
  const reply = {task: "transcribe", language: "english", duration: 0, text: sentences.join(" "), segments: [], words: []};
  let time = 0.2;
  sentences.forEach((sentence, id) => {
    const start = time;
    for (const word of sentence.split(" ")) {
      // As OpenAI gives them: without the punctuation.
      reply.words.push({word: word.replace(/[.,?!]/g, ""), start: time, end: time + 0.35});
      time += 0.4;
    }
    reply.segments.push({id, seek: 0, start, end: time, text: ` ${sentence}`, tokens: [], temperature: 0,
                         avg_logprob: -0.2, compression_ratio: 1.1, no_speech_prob: 0.01});
    time += 0.6;
  });
  reply.duration = time;
  reply.usage = {type: "duration", seconds: Math.ceil(time)};
  return reply;
}

export const kSentences = [
  "The nave was quiet, and the light came in from the north.",
  "We walked as far as the crossing, where the two arms of the building meet.",
  "Nobody spoke. Somewhere above us a door fell shut --> and then it was still again.",
];

export function freshState() {
  return {
    abilities: {...kSpeech}, modelId: "whisper-tiny", key: null, error: null, delayMs: 5, hang: false, cut: false, reset: false,
    withWords: true, transcript: makeTranscript(kSentences), completion: "Une réponse qui arrive peu à peu – voilà.",
    structured: {}, images: [{width: 640, height: 480, used_width: 384, used_height: 384, tiles: 1, positions: 577}],
    metrics: {running: 2, waiting: 1, cache: 0.37, tokensPerSecond: 50, readings: 0}, metricsStatus: 200,
    requests: [], aborted: 0, sockets: [],
  };
}

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function bodyOf(request) {
  return new Promise((resolve) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => resolve(Buffer.concat(chunks)));
  });
}

/** [{name, filename, value}] of a multipart body. */
function partsOf(body, contentType) {
  const boundary = /boundary=(.+)$/.exec(contentType)[1];
  return body.toString("latin1").split(`--${boundary}`).slice(1, -1).map((part) => {
    const [head, value] = [part.slice(0, part.indexOf("\r\n\r\n")), part.slice(part.indexOf("\r\n\r\n") + 4, -2)];
    return {name: /name="([^"]*)"/.exec(head)[1], filename: /filename="([^"]*)"/.exec(head)?.[1] ?? null, value};
  });
}

function sendJson(response, status, value, headers = {}) {
  response.writeHead(status, {"content-type": "application/json", ...headers});
  response.end(JSON.stringify(value));
}

/** Events cut every seven bytes, through characters and lines, each piece on its own. */
async function sendEvents(state, response, events) {
  response.writeHead(200, {"content-type": "text/event-stream; charset=utf-8"});
  const lines = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("") + (state.cut ? "" : "data: [DONE]\n\n");
  const bytes = Buffer.from(lines);
  for (let at = 0; at < bytes.length && !response.destroyed; at += 7) {
    response.write(bytes.subarray(at, at + 7));
    if (at % 70 === 0) await wait(state.delayMs);
    if (state.hang && at > bytes.length / 2) return undefined;
    if (state.reset && at > bytes.length / 2) return response.destroy();
  }
  response.end();
  return undefined;
}

const deltasOf = (text) => text.split(/(?<= )/);

function metricsText({metrics}) {
  ++metrics.readings;
  const tokens = 1000 + Math.round(metrics.tokensPerSecond * performance.now() / 1000);
  const sample = (name, type, value) => `# TYPE transept:${name} ${type}\ntransept:${name}{model_name="m"} ${value}\n`;
  return sample("num_requests_running", "gauge", metrics.running) + sample("num_requests_waiting", "gauge", metrics.waiting)
      + sample("kv_cache_usage_perc", "gauge", metrics.cache) + sample("generation_tokens_total", "counter", tokens);
}

/** A segment in a window of its own: its delta, itself with its words, and how far that is. */
function segmentEvents({transcript}, withWords) {
  const {segments, words, duration, ...head} = transcript;
  const events = segments.flatMap((segment) => [
    {type: "transcript.text.delta", delta: segment.id === 0 ? segment.text.trim() : segment.text},
    {type: "transcript.text.segment", ...segment, id: String(segment.id), speaker: "",
     ...(withWords && {words: words.filter((word) => word.start >= segment.start && word.start < segment.end)})},
    {type: "transept.progress", seconds_done: segment.end, seconds_all: duration},
  ]);
  return [...events, {type: "transcript.text.done", duration, ...head}];
}

async function answerAudio(state, body, request, response) {
  const parts = partsOf(body, request.headers["content-type"]);
  const values = (name) => parts.filter((part) => part.name === name).map((part) => part.value);
  state.requests.at(-1).parts = parts;
  const [format] = values("response_format");
  if (values("stream")[0] === "true" && format === "verbose_json") {
    const withWords = values("timestamp_granularities[]").includes("word") && state.withWords;
    return sendEvents(state, response, segmentEvents(state, withWords));
  }
  if (values("stream")[0] === "true") {
    const deltas = deltasOf(state.transcript.text).map((delta) => ({type: "transcript.text.delta", delta}));
    return sendEvents(state, response, [...deltas, {type: "transcript.text.done", text: state.transcript.text}]);
  }
  await wait(state.delayMs * 20);
  if (state.hang) return undefined;
  return response.end(`${format} of the server\n`);
}

async function answerText(state, path, body, response) {
  const fields = JSON.parse(body.toString("utf8"));
  state.requests.at(-1).fields = fields;
  if (path === "/v1/translate") {
    await wait(state.delayMs * 10);
    const translations = fields.text.map((text) => ({text: `${fields.target_lang}(${text})`}));
    return sendJson(response, 200, {translations, usage: {prompt_tokens: 5, completion_tokens: 7}});
  }
  const usage = {prompt_tokens: 4, completion_tokens: 9};
  const images = fields.prompt.multi_modal_data ? {images: state.images} : {};
  if (!fields.stream) {
    await wait(state.delayMs * 10);
    if (state.hang) return undefined;
    const {completion: text, structured} = state;
    const choice = {index: 0, text, finish_reason: "stop", ...(fields.return_structured && {structured})};
    return sendJson(response, 200, {choices: [choice], usage, ...images});
  }
  const events = deltasOf(state.completion).map((text) => ({choices: [{index: 0, text, finish_reason: null}]}));
  events.push({choices: [{index: 0, text: "", finish_reason: "stop"}]});
  events.push({choices: [], usage, ...images});
  return sendEvents(state, response, events);
}

const unauthorised = {error: {message: "Incorrect API key provided.", type: "invalid_request_error", param: null,
                              code: "invalid_api_key"}};

async function answerApi(state, path, request, response) {
  state.requests.push({path, authorization: request.headers.authorization ?? null});
  response.on("close", () => { if (!response.writableEnded) ++state.aborted; });
  const body = await bodyOf(request);
  if (state.key && request.headers.authorization !== `Bearer ${state.key}`) return sendJson(response, 401, unauthorised);
  if (path === "/v1/models") {
    const model = {id: state.modelId, object: "model", ...(state.abilities ? {transept: state.abilities} : {})};
    return sendJson(response, 200, {object: "list", data: [model]});
  }
  if (state.error) return sendJson(response, state.error.status, {error: state.error.error}, state.error.headers);
  return path.startsWith("/v1/audio/") ? answerAudio(state, body, request, response) : answerText(state, path, body, response);
}

function answerFile(path, host, response) {
  const name = path === "/" ? "index.html" : path.startsWith("/page/") ? path.slice(6) : "";
  if (!readdirSync(kPageDir).includes(name) || !(extname(name) in kTypes)) return sendJson(response, 404, {});
  response.writeHead(200, {"content-type": kTypes[extname(name)], "content-security-policy": policyAt(host),
                           "x-content-type-options": "nosniff"});
  return response.end(readFileSync(join(kPageDir, name)));
}

/** {address, state, reset(), close()}; a port that is free. */
export async function startFakeServer() {
  const held = {state: freshState()};
  const server = createServer((request, response) => {
    const {state} = held;
    const path = new URL(request.url, "http://x").pathname;
    if (path === "/metrics") {
      if (state.metricsStatus !== 200) return sendJson(response, state.metricsStatus, unauthorised);
      response.writeHead(200, {"content-type": "text/plain; version=0.0.4"});
      return response.end(metricsText(state));
    }
    return path.startsWith("/v1/") ? answerApi(state, path, request, response) : answerFile(path, request.headers.host, response);
  });
  // A session takes its configuration; all else is the scenario's to say.
  server.on("upgrade", (request, stream) => held.state.sockets.push(acceptSocket(request, stream, (socket, event) => {
    if (event.type === "session.update") socket.send({type: "session.updated", session: event.session});
  })));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    address: `http://127.0.0.1:${server.address().port}/`,
    get state() { return held.state; },
    reset(changes) {
      held.state = Object.assign(freshState(), changes);
      return held.state;
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
