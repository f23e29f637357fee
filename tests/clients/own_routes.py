"""The server's own routes by plain HTTP, and what every reply has."""
import json
import re
import shutil
from collections import Counter

from harness import near, num_unused, same


def ask(world, method, path, body=None, server=None, status=200, **more):
    """A reply held against the schemas."""
    server = server or world.text
    reply = server.wire.ask(method, path, body, **more)
    same(reply.status, status, f"{method} {path}: {reply.body[:300]!r}")
    world.check(server, method, path, reply.status, reply.headers["content-type"], reply.body)
    return reply


def test_score(world):
    one = ask(world, "POST", "/v1/score", {"prompt": "hello", "decoder_prompt": "hˈɛloʊ", "prompt_logprobs": 2}).json
    data = one["data"][0]
    parts = [entry[str(token)]["logprob"] for entry, token in zip(data["prompt_logprobs"], data["prompt_token_ids"]) if entry]
    near(data["score"], sum(parts), "score")
    other = ask(world, "POST", "/v1/score", {"prompt": "hello", "decoder_prompt": "bˈæd"}).json["data"][0]
    assert other["score"] < data["score"], "a wrong text is less probable"
    two = ask(world, "POST", "/v1/score", {"prompt": ["hello", "hello"], "decoder_prompt": ["hˈɛloʊ", "bˈæd"]}).json
    same([entry["index"] for entry in two["data"]], [0, 1])
    near(two["data"][0]["score"], data["score"], "of a list")
    near(two["data"][1]["score"], other["score"], "of a list")


def test_translate(world):
    wanted = ask(world, "POST", "/v1/completions", {"prompt": ["hello", "engine"]}).json["choices"]
    same(ask(world, "POST", "/v1/translate", {"text": "hello"}).json["translations"], [{"text": wanted[0]["text"]}])
    found = ask(world, "POST", "/v1/translate", {"text": ["hello", "engine"], "num_beams": 1}).json
    same([entry["text"] for entry in found["translations"]], [choice["text"] for choice in wanted])
    assert found["usage"]["completion_tokens"] > 0


