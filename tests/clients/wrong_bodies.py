"""Thousands of bodies that are wrong in one place: the answer is 400 (404 for a model's name) with all four keys, and names the
place. What the schema takes is never the server's fault, either: 200, or 400 for what only this model cannot do."""
import json

import jsonschema  # what wrong_values judges with: without it this module is skipped by name

from harness import Wire, same
from wrong_values import RAW, judge, mutations, request_schema, values_for

ROUTES = {"/v1/completions": {"prompt": "a", "max_tokens": 1}, "/v1/score": {"prompt": "a", "decoder_prompt": "b"},
          "/v1/translate": {"text": "a", "max_tokens": 1},
          "/v1/chat/completions": {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1}, "/tokenize": {"prompt": "a"}, "/detokenize": {"tokens": [5]}}
MEMBERS = ("encoder_prompt", "decoder_prompt", "prompt_token_ids", "prompt_tokens", "multi_modal_data")
PROMPTS = ("a", [5, 6], {"prompt": "a"}, {"prompt_token_ids": [5]}, {"prompt_tokens": [5]}, {"encoder_prompt": "a"},
           {"encoder_prompt": "a", "decoder_prompt": "b"}, {"encoder_prompt": {"prompt": "a"}, "decoder_prompt": {"prompt_token_ids": [5]}},
           {"encoder_prompt": [5], "decoder_prompt": {"prompt_tokens": [6]}}, ["a", "b"], [[5], {"prompt": "a"}], {"multi_modal_data": {"audio": "x.wav"}},
           {"prompt": "a", "multi_modal_data": {"audio": {"base64": "AAAA"}}})
MESSAGES = ([{"role": "user", "content": "a"}], [{"role": "user", "content": [{"type": "text", "text": "a"}]}],
            [{"role": "system", "content": "a", "name": "b"}, {"role": "assistant", "content": [{"type": "text", "text": "b"}], "tool_calls": None}],
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,A", "detail": "low"}}]}],
            [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}]}])
REPLACEMENTS = (None, True, 0, 1.5, -1, 2**31, "", "x", [], [5], [-1], ["x"], [None], [[]], [[5]], {}, {"x": 1}, [{}])


def check_refusal(world, path, reply, field, statuses=(400,)):
    """400 with four keys, whose param is the field, a path that begins with it, or a part of the prompt."""
    assert reply.status in statuses, f"{reply.status}: {reply.body[:300]!r}"
    error = reply.json["error"]
    same(sorted(error), ["code", "message", "param", "type"], "keys")
    assert error["message"] and error["type"], error
    world.check(world.text, "POST", path, reply.status, reply.headers["content-type"], reply.body)
    param = error["param"]
    if field is not None and param != field and not (param or "").startswith((f"{field}[", f"{field}.")):
        assert field in ("prompt", "decoder_prompt") and param in MEMBERS, f"param {param!r} of {field}: {error['message']}"


def check_taken(world, path, reply, names):
    """What the schema takes: an answer, or a reason that names a field."""
    if reply.status == 200:
        return world.check(world.text, "POST", path, 200, reply.headers["content-type"], reply.body)
    check_refusal(world, path, reply, None, (400, 404))
    param = reply.json["error"]["param"]
    assert param and (param.split("[")[0].split(".")[0] in names or param in MEMBERS), f"param {param!r} is no field"


def short(value):
    text = json.dumps(value)
    return text if len(text) < 120 else f"{text[:100]}... ({len(text)} characters)"


def test_every_field_and_every_value(world):
    document = world.text.wire.get("/openapi.json").json
    wrong = taken = 0
    for path, base in ROUTES.items():
        schema = request_schema(document, path)
        for field, field_schema in schema["properties"].items():
            is_right = judge(document, field_schema)
            for value in world.sampled(values_for(field_schema)):
                right = is_right(value)
                with world.tally.case(f"{path} {field}: {short(value)} ({'right' if right else 'wrong'})"):
                    reply = world.text.wire.post(path, {**base, field: value})
                    if right:
                        check_taken(world, path, reply, schema["properties"])
                    else:
                        check_refusal(world, path, reply, field)
                wrong, taken = wrong + (not right), taken + right
    print(f"bodies with one value changed: {wrong} wrong, {taken} right by the schema")
    assert wrong > 5000 // world.options.sample, "the generator has lost its values"
    world.await_idle(world.text)


def test_every_field_null(world):
    document = world.text.wire.get("/openapi.json").json
    for path, base in ROUTES.items():
        wanted = answer_of(world.text.wire.post(path, base))
        schema = request_schema(document, path)
        for field in schema["properties"]:
            with world.tally.case(f"{path} {field}: null"):
                reply = world.text.wire.post(path, {**base, field: None})
                if field in schema["required"] or (path, field) == ("/v1/score", "decoder_prompt"):
                    check_refusal(world, path, reply, field)
                elif field in base:  # absent as well
                    same(answer_of(reply), answer_of(world.text.wire.post(path, {k: v for k, v in base.items() if k != field})))
                else:
                    same(answer_of(reply), wanted)


def answer_of(reply):
    same(reply.status, 200, reply.text[:300])
    return {name: value for name, value in reply.json.items() if name not in ("id", "created")}


def test_every_required_field_missing(world):
    document = world.text.wire.get("/openapi.json").json
    for path, base in ROUTES.items():
        for field in request_schema(document, path)["required"]:
            with world.tally.case(f"{path} without {field}"):
                check_refusal(world, path, world.text.wire.post(path, {k: v for k, v in base.items() if k != field}), field)


