"""The official Python client (openai, from PyPI) on completions and models."""
import asyncio
import json

import openai

from harness import counts, near, same

WORDS = ("hello", "transformer", "engine", "a", "speech")


def client(world, server=None, **more):
    """A client whose every whole reply is held against the schemas."""
    server = server or world.text

    def check(response):
        if not response.headers["content-type"].startswith("text/event-stream"):
            response.read()
            check_reply(world, server, response)

    more = {"api_key": "none", "max_retries": 0, **more}
    return openai.OpenAI(base_url=f"{server.url}/v1", http_client=openai.DefaultHttpxClient(event_hooks={"response": [check]}), **more)


def async_client(world, server=None, **more):
    server = server or world.text

    async def check(response):
        if not response.headers["content-type"].startswith("text/event-stream"):
            await response.aread()
            check_reply(world, server, response)

    hooks = {"response": [check]}
    more = {"api_key": "none", "max_retries": 0, **more}
    return openai.AsyncOpenAI(base_url=f"{server.url}/v1",
                              http_client=openai.DefaultAsyncHttpxClient(event_hooks=hooks), **more)


def check_reply(world, server, response):
    world.check(server, response.request.method, response.request.url.path, response.status_code, response.headers["content-type"],
                response.content)


def whole(stream, world):
    """(text of choice 0, chunks) of a stream, each chunk held against the schemas."""
    chunks = list(stream)
    for chunk in chunks:
        world.check_event(world.text, "/v1/completions", chunk.to_dict())
    return "".join(choice.text for chunk in chunks for choice in chunk.choices if choice.index == 0), chunks


# ---- completions

def test_a_text(world):
    answer = client(world).completions.create(model="g2p", prompt="hello")
    same((answer.choices[0].text, answer.choices[0].finish_reason, answer.object), ("hˈɛloʊ", "stop", "text_completion"))
    same(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)
    same(answer.model, "g2p")


def test_texts_and_their_ids_answer_alike(world):
    api = client(world)
    alone = [api.completions.create(model="g2p", prompt=word).choices[0].text for word in WORDS]
    together = api.completions.create(model="g2p", prompt=list(WORDS))
    same([choice.text for choice in together.choices], alone)
    same([choice.index for choice in together.choices], list(range(len(WORDS))))
    ids = [world.text.wire.post("/tokenize", {"prompt": word}).json["tokens"] for word in WORDS]
    same(api.completions.create(model="g2p", prompt=ids[0]).choices[0].text, alone[0])
    same([choice.text for choice in api.completions.create(model="g2p", prompt=ids).choices], alone)


def test_several_answers(world):
    one = client(world).completions.create(model="g2p", prompt=["hello", "engine"], n=3, temperature=1.2, seed=7)
    same([choice.index for choice in one.choices], list(range(6)))
    again = client(world).completions.create(model="g2p", prompt=["hello", "engine"], n=3, temperature=1.2, seed=7)
    same([c.text for c in again.choices], [c.text for c in one.choices], "a seed repeats")
    other = client(world).completions.create(model="g2p", prompt=["hello", "engine"], n=3, temperature=1.2, seed=8)
    assert [c.text for c in other.choices] != [c.text for c in one.choices], "another seed draws others"


def test_logprobs(world):
    answer = client(world).completions.create(model="g2p", prompt="hello", logprobs=3).choices[0]
    found = answer.logprobs
    same(len(found.tokens), len(found.token_logprobs))
    same("".join(found.tokens), answer.text + "</s>")
    for token, logprob, top, offset in zip(found.tokens, found.token_logprobs, found.top_logprobs, found.text_offset):
        near(top[token], logprob, token)
        assert 3 <= len(top) <= 4, top
        assert answer.text[offset:].startswith(token) or token == "</s>", (offset, token)
    same(client(world).completions.create(model="g2p", prompt="hello").choices[0].logprobs, None)


def test_stop(world):
    api = client(world)
    answer = api.completions.create(model="g2p", prompt="hello", stop="l").choices[0]
    same((answer.text, answer.finish_reason), ("hˈɛ", "stop"))
    same(api.completions.create(model="g2p", prompt="hello", stop=["oʊ", "zz"]).choices[0].text, "hˈɛl")
    short = api.completions.create(model="g2p", prompt="hello", max_tokens=2)
    same((short.choices[0].finish_reason, short.usage.completion_tokens), ("length", 2))


