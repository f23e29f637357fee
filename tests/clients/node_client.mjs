// The official Node client against running servers: node node_client.mjs TEXT_URL SPEECH_URL CLIP PICTURES_URL CHAT. CHAT is a
// file: {"model", "content", "answer"}, a user's message with a picture and what the model answers to it. A line of JSON for
// every case: {"name", "problem", "events"}, the events being what streams gave, for the caller to hold against the schemas.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import OpenAI, {toFile} from 'openai';

const [textUrl, speechUrl, clip, picturesUrl, chatFile] = process.argv.slice(2);
const options = {apiKey: 'none', maxRetries: 0};
const text = new OpenAI({baseURL: `${textUrl}/v1`, ...options});
const speech = new OpenAI({baseURL: `${speechUrl}/v1`, ...options});
const pictures = new OpenAI({baseURL: `${picturesUrl}/v1`, ...options});
const seen = JSON.parse(fs.readFileSync(chatFile, 'utf8'));
const model = 'g2p', hearing = 'whisper-transcribes';

// Without what depends on earlier requests.
const counts = ({prompt_tokens_details: {cached_tokens, cached_media_tokens, ...details}, ...usage}) => ({...usage, details});

const cases = {
  async 'a completion'() {
    const answer = await text.completions.create({model, prompt: 'hello', logprobs: 1});
    assert.equal(answer.choices[0].text, 'hˈɛloʊ');
    assert.equal(answer.choices[0].finish_reason, 'stop');
    assert.equal(answer.choices[0].logprobs.tokens.length, answer.usage.completion_tokens);
  },
  async 'a list, n and a seed'() {
    const fields = {model, prompt: ['hello', 'engine'], n: 2, temperature: 1, seed: 3};
    const first = await text.completions.create(fields), second = await text.completions.create(fields);
    assert.deepEqual(first.choices.map(choice => choice.index), [0, 1, 2, 3]);
    assert.deepEqual(first.choices.map(choice => choice.text), second.choices.map(choice => choice.text));
  },
  async 'a stream with usage'(events) {
    const whole = await text.completions.create({model, prompt: 'transformer'});
    let joined = '', usage = null;
    const stream = await text.completions.create({model, prompt: 'transformer', stream: true, stream_options: {include_usage: true}});
    for await (const chunk of stream) {
      events.push(['/v1/completions', chunk]);
      joined += chunk.choices[0]?.text ?? '';
      usage = chunk.usage ?? usage;
    }
    assert.equal(joined, whole.choices[0].text);
    assert.deepEqual(counts(usage), counts(whole.usage));
  },
  async 'a chat'(events) {
    const messages = [{role: 'user', content: 'hello'}];
    const answer = await text.chat.completions.create({model, messages, logprobs: true, top_logprobs: 2});
    assert.deepEqual(answer.choices[0].message, {role: 'assistant', content: 'hˈɛloʊ', refusal: null});
    assert.equal(answer.choices[0].logprobs.content.length, answer.usage.completion_tokens);
    let joined = '', usage = null;
    const stream = await text.chat.completions.create({model, messages, stream: true, stream_options: {include_usage: true}});
    for await (const chunk of stream) {
      events.push(['/v1/chat/completions', chunk]);
      joined += chunk.choices[0]?.delta.content ?? '';
      usage = chunk.usage ?? usage;
    }
    assert.equal(joined, 'hˈɛloʊ');
    assert.deepEqual(counts(usage), counts(answer.usage));
  },
  async 'a chat by the helper for streams'() {
    const messages = [{role: 'user', content: [{type: 'text', text: 'hello'}]}];
    const last = await text.chat.completions.stream({model, messages}).finalChatCompletion();
    assert.equal(last.choices[0].message.content, 'hˈɛloʊ');
  },
  async 'a chat with tools, an image and a URL'() {
    const refused = (fields, param) => assert.rejects(text.chat.completions.create({model, messages: [{role: 'user', content: 'x'}], ...fields}),
                                                      error => error instanceof OpenAI.BadRequestError && error.param === param);
    const image = url => ({messages: [{role: 'user', content: [{type: 'image_url', image_url: {url}}]}]});
    await refused({tools: [{type: 'function', function: {name: 'f'}}]}, 'tools');
    await refused(image('data:image/png;base64,AAAA'), 'messages[0].content[0].image_url.url');
    await refused(image('https://example.org/a.png'), 'messages[0].content[0].image_url.url');
  },
  async 'a chat with a picture'(events) {
    const fields = {model: seen.model, messages: [{role: 'user', content: seen.content}], ...seen.fields};
    const answer = await pictures.chat.completions.create(fields);
    assert.equal(answer.choices[0].message.content, seen.answer);
    assert.ok(answer.usage.prompt_tokens_details.image_tokens > 0);
    assert.equal(answer.images.length, 1);
    let joined = '', usage = null;
    const stream = await pictures.chat.completions.create({...fields, stream: true, stream_options: {include_usage: true}});
    for await (const chunk of stream) {
      events.push(['/v1/chat/completions', chunk]);
      joined += chunk.choices[0]?.delta.content ?? '';
      usage = chunk.usage ?? usage;
    }
    assert.equal(joined, seen.answer);
    assert.deepEqual(counts(usage), counts(answer.usage));
    const helper = await pictures.chat.completions.stream(fields).finalChatCompletion();
    assert.equal(helper.choices[0].message.content, seen.answer);
  },
  async 'twenty pictures at once'() {
    const fields = {model: seen.model, messages: [{role: 'user', content: seen.content}], ...seen.fields};
    const answers = await Promise.all(Array.from({length: 20}, () => pictures.chat.completions.create(fields)));
    assert.deepEqual(new Set(answers.map(answer => answer.choices[0].message.content)), new Set([seen.answer]));
  },
  async 'pictures that are refused'() {
    const refused = (url, param) => assert.rejects(
      pictures.chat.completions.create({model: seen.model, messages: [{role: 'user', content: [{type: 'image_url', image_url: {url}}]}]}),
      error => error instanceof OpenAI.BadRequestError && error.param === param);
    for (const url of ['https://example.org/a.png', 'file:///etc/passwd', 'data:image/png;base64,AAAA', '']) {
      await refused(url, 'messages[0].content[0].image_url.url');
    }
  },
  async 'an explicit prompt and beams'() {
    const prompt = {encoder_prompt: 'hello', decoder_prompt: 'hˈɛ'};
    const answer = await text.completions.create({model, prompt, num_beams: 3, n: 2});
    assert.equal(answer.choices.length, 2);
    assert.equal(answer.choices[0].text, 'loʊ');
  },
  async 'fifty at once'() {
    const answers = await Promise.all(Array.from({length: 50}, () => text.completions.create({model, prompt: 'hello'})));
    assert.deepEqual(new Set(answers.map(answer => answer.choices[0].text)), new Set(['hˈɛloʊ']));
  },
  async 'models'() {
    const names = [];
    for await (const one of text.models.list()) names.push(one.id);
    assert.deepEqual(names, [model]);
    assert.equal((await text.models.retrieve(model)).id, model);
  },
  async 'a bad field'() {
    await assert.rejects(text.completions.create({model, prompt: 'x', temperature: 9}),
                         error => error instanceof OpenAI.BadRequestError && error.param === 'temperature');
  },
  async 'another model'() {
    await assert.rejects(text.completions.create({model: 'gpt-9', prompt: 'x'}),
                         error => error instanceof OpenAI.NotFoundError && error.param === 'model');
  },
  async 'a stream that is aborted'() {
    const stream = await text.completions.create({model, prompt: 'hello', ignore_eos: true, stream: true});
    for await (const chunk of stream) {
      assert.ok(chunk.id);
      break;
    }
    stream.controller.abort();
    assert.equal((await text.completions.create({model, prompt: 'hello'})).choices[0].text, 'hˈɛloʊ');
  },
  async 'a transcription in every format'() {
    const ask = response_format =>
      speech.audio.transcriptions.create({model: hearing, file: fs.createReadStream(clip), language: 'en', response_format});
    const plain = await ask('json'), verbose = await ask('verbose_json');
    assert.equal(verbose.text, plain.text);
    assert.equal(await ask('text'), plain.text + '\n');
    assert.match(await ask('srt'), /^1\n00:00:/);
    assert.match(await ask('vtt'), /^WEBVTT\n\n/);
  },
  async 'words'() {
    const answer = await speech.audio.transcriptions.create({
      model: hearing, file: await toFile(fs.readFileSync(clip), 'a.wav'), language: 'en', response_format: 'verbose_json',
      timestamp_granularities: ['word', 'segment'],
    });
    assert.ok(answer.words.length && answer.segments.length);
  },
  async 'a streamed transcription'(events) {
    const whole = await speech.audio.transcriptions.create({model: hearing, file: fs.createReadStream(clip), language: 'en'});
    let joined = '', done = [];
    const stream = await speech.audio.transcriptions.create({model: hearing, file: fs.createReadStream(clip), language: 'en', stream: true});
    for await (const event of stream) {
      events.push(['/v1/audio/transcriptions', event]);
      if (event.type === 'transcript.text.delta') joined += event.delta;
      else done.push(event.text);
    }
    assert.equal(joined, whole.text);
    assert.deepEqual(done, [whole.text]);
  },
  async 'a translation'() {
    const answer = await speech.audio.translations.create({model: hearing, file: fs.createReadStream(clip), response_format: 'verbose_json'});
    assert.equal(answer.language, 'english');
  },
  async 'audio that is none'() {
    const file = await toFile(Buffer.from('no audio at all'), 'a.wav');
    await assert.rejects(speech.audio.transcriptions.create({model: hearing, file}),
                         error => error instanceof OpenAI.BadRequestError && error.param === 'file');
  },
};

for (const [name, run] of Object.entries(cases)) {
  const events = [];
  let problem = '';
  try {
    await run(events);
  } catch (error) {
    problem = String(error.stack ?? error);
  }
  console.log(JSON.stringify({name, problem, events}));
}