def check_field(world, path, field, values):
    """Each different value of one field is taken or refused as the schema says."""
    document = world.text.wire.get("/openapi.json").json
    schema = request_schema(document, path)
    is_right, seen = judge(document, schema["properties"][field]), set()
    for value in values:
        if json.dumps(value) in seen:
            continue
        seen.add(json.dumps(value))
        right = is_right(value)
        with world.tally.case(f"{path} {field}: {short(value)} ({'right' if right else 'wrong'})"):
            reply = world.text.wire.post(path, {"max_tokens": 1, field: value})
            if right:
                check_taken(world, path, reply, schema["properties"])
            else:
                check_refusal(world, path, reply, field)


def test_prompts(world):
    for path in ("/v1/completions", "/v1/score"):
        check_field(world, path, "prompt", (changed for prompt in PROMPTS for changed in mutations(prompt, REPLACEMENTS)))


def test_messages(world):
    check_field(world, "/v1/chat/completions", "messages",
                (changed for messages in MESSAGES for changed in mutations(messages, REPLACEMENTS)))


def test_no_json(world):
    document = world.text.wire.get("/openapi.json").json
    for path, base in ROUTES.items():
        for field in request_schema(document, path)["properties"]:
            rest = json.dumps({name: value for name, value in base.items() if name != field})
            for raw in RAW:
                with world.tally.case(f"{path} {field}: {raw}"):
                    reply = world.text.wire.post(path, f'{{"{field}": {raw}, ' + rest[1:])
                    check_refusal(world, path, reply, None)
                    assert reply.json["error"]["param"] in (None, field, *base, "a"), reply.text


def test_bodies_that_are_no_object(world):
    for path in ROUTES:
        for body in (b"", b" ", b"null", b"[]", b'["a"]', b'"a"', b"1", b"true", b"{", b"}", b"{}{}", b"\xff\xfe{}", b'{"prompt": "\xff"}', b"\x00",
                     b'\xef\xbb\xbf{"prompt": "a"}x', b"<xml/>", b"prompt=a", b"a" * 100000):
            with world.tally.case(f"{path} {body[:30]!r}"):
                check_refusal(world, path, world.text.wire.post(path, body), None)


def test_content_types(world):
    for path, base in ROUTES.items():
        for kind in (None, "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp", "json"):
            with world.tally.case(f"{path} as {kind}"):
                check_refusal(world, path, world.text.wire.post(path, base, content_type=kind), None, (400, 415))
        for kind in ("application/json", "application/json; charset=utf-8", "Application/JSON", "application/vnd.x+json"):
            with world.tally.case(f"{path} as {kind}"):
                same(world.text.wire.post(path, base, content_type=kind).status, 200)


def test_depth(world):
    for path, base in ROUTES.items():
        for field in ("prompt", "user", "no_such_field"):
            for depth, status in ((62, None), (63, None), (64, 400), (65, 400), (100, 400), (100000, 400)):
                with world.tally.case(f"{path} {field} of depth {depth}"):
                    rest = json.dumps({name: value for name, value in base.items() if name != field})[1:]
                    reply = world.text.wire.post(path, f'{{"{field}": ' + "[" * depth + "]" * depth + ("" if rest == "}" else ", ") + rest)
                    assert reply.status in (200, 400) and status in (None, reply.status), f"{reply.status}: {reply.text[:200]}"
                    if reply.status == 400:
                        check_refusal(world, path, reply, None)


def test_sizes(world):
    for path, base in ROUTES.items():
        for size, statuses in ((8 * 2**20, (200, 400)), (8 * 2**20 + 1, (413,)), (9 * 2**20, (413,))):
            with world.tally.case(f"{path} of {size} bytes"):
                plain = json.dumps(base)
                body = plain[:-1] + " " * (size - len(plain)) + "}"
                reply = Wire(world.text.port).post(path, body)
                assert reply.status in statuses, f"{reply.status}: {reply.text[:200]}"
                if reply.status != 200:
                    check_refusal(world, path, reply, None, statuses)


def test_lists_of_millions(world):
    for field in ("suppress_tokens", "prompt", "bad_words", "stop", "logit_bias"):
        with world.tally.case(f"two million of {field}"):
            value = {str(i): 1 for i in range(200000)} if field == "logit_bias" else [1] * 2000001
            check_refusal(world, "/v1/completions", world.text.wire.post("/v1/completions", {"prompt": "a", field: value}), field)


def test_unknown_fields_are_passed_over(world):
    for path, base in ROUTES.items():
        wanted = answer_of(world.text.wire.post(path, base))
        for extra in ({"no_such_field": 1}, {"store": True, "metadata": {"a": "b"}}, {"": []}, {"x" * 1000: {}}, {"Temperature": 99}):
            with world.tally.case(f"{path} with {short(extra)}"):
                same(answer_of(world.text.wire.post(path, {**base, **extra})), wanted)


def test_whole_numbers_may_be_written_as_floats(world):
    wanted = world.text.wire.post("/v1/completions", {"prompt": "hello", "max_tokens": 3}).json["choices"]
    for number in ("3.0", "3e0", "0.3e1", "3.000"):
        with world.tally.case(f"max_tokens: {number}"):
            reply = world.text.wire.post("/v1/completions", f'{{"prompt": "hello", "max_tokens": {number}}}')
            same(reply.json["choices"], wanted)