def test_echo(world):
    plain = client(world).completions.create(model="g2p", prompt="hello", extra_body={"decoder_prompt": "h"})
    echoed = client(world).completions.create(model="g2p", prompt="hello", echo=True, logprobs=0, extra_body={"decoder_prompt": "h"})
    assert echoed.choices[0].text.endswith(plain.choices[0].text), (echoed.choices[0].text, plain.choices[0].text)
    assert len(echoed.choices[0].text) > len(plain.choices[0].text), "echo put nothing before the answer"


def test_temperature_and_other_fields(world):
    for fields in ({"temperature": 0}, {"temperature": 2, "seed": 1}, {"top_p": 0.5, "seed": 1}, {"presence_penalty": 1.5},
                   {"frequency_penalty": -0.5}, {"best_of": 2, "temperature": 1, "seed": 3}, {"user": "someone"}, {"logit_bias": {"5": -100}}):
        with world.tally.case(f"openai-python: {fields}"):
            answer = client(world).completions.create(model="g2p", prompt="engine", **fields)
            same(len(answer.choices), 1)


def test_logit_bias_forbids(world):
    plain = client(world).completions.create(model="g2p", prompt="hello", max_tokens=1)
    first = world.text.wire.post("/tokenize", {"prompt": plain.choices[0].text, "add_special_tokens": False, "side": "decoder"}).json["tokens"]
    same(len(first), 1)
    biased = client(world).completions.create(model="g2p", prompt="hello", max_tokens=1, logit_bias={str(first[0]): -100})
    assert biased.choices[0].text != plain.choices[0].text


# ---- streams

def test_a_stream_is_the_whole(world):
    api = client(world)
    for fields in ({}, {"logprobs": 2}, {"stop": "l"}, {"max_tokens": 3}, {"temperature": 1.5, "seed": 4}, {"extra_body": {"decoder_prompt": "h"}, "echo": True}):
        with world.tally.case(f"openai-python: stream of {fields}"):
            wanted = api.completions.create(model="g2p", prompt="transformer", **fields)
            text, chunks = whole(api.completions.create(model="g2p", prompt="transformer", stream=True, **fields), world)
            same(text, wanted.choices[0].text)
            same([c.choices[0].finish_reason for c in chunks if c.choices[0].finish_reason], [wanted.choices[0].finish_reason])
            same(len({chunk.id for chunk in chunks}), 1, "ids of one answer")
            if "logprobs" in fields:
                pieces = [c.choices[0].logprobs for c in chunks if c.choices[0].logprobs]
                same([t for p in pieces for t in p.tokens], wanted.choices[0].logprobs.tokens)
                same([o for p in pieces for o in p.text_offset], wanted.choices[0].logprobs.text_offset)
                same([t for p in pieces for t in p.top_logprobs], wanted.choices[0].logprobs.top_logprobs)


def test_a_stream_of_many_answers(world):
    api = client(world)
    fields = {"model": "g2p", "prompt": ["hello", "engine"], "n": 2, "temperature": 1.0, "seed": 5}
    wanted = api.completions.create(**fields)
    texts, ends = {}, {}
    for chunk in api.completions.create(stream=True, stream_options={"include_usage": True}, **fields):
        world.check_event(world.text, "/v1/completions", chunk.to_dict())
        for choice in chunk.choices:
            assert choice.index not in ends, "a piece after the end"
            texts[choice.index] = texts.get(choice.index, "") + choice.text
            if choice.finish_reason:
                ends[choice.index] = choice.finish_reason
        last = chunk
    same([texts[i] for i in range(4)], [choice.text for choice in wanted.choices])
    same(ends, {i: choice.finish_reason for i, choice in enumerate(wanted.choices)})
    same(last.choices, [])
    same(counts(last.usage.to_dict()), counts(wanted.usage.to_dict()), "usage of the last chunk")


