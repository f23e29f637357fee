"""The official Python client on chats: the answers of completions, in the other spelling."""
import asyncio
import base64

import openai

from harness import counts, near, same
from openai_errors import raised
from openai_text import async_client, client

ROUTE = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "hello"}]


def chat(api, content="hello", model="g2p", **fields):
    return api.chat.completions.create(model=model, messages=[{"role": "user", "content": content}], **fields)


def text_of(answer):
    return answer.choices[0].message.content


def test_a_turn(world):
    answer = chat(client(world))
    same((text_of(answer), answer.choices[0].finish_reason, answer.object, answer.model), ("hˈɛloʊ", "stop", "chat.completion", "g2p"))
    same((answer.choices[0].message.role, answer.choices[0].message.refusal, answer.choices[0].logprobs), ("assistant", None, None))
    same(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)
    same(text_of(chat(client(world), [{"type": "text", "text": "hello"}])), "hˈɛloʊ")


def test_fields_are_those_of_completions(world):
    api = client(world)
    for fields in ({}, {"n": 3, "temperature": 1.2, "seed": 7}, {"stop": ["oʊ", "zz"]}, {"max_tokens": 2}, {"presence_penalty": 1.5}, {"top_p": 0.5, "seed": 1},
                   {"frequency_penalty": -0.5}, {"logit_bias": {"5": -100}}, {"user": "someone"}, {"extra_body": {"num_beams": 4}, "n": 3},
                   {"extra_body": {"top_k": 3, "repetition_penalty": 1.3}, "temperature": 1, "seed": 2}):
        with world.tally.case(f"openai-python: chat with {fields}"):
            wanted = api.completions.create(model="g2p", prompt="engine", **fields)
            got = chat(api, "engine", **fields)
            same([choice.message.content for choice in got.choices], [choice.text for choice in wanted.choices])
            same([choice.finish_reason for choice in got.choices], [choice.finish_reason for choice in wanted.choices])
            same(counts(got.usage.to_dict()), counts(wanted.usage.to_dict()))
    short = chat(api, max_completion_tokens=2)
    same((short.choices[0].finish_reason, short.usage.completion_tokens), ("length", 2))


def test_logprobs(world):
    answer = chat(client(world), logprobs=True, top_logprobs=3).choices[0]
    wanted = client(world).completions.create(model="g2p", prompt="hello", logprobs=3).choices[0].logprobs
    same([token.token for token in answer.logprobs.content], wanted.tokens)
    for token, logprob in zip(answer.logprobs.content, wanted.token_logprobs):
        near(token.logprob, logprob, token.token)
        same(len(token.top_logprobs), 3)
        same(bytes(token.bytes).decode(), token.token)
        near(max(top.logprob for top in token.top_logprobs), token.top_logprobs[0].logprob)
    same([token.top_logprobs for token in chat(client(world), logprobs=True).choices[0].logprobs.content], [[]] * len(wanted.tokens))


def test_a_stream_is_the_whole(world):
    api = client(world)
    for fields in ({}, {"logprobs": True, "top_logprobs": 2}, {"stop": "l"}, {"max_tokens": 3}, {"n": 3, "temperature": 1.5, "seed": 4}):
        with world.tally.case(f"openai-python: stream of a chat with {fields}"):
            wanted = chat(api, "transformer", **fields)
            texts, ends, tokens = {}, {}, {}
            for chunk in chat(api, "transformer", stream=True, stream_options={"include_usage": True}, **fields):
                world.check_event(world.text, ROUTE, chunk.to_dict())
                for choice in chunk.choices:
                    assert choice.index not in ends, "a piece after the end"
                    same(choice.delta.role, None if choice.index in texts else "assistant")
                    texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
                    tokens.setdefault(choice.index, []).extend(choice.logprobs.content if choice.logprobs else [])
                    if choice.finish_reason:
                        ends[choice.index] = choice.finish_reason
                last = chunk
            same(texts, {choice.index: choice.message.content for choice in wanted.choices})
            same(ends, {choice.index: choice.finish_reason for choice in wanted.choices})
            same((last.choices, counts(last.usage.to_dict())), ([], counts(wanted.usage.to_dict())))
            for choice in wanted.choices:
                same(tokens[choice.index], choice.logprobs.content if choice.logprobs else [])