def multilingual_model(world):
    """The tiny mBART, whose last two tokens become two languages."""
    folder = world.scratch / "mbart"
    shutil.copytree(world.models / "mbart-bfloat16", folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    model = tokenizer["model"]
    for token in sorted(model["vocab"], key=model["vocab"].get)[-2:]:
        del model["vocab"][token]
    model["merges"] = model["merges"][:-2]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokenizer["added_tokens"] += [{"id": len(model["vocab"]) + i, "content": name, **flags} for i, name in enumerate(("en_XX", "fr_XX"))]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MBartTokenizer", "src_lang": "en_XX", "tgt_lang": "fr_XX"}))
    return folder


def test_translate_into_languages(world):
    with world.serve(multilingual_model(world)) as server:
        for target in ("en_XX", "fr_XX"):
            with world.tally.case(f"translation into {target}"):
                body = {"source_lang": "en_XX", "target_lang": target, "max_tokens": 8}
                found = ask(world, "POST", "/v1/translate", {"text": ["a text", "the license"], **body}, server=server).json
                wanted = ask(world, "POST", "/v1/completions", {"prompt": ["a text", "the license"], **body}, server=server).json
                same([entry["text"] for entry in found["translations"]], [choice["text"] for choice in wanted["choices"]])
        ids = [ask(world, "POST", "/tokenize", {"prompt": "a", "source_lang": name}, server=server).json["tokens"] for name in ("en_XX", "fr_XX")]
        assert ids[0] != ids[1], "the source's language is not in the prompt"
        for field in ("source_lang", "target_lang"):
            error = ask(world, "POST", "/v1/translate", {"text": "x", field: "nowhere"}, server=server, status=400).json["error"]
            same(error["param"], field)
    error = ask(world, "POST", "/v1/translate", {"text": "x", "target_lang": "fr_XX"}, status=400).json["error"]
    same(error["param"], "target_lang", "of a model without languages")


def test_tokens_and_back(world):
    found = ask(world, "POST", "/tokenize", {"prompt": "hello", "return_token_strs": True}).json
    same((found["count"], len(found["token_strs"])), (len(found["tokens"]), len(found["tokens"])))
    bare = ask(world, "POST", "/tokenize", {"prompt": "hello", "add_special_tokens": False}).json
    assert bare["count"] < found["count"] and bare["token_strs"] is None
    same(ask(world, "POST", "/detokenize", {"tokens": bare["tokens"]}).json["prompt"].replace(" ", ""), "hello")
    assert "</s>" in ask(world, "POST", "/detokenize", {"tokens": found["tokens"], "skip_special_tokens": False}).json["prompt"]


def test_health_and_version(world):
    for path in ("/health", "/health/live", "/health/ready"):
        assert ask(world, "GET", path).json["status"]
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", ask(world, "GET", "/version").json["version"])


def test_debug_state(world):
    world.await_idle(world.text)
    state = ask(world, "GET", "/debug/state").json  # of a fleet that of one decode instance
    same((state["running"], state["waiting"], state["swapped"]), ([], [], []))
    same(state["queue"], {"requests": 0, "limit": 512})
    same(num_unused(state), state["blocks"]["total"])


def metrics(world, server=None):
    """{name and labels: value} of the metrics; of a fleet the sums over its instances."""
    server = server or world.text
    ask(world, "GET", "/metrics", server=server)
    added = Counter()
    for wire in server.insides().values():
        added.update(metrics_in(wire.get("/metrics").text))
    return added


def metrics_in(text):
    """Of one process, each family announced before its samples."""
    values, announced = {}, set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            announced.add(line.split()[2])
        elif line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            family = re.sub(r"\{.*", "", name)
            assert family in announced or re.sub(r"_(bucket|sum|count)$", "", family) in announced, f"{family} is not announced"
            assert name not in values, f"{name} comes twice"
            values[name] = float(value)
    return values


def total(values, name):
    return sum(value for key, value in values.items() if re.sub(r"\{.*", "", key) == name)


def test_metrics_count(world):
    before = metrics(world)
    answer = ask(world, "POST", "/v1/completions", {"prompt": "counted", "no_such_field": 1}).json
    world.await_idle(world.text)
    after = metrics(world)
    grown = lambda name: total(after, f"transept:{name}") - total(before, f"transept:{name}")
    same(grown("generation_tokens_total"), answer["usage"]["completion_tokens"])
    same(grown("prompt_tokens_total"), answer["usage"]["prompt_tokens_details"]["decoder_tokens"])
    same(grown("encoder_tokens_total"), answer["usage"]["prompt_tokens_details"]["encoder_tokens"])
    same(grown("unknown_request_fields_total"), 1)
    for name in ("time_to_first_token_seconds", "e2e_request_latency_seconds", "request_queue_time_seconds"):
        same(grown(f"{name}_count"), 1, name)
    same(grown("request_success_total"), 1)
    now = lambda name: total(after, f"transept:{name}")
    for name in ("num_requests_running", "num_requests_waiting"):
        same(now(name), 0, name)
    same(now("kv_cache_blocks_self") + now("kv_cache_blocks_cross"), 0, "blocks in use")
    if not world.options.through:  # a decode instance counts what it keeps as long as there is room
        same(now("kv_cache_usage_perc"), 0)


def test_metrics_count_audio(world):
    before = metrics(world, world.speech)
    reply = world.speech.wire.form("/v1/audio/transcriptions", {"file": world.tone, "language": "en"})
    same(reply.status, 200)
    world.await_idle(world.speech)
    grown = total(metrics(world, world.speech), "transept:audio_seconds_total") - total(before, "transept:audio_seconds_total")
    near(grown, world.tone_seconds, "audio_seconds_total", 0.01)


def test_the_schema_is_one(world):
    """References lead somewhere, operations have names of their own."""
    for server in (world.text, world.speech):
        document = ask(world, "GET", "/openapi.json", server=server).json
        text = json.dumps(document)
        for reference in set(re.findall(r'"\$ref": "#/components/(\w+)/(\w+)"', text)):
            assert reference[1] in document["components"][reference[0]], reference
        names = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
        same(len(names), len(set(names)), "operationId")


def test_request_ids(world):
    same(world.text.wire.get("/version", headers={"X-Request-Id": "abc-1"}).headers["x-request-id"], "abc-1")
    ids = {world.text.wire.get("/version").headers["x-request-id"] for _ in range(3)}
    same(len(ids), 3)
    same(ask(world, "POST", "/v1/completions", {"prompt": "hello"}, headers={"X-Request-Id": "abc-2"}).json["id"], "cmpl-abc-2")


def test_what_is_not_there(world):
    for method, path, status in (("GET", "/v1/nothing", 404), ("POST", "/nothing", 404), ("GET", "/v1/completions", 405),
                                 ("DELETE", "/v1/models", 405), ("GET", "/v1/models/other", 404), ("PUT", "/tokenize", 405)):
        with world.tally.case(f"{method} {path}"):
            reply = world.text.wire.ask(method, path)
            same(reply.status, status)
            same(sorted(reply.json["error"]), ["code", "message", "param", "type"])
            if status == 405:
                assert reply.headers["allow"], "405 says what is allowed"


def test_raw_streams(world):
    """What is on the wire: events of one data line each, [DONE] last and once."""
    for server, path, body in ((world.text, "/v1/completions", {"prompt": "hello", "stream": True}),
                               (world.text, "/v1/chat/completions", {"messages": [{"role": "user", "content": "hello"}], "stream": True}),
                               (world.speech, "/v1/audio/transcriptions", None)):
        with world.tally.case(f"stream of {path}"):
            if body:
                reply = server.wire.post(path, body)
            else:
                reply = server.wire.form(path, {"file": world.tone, "stream": "true"})
            same(reply.status, 200)
            assert reply.headers["content-type"].startswith("text/event-stream")
            same(reply.headers["cache-control"], "no-cache")
            assert all(block.startswith("data: ") and "\n" not in block for block in reply.text.split("\n\n")[:-1])
            assert reply.text.endswith("data: [DONE]\n\n") and reply.text.count("[DONE]") == 1
            for event in reply.events[:-1]:
                world.check_event(server, path, event)