def test_usage_comes_only_when_asked(world):
    _, chunks = whole(client(world).completions.create(model="g2p", prompt="hello", stream=True), world)
    same([chunk.usage for chunk in chunks if chunk.usage], [])
    assert all(chunk.choices for chunk in chunks)
    _, chunks = whole(client(world).completions.create(model="g2p", prompt="hello", stream=True, stream_options={"include_usage": True}), world)
    same([chunk.usage is not None for chunk in chunks], [False] * (len(chunks) - 1) + [True])


def test_a_stream_that_is_left(world):
    stream = client(world).completions.create(model="g2p", prompt="hello", stream=True, extra_body={"ignore_eos": True})
    next(iter(stream))
    stream.close()
    world.await_idle(world.text)


# ---- many at once

def test_the_async_client(world):
    async def ask_all():
        async with async_client(world) as api:
            async def one(i):
                word = WORDS[i % len(WORDS)]
                if i % 3:
                    return word, (await api.completions.create(model="g2p", prompt=word)).choices[0].text
                text = ""
                async for chunk in await api.completions.create(model="g2p", prompt=word, stream=True):
                    world.check_event(world.text, "/v1/completions", chunk.to_dict())
                    text += "".join(choice.text for choice in chunk.choices)
                return word, text
            return await asyncio.gather(*(one(i) for i in range(90)))

    alone = {word: client(world).completions.create(model="g2p", prompt=word).choices[0].text for word in WORDS}
    for word, text in asyncio.run(ask_all()):
        with world.tally.case(f"openai-python: {word} among 90 at once"):
            same(text, alone[word])


# ---- extensions, as extra_body gives them

def test_prompt_forms(world):
    api = client(world)
    ids = world.text.wire.post("/tokenize", {"prompt": "hello"}).json["tokens"]
    plain = api.completions.create(model="g2p", prompt="hello").choices[0].text
    forms = ({"prompt": "hello"}, {"prompt_token_ids": ids}, {"prompt_tokens": ids}, ids,
             {"encoder_prompt": "hello"}, {"encoder_prompt": "hello", "decoder_prompt": None}, {"encoder_prompt": ids},
             {"encoder_prompt": {"prompt": "hello"}}, {"encoder_prompt": {"prompt_token_ids": ids}, "decoder_prompt": None})
    for form in forms:
        with world.tally.case(f"openai-python: prompt {form}"):
            same(api.completions.create(model="g2p", prompt="", extra_body={"prompt": form}).choices[0].text, plain)
    batch = api.completions.create(model="g2p", prompt="", extra_body={"prompt": list(forms)})
    same([choice.text for choice in batch.choices], [plain] * len(forms))


def test_decoder_prompts(world):
    api = client(world)
    beside = api.completions.create(model="g2p", prompt="hello", extra_body={"decoder_prompt": "hˈɛ"}).choices[0].text
    same(beside, "loʊ")
    explicit = {"encoder_prompt": "hello", "decoder_prompt": "hˈɛ"}
    same(api.completions.create(model="g2p", prompt="", extra_body={"prompt": explicit}).choices[0].text, beside)
    two = api.completions.create(model="g2p", prompt=["hello", "hello"], extra_body={"decoder_prompt": ["hˈɛ", "h"]})
    same([choice.text for choice in two.choices], [beside, "ˈɛloʊ"])


def test_beams(world):
    beams = client(world).completions.create(model="g2p", prompt="hello", n=3, extra_body={"num_beams": 4, "early_stopping": True})
    same(len(beams.choices), 3)
    same(beams.choices[0].text, "hˈɛloʊ")
    same(len({choice.text for choice in beams.choices}), 3, "beams differ")
    named = client(world).completions.create(model="g2p", prompt="hello", n=3, best_of=4, extra_body={"use_beam_search": True, "early_stopping": True})
    same([choice.text for choice in named.choices], [choice.text for choice in beams.choices])


# ---- models

def test_models(world):
    api = client(world)
    listed = list(api.models.list())
    same([model.id for model in listed], ["g2p"])
    one = api.models.retrieve("g2p")
    same((one.id, one.object, one.owned_by), ("g2p", "model", "transept"))
    same(json.loads(one.model_dump_json())["id"], listed[0].id)
