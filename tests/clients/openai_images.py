"""The official Python client with pictures in its chats. What answers must be is transformers' (expected.jsonl of tests/models)."""
import asyncio

import openai

from harness import counts, same
from openai_errors import raised
from openai_text import async_client, client
from picture_model import CROSSED, WITHIN_THE_PROMPT, data_url, fields_of, first_with_picture, image_part, pictures_of, png, served, wanted_text

ROUTE = "/v1/chat/completions"
URL = "messages[0].content[0].image_url.url"


def ask(api, model, content, **fields):
    return api.chat.completions.create(model=model.name, messages=[{"role": "user", "content": content}], **fields)


def test_chats_answer_as_the_reference(world):
    for which in (WITHIN_THE_PROMPT, CROSSED):
        model, server = served(world, which)
        api = client(world, server)
        assert any(len(pictures_of(request)) > 1 for request in model.requests)
        for request in model.requests:
            with world.tally.case(f"openai-python: {which[0]} {request['id']}"):
                answer = ask(api, model, model.parts(request, which[2]), **fields_of(request))
                wanted = model.answers[request["id"]]
                same(answer.choices[0].message.content.removesuffix("</s>"), wanted_text(model, request))
                same(answer.choices[0].finish_reason, wanted["outputs"][0]["finish_reason"])
                same((answer.usage.prompt_tokens, answer.usage.completion_tokens), (len(wanted["prompt_token_ids"]), len(wanted["outputs"][0]["token_ids"])))
                same(len(getattr(answer, "images", None) or []), len(pictures_of(request)), "pictures that the answer tells of")


def test_usage_counts_the_encoders_positions(world):
    model, server = served(world, WITHIN_THE_PROMPT)
    for request in model.requests:
        answer = ask(client(world, server), model, model.parts(request, WITHIN_THE_PROMPT[2]), max_tokens=1)
        positions = model.answers[request["id"]]["prompt_token_ids"].count(36)
        same(answer.usage.to_dict()["prompt_tokens_details"].get("image_tokens", 0), positions, request["id"])
        same(sum(image["positions"] for image in getattr(answer, "images", None) or []), positions, request["id"])


def test_a_stream_is_the_whole(world):
    for which in (WITHIN_THE_PROMPT, CROSSED):
        model, server = served(world, which)
        api, request = client(world, server), first_with_picture(model)
        content = model.parts(request, which[2])
        for fields in ({}, {"n": 3, "temperature": 1.0, "seed": 5}, {"logprobs": True, "top_logprobs": 2}):
            with world.tally.case(f"openai-python: stream of {which[0]} with {fields}"):
                fields = {"max_tokens": 8, **fields}
                wanted, texts = ask(api, model, content, **fields), {}
                for chunk in ask(api, model, content, stream=True, stream_options={"include_usage": True}, **fields):
                    world.check_event(server, ROUTE, chunk.to_dict())
                    for choice in chunk.choices:
                        texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
                same(texts, {choice.index: choice.message.content for choice in wanted.choices})
                same(counts(chunk.usage.to_dict()), counts(wanted.usage.to_dict()))


def test_turns_have_pictures_of_their_own(world):
    """Pictures of several messages stand in order: the same prompt in one message."""
    model, server = served(world, WITHIN_THE_PROMPT)
    api = client(world, server)
    request = next(request for request in model.requests if len(pictures_of(request)) == 2)
    parts = model.parts(request, WITHIN_THE_PROMPT[2])
    cut = next(i for i, part in enumerate(parts) if part["type"] == "image_url") + 1
    turns = [{"role": "user", "content": parts[:cut]}, {"role": "assistant", "content": "a"}, {"role": "user", "content": parts[cut:]}]
    one = ask(api, model, [*parts[:cut], {"type": "text", "text": "a"}, *parts[cut:]], max_tokens=8)
    several = api.chat.completions.create(model=model.name, messages=turns, max_tokens=8)
    same((several.choices[0].message.content, several.usage.prompt_tokens), (one.choices[0].message.content, one.usage.prompt_tokens))


def test_many_at_once(world):
    """Other pictures beside each other, equal ones among them: each gets its own answer."""
    model, server = served(world, WITHIN_THE_PROMPT)
    requests = [request for request in model.requests if "num_beams" not in request] * 8

    async def ask_all():
        async with async_client(world, server) as api:
            return await asyncio.gather(*(ask(api, model, model.parts(request, WITHIN_THE_PROMPT[2]), **fields_of(request)) for request in requests))
    for request, answer in zip(requests, asyncio.run(ask_all())):
        same(answer.choices[0].message.content.removesuffix("</s>"), wanted_text(model, request), request["id"])
    world.await_idle(server)


def test_completions_take_the_same_pictures(world):
    model, server = served(world, CROSSED)
    request = first_with_picture(model)
    prompt = {"prompt": model.text(request["prompt"]["prompt_token_ids"]), "multi_modal_data": {"image": data_url(pictures_of(request)[0])}}
    for prompt in (prompt, {**request["prompt"], "multi_modal_data": prompt["multi_modal_data"]}):
        fields = fields_of(request)
        answer = client(world, server).completions.create(model=model.name, prompt="", **{**fields, "extra_body": {**fields["extra_body"], "prompt": prompt}})
        same(answer.choices[0].text.removesuffix("</s>"), wanted_text(model, request))


def test_a_stream_that_is_left(world):
    model, server = served(world, CROSSED)
    stream = ask(client(world, server), model, model.parts(first_with_picture(model), CROSSED[2]), stream=True, extra_body={"ignore_eos": True})
    next(iter(stream))
    stream.close()
    world.await_idle(server)


def test_what_is_refused_names_its_place(world):
    model, server = served(world, WITHIN_THE_PROMPT)
    api, good = client(world, server), image_part(png(bytes(3 * 8 * 8), 8, 8))
    address = lambda url: [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "a"}]
    whole = pictures_of(first_with_picture(model))[0]
    cut = data_url(whole[:len(whole) // 2])
    wrong = ((address("https://example.org/a.png"), URL), (address("http://127.0.0.1/a.png"), URL), (address("file:///etc/passwd"), URL), (address("a.png"), URL),
             (address(cut), URL), (address("data:image/png;base64,AAAA"), URL), (address("data:image/png;base64,%%%%"), URL),
             (address(data_url(b"GIF89a" + bytes(40))), URL), (address(""), URL), ([{"type": "image_url"}], "messages[0].content[0].image_url"),
             ([good, {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}], None), ([good] * 9, None),
             ([{"type": "video_url", "video_url": {"url": cut}}], "messages[0].content[0].type"))
    for content, param in wrong:
        with world.tally.case(f"openai-python: a picture {str(content)[:90]}"):
            error = raised(openai.BadRequestError, lambda: ask(api, model, content))
            if param is not None:
                same(error.param, param)
            assert (error.param or "").startswith("messages"), error.param
    same(ask(api, model, [good, {"type": "text", "text": "a"}], max_tokens=1).usage.completion_tokens, 1, "the server goes on")
