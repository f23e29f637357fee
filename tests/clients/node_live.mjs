// OpenAIRealtimeWS of the official Node client, which speaks wss alone: node node_live.mjs PORT CERTIFICATE MODEL KEY FRAMES. A server's
// TLS is at PORT under the name of the certificate; FRAMES is a file of 16-bit samples at 24 kHz. A line of JSON for every case:
// {"name", "problem", "events", "transcripts"}, the events as the client gave them, for the caller to hold against types.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import OpenAI from 'openai';
import {OpenAIRealtimeWS} from 'openai/realtime/ws';

const [port, certificate, model, apiKey, framesFile] = process.argv.slice(2);
const frames = fs.readFileSync(framesFile);
const host = 'speech.example', patience = 120_000;
const here = (name, options, callback) =>
  options.all ? callback(null, [{address: '127.0.0.1', family: 4}]) : callback(null, '127.0.0.1', 4);
const client = key => new OpenAI({apiKey: key, baseURL: `https://${host}:${port}/v1`});

// Events in the order in which they came, each waited for by its type.
class Session {
  constructor(events, key = apiKey) {
    this.events = events, this.waiting = [], this.errors = [];
    this.rt = new OpenAIRealtimeWS({intent: 'transcription', options: {ca: fs.readFileSync(certificate), lookup: here}}, client(key));
    this.closed = new Promise(resolve => this.rt.socket.on('close', (code, why) => resolve([code, String(why)])));
    this.rt.on('event', event => {
      this.events.push(event);
      this.waiting = this.waiting.filter(({type, resolve}) => type !== event.type || void resolve(event));
    });
    this.rt.on('error', error => this.errors.push(error));
  }
  // The next event of the type; it must not have come yet.
  next(type) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no ${type}: ${this.errors.map(String)}`)), patience);
      this.waiting.push({type, resolve: event => (clearTimeout(timer), resolve(event))});
    });
  }
  async configure(input) {
    const updated = this.next('session.updated');
    this.rt.send({type: 'session.update', session: {type: 'transcription', audio: {input}}});
    return (await updated).session;
  }
  async open() {
    await this.next('session.created');
    return this;
  }
  append(bytes, size) {
    for (let i = 0; i < bytes.length; i += size)
      this.rt.send({type: 'input_audio_buffer.append', audio: bytes.subarray(i, i + size).toString('base64')});
  }
  async end() {
    this.rt.close();
    return this.closed;
  }
}

const completed = 'conversation.item.input_audio_transcription.completed';
const input = {format: {type: 'audio/pcm', rate: 24000}, transcription: {model, language: 'en'}, turn_detection: null};

const cases = {
  async 'commits'(events, transcripts) {
    const session = await new Session(events).open();
    assert.equal((await session.configure(input)).audio.input.turn_detection, null);
    for (const size of [frames.length, 4801, 1000]) {
      const done = session.next(completed);
      session.append(frames, size);
      session.rt.send({type: 'input_audio_buffer.commit'});
      transcripts.push((await done).transcript);
    }
    assert.equal((await session.end())[0], 1000);
    assert.deepEqual(session.errors, []);
  },
  async 'turns'(events, transcripts) {
    const session = await new Session(events).open();
    await session.configure({...input, turn_detection: {type: 'server_vad', silence_duration_ms: 700}});
    const silence = Buffer.alloc(2 * 24000 * 2), done = session.next(completed);
    session.append(Buffer.concat([silence, frames, silence]), 9600);
    transcripts.push((await done).transcript);
    await session.end();
  },
  async 'errors, after which the session goes on'(events, transcripts) {
    const session = await new Session(events).open();
    const error = session.next('error');
    session.rt.send({type: 'session.update', event_id: 'mine', session: {type: 'transcription', audio: {input: {noise_reduction: {type: 'near_field'}}}}});
    assert.equal((await error).error.event_id, 'mine');
    assert.equal(session.errors[0].error.param, 'session.audio.input.noise_reduction');
    await session.configure(input);
    const done = session.next(completed);
    session.append(frames, 48000);
    session.rt.send({type: 'input_audio_buffer.commit'});
    transcripts.push((await done).transcript);
    await session.end();
  },
  async 'four at once'(events, transcripts) {
    const speak = async () => {
      const mine = [], session = await new Session(mine).open();
      await session.configure(input);
      const done = session.next(completed);
      session.append(frames, 4800);
      session.rt.send({type: 'input_audio_buffer.commit'});
      const {item_id, transcript} = await done;
      await session.end();
      assert.ok(mine.every(event => !event.item_id || event.item_id === item_id), 'an event of another session');
      events.push(...mine);
      return transcript;
    };
    transcripts.push(...await Promise.all([speak(), speak(), speak(), speak()]));
  },
  async 'a wrong key'(events) {
    const session = new Session(events, 'wrong');
    await session.closed;
    assert.match(String(session.errors[0]), /Unexpected server response: 401/);
    assert.deepEqual(events, []);
  },
};

for (const [name, run] of Object.entries(cases)) {
  const events = [], transcripts = [];
  let problem = '';
  try {
    await run(events, transcripts);
  } catch (error) {
    problem = String(error.stack ?? error);
  }
  console.log(JSON.stringify({name, problem, events, transcripts}));
}
process.exit(0);