def test_the_helper_for_streams(world):
    with client(world).chat.completions.stream(model="g2p", messages=HELLO) as stream:
        for event in stream:
            assert event.type, event
        same(text_of(stream.get_final_completion()), "hˈɛloʊ")


def test_a_stream_that_is_left(world):
    stream = chat(client(world), extra_body={"ignore_eos": True}, stream=True)
    next(iter(stream))
    stream.close()
    world.await_idle(world.text)


def test_many_at_once(world):
    async def ask():
        async with async_client(world) as api:
            return await asyncio.gather(*(api.chat.completions.create(model="g2p", messages=HELLO) for _ in range(50)))
    same({text_of(answer) for answer in asyncio.run(ask())}, {"hˈɛloʊ"})


def test_audio(world):
    api = client(world, world.speech)
    sound = base64.b64encode(world.tone).decode()
    part = {"type": "input_audio", "input_audio": {"data": sound, "format": "wav"}}
    for text in ((), ("Transept",)):
        with world.tally.case(f"openai-python: a chat of audio {text}"):
            prompt = {"multi_modal_data": {"audio": {"base64": sound}}, **({"prompt": text[0]} if text else {})}
            wanted = api.completions.create(model="whisper-transcribes", prompt="", extra_body={"prompt": prompt, "language": "en"})
            got = chat(api, [part, *({"type": "text", "text": each} for each in text)], "whisper-transcribes", extra_body={"language": "en"})
            same((text_of(got), counts(got.usage.to_dict())), (wanted.choices[0].text, counts(wanted.usage.to_dict())))
    same(raised(openai.BadRequestError, lambda: chat(api, "text alone", "whisper-transcribes")).param, "messages[0].content")


def test_what_is_refused_names_its_field(world):
    api = client(world)
    wrong = {"temperature": 3, "n": 99, "max_tokens": 0, "max_completion_tokens": 0, "top_logprobs": 50, "stop": ["a"] * 5, "logit_bias": {"x": 1},
             "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "auto", "functions": [{"name": "f"}], "function_call": "auto",
             "response_format": {"type": "json_object"}, "modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}, "logprobs": 3}
    for field, value in wrong.items():
        with world.tally.case(f"openai-python: chat with {field} {value!r}"):
            same(raised(openai.BadRequestError, lambda: chat(api, **{field: value})).param, field)
    for fields in ({"tool_choice": "none"}, {"response_format": {"type": "text"}}, {"modalities": ["text"]}):
        with world.tally.case(f"openai-python: chat with {fields}"):
            same(text_of(chat(api, **fields)), "hˈɛloʊ")
    same(raised(openai.NotFoundError, lambda: chat(api, model="gpt-9")).param, "model")


def test_messages_name_their_place(world):
    api = client(world)
    url = "messages[0].content[0].image_url.url"
    image = lambda address: [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": address}}]}]
    wrong = (([], "messages"), ([{"role": "system", "content": "Be brief."}, *HELLO], "messages[0]"), ([*HELLO, *HELLO], "messages[1]"),
             ([{"role": "tool", "tool_call_id": "a", "content": "b"}], "messages[0].role"), ([{"role": "user", "content": []}], "messages[0].content"),
             (image("https://example.org/a.png"), url), (image("file:///etc/passwd"), url), (image("data:image/png;base64,AAAA"), url))
    for messages, param in wrong:
        with world.tally.case(f"openai-python: messages {str(messages)[:100]}"):
            same(raised(openai.BadRequestError, lambda: api.chat.completions.create(model="g2p", messages=messages)).param, param)


def test_a_template(world):
    """That of --chat-template, for several turns."""
    path = world.scratch / "turns.jinja"
    path.write_text("<s>{% for m in messages %}{{ m['content'] }}{% endfor %}</s>", encoding="utf-8")
    with world.serve(world.text.model, "--chat-template", str(path)) as server:
        api = client(world, server)
        turns = [{"role": "system", "content": "he"}, {"role": "user", "content": "l"}, {"role": "assistant", "content": "l"}, {"role": "user", "content": "o"}]
        answer = api.chat.completions.create(model="g2p", messages=turns)
        wanted = api.completions.create(model="g2p", prompt="hello")
        same((text_of(answer), counts(answer.usage.to_dict())), (wanted.choices[0].text, counts(wanted.usage.to_dict())))
