// A live session over /v1/realtime, through broken connections: sound whose text has not come is kept, and goes out
// again on the next connection. No DOM.

const kRetriesMs = [500, 1000, 2000, 4000, 8000];  // before the next try; then it is given up
const kPaddingMs = 2000;                            // kept in silence: speech is noticed late, and its beginning counts
const kMaxKeptMs = 120000;
const kFinishMs = 30000;  // for the last words after the end

/** 16-bit samples last so long. */
const lengthMs = (buffer, rate) => buffer.byteLength / 2 / rate * 1000;

export class LiveSession {
  #socket = null;
  #kept = [];        // {at, buffer}: pieces from the first unfinished turn on
  #heardMs = 0;      // of all that was pushed
  #offsetMs = 0;     // of the connection's first sample
  #turns = new Map();  // unfinished: item -> its begin in ms
  #againMs = Infinity;  // where the first turn began that a lost connection left unfinished, until one is noticed again
  #tries = 0;
  #timer = 0;
  #finish = null;    // {resolve, sent}
  #ended = false;

  /**
   * connect(): a WebSocket, not yet open. config: the `session` of session.update. Listeners: onTurn(item, ms),
   * onDelta(item, text), onOpen(item, text), onEnd(item, {text, revised, endMs}) with text null for a turn that failed,
   * onDrop(item): it will be heard again; onState("open", "waiting", "lost", or words for the user).
   */
  constructor({connect, rate, config, listeners}) {
    Object.assign(this, {connect, rate, config, listeners});
  }

  start() { this.#open(); }

  /** ArrayBuffer of 16-bit samples. */
  push(buffer) {
    if (this.#ended || this.#finish) return;
    this.#kept.push({at: this.#heardMs, buffer});
    this.#heardMs += lengthMs(buffer, this.rate);
    this.#trim();
    if (this.#isOpen()) this.#socket.send(buffer);
  }

  /** No more sound: a promise that all text has come, or that it is waited for no longer. */
  finish() {
    if (this.#ended) return Promise.resolve();
    const done = new Promise((resolve) => { this.#finish = {resolve, sent: false}; });
    setTimeout(() => this.#end(), kFinishMs);
    if (this.#isOpen()) this.#commit();
    return done;
  }

  #isOpen() { return this.#socket?.readyState === 1 && this.#socket.isReady; }

  #trim() {
    const from = Math.min(this.#heardMs - kPaddingMs, this.#againMs, ...this.#turns.values());
    const least = Math.max(from, this.#heardMs - kMaxKeptMs);
    while (this.#kept.length > 0 && this.#kept[0].at + lengthMs(this.#kept[0].buffer, this.rate) <= least) {
      this.#kept.shift();
    }
  }

  #open() {
    const socket = this.connect();
    socket.binaryType = "arraybuffer";
    socket.isReady = false;
    this.#socket = socket;
    socket.onopen = () => socket.send(JSON.stringify({type: "session.update", session: this.config}));
    socket.onmessage = ({data}) => socket === this.#socket && this.#take(JSON.parse(data));
    socket.onclose = () => socket === this.#socket && this.#lose();
  }

  // The server has taken the configuration: sound may follow.
  #begin() {
    this.#socket.isReady = true;
    this.#tries = 0;
    this.#offsetMs = this.#kept[0]?.at ?? this.#heardMs;
    for (const {buffer} of this.#kept) this.#socket.send(buffer);
    this.listeners.onState("open");
    if (this.#finish) this.#commit();
  }

  #commit() {
    this.#finish.sent = true;
    this.#socket.send(JSON.stringify({type: "input_audio_buffer.commit"}));
  }

  #lose() {
    if (this.#ended) return;
    this.#againMs = Math.min(this.#againMs, ...this.#turns.values());
    for (const item of this.#turns.keys()) this.listeners.onDrop(item);
    this.#turns.clear();
    if (this.#finish) this.#finish.sent = false;
    if (this.#tries >= kRetriesMs.length) {
      this.listeners.onState("lost");
      this.#end();
      return;
    }
    this.listeners.onState("waiting");
    this.#timer = setTimeout(() => this.#open(), kRetriesMs[this.#tries++]);
  }

  #end() {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close(1000);
    this.#finish?.resolve();
  }

  #take(event) {
    const kind = event.type.replace("conversation.item.input_audio_transcription.", "");
    const item = event.item_id;
    if (kind === "session.updated") {
      if (!this.#socket.isReady) this.#begin();
    } else if (kind === "input_audio_buffer.speech_started") {
      this.#add(item, this.#offsetMs + event.audio_start_ms);
    } else if (kind === "input_audio_buffer.committed") {
      if (!this.#turns.has(item)) this.#add(item, this.#heardMs);
      if (this.#finish?.sent) this.#finish.item = item;
    } else if (kind === "delta") {
      this.listeners.onDelta(item, event.delta);
    } else if (kind === "transept.hypothesis") {
      this.listeners.onOpen(item, event.text);
    } else if (kind === "completed" || kind === "failed") {
      this.#complete(item, event);
    } else if (kind === "error") {
      this.#fail(event.error);
    }
  }

  #add(item, ms) {
    this.#againMs = Infinity;
    this.#turns.set(item, ms);
    this.listeners.onTurn(item, ms);
  }

  #complete(item, {transcript = null, transept_revised: revised = false, usage, error}) {
    const begin = this.#turns.get(item) ?? this.#heardMs;
    const seconds = usage?.seconds ?? 0;
    this.#turns.delete(item);
    this.#trim();
    this.listeners.onEnd(item, {text: transcript, revised, endMs: begin + 1000 * seconds, error: error?.message});
    if (this.#finish?.item === item || (this.#finish?.sent && this.#finish.isEmpty && this.#turns.size === 0)) this.#end();
  }

  #fail(error) {
    if (error.code === "input_audio_buffer_commit_empty" && this.#finish) {
      this.#finish.isEmpty = true;
      if (this.#turns.size === 0) this.#end();
    } else if (!["server_draining", "session_expired"].includes(error.code)) {
      this.listeners.onState(error.message);  // the next connection follows those two
    }
  }
}
