"""Mistakes and overload as the official Python client raises them."""
import concurrent.futures
import time

import openai

from harness import same
from openai_text import client


def raised(kind, ask):
    """The error of that class, its body with all four keys."""
    try:
        answer = ask()
    except openai.APIStatusError as error:
        same(type(error), kind, f"class of {error}")
        body = error.body
        same(sorted(body), ["code", "message", "param", "type"], "keys")
        assert body["message"], body
        return error
    raise AssertionError(f"no error: {answer}")


def test_bad_values_name_their_field(world):
    api = client(world)
    wrong = {"temperature": 3, "n": 99, "max_tokens": 0, "top_p": 2, "logprobs": 50, "stop": ["a"] * 5, "presence_penalty": 9,
             "logit_bias": {"x": 1}, "suffix": "behind", "stream": "yes", "seed": 1.5, "best_of": 0}
    for field, value in wrong.items():
        with world.tally.case(f"openai-python: {field} {value!r}"):
            error = raised(openai.BadRequestError, lambda: api.completions.create(**{"model": "g2p", "prompt": "hello", field: value}))
            same(error.param, field)
            assert error.request_id, "no x-request-id"


def test_another_model_is_not_found(world):
    same(raised(openai.NotFoundError, lambda: client(world).completions.create(model="gpt-9", prompt="x")).param, "model")
    raised(openai.NotFoundError, lambda: client(world).models.retrieve("gpt-9"))
    speech = client(world, world.speech)
    error = raised(openai.NotFoundError, lambda: speech.audio.transcriptions.create(model="whisper-1", file=("a.wav", world.tone)))
    same(error.param, "model")


def test_routes_that_are_not_there_and_audio_for_a_model_of_text(world):
    raised(openai.NotFoundError, lambda: client(world).embeddings.create(model="g2p", input="x"))
    raised(openai.BadRequestError, lambda: client(world).audio.transcriptions.create(model="g2p", file=("a.wav", world.tone)))


def test_bad_audio_names_the_file(world):
    api = client(world, world.speech)
    for audio in (b"no audio at all", b"", b"RIFF\x10\x00\x00\x00WAVEfmt ", world.tone[:60]):
        with world.tally.case(f"openai-python: audio of {len(audio)} bytes"):
            error = raised(openai.BadRequestError, lambda: api.audio.transcriptions.create(model="whisper-transcribes", file=("a.wav", audio)))
            same(error.param, "file")


def test_bad_fields_of_forms(world):
    api = client(world, world.speech)
    wrong = ({"temperature": 1.5}, {"language": "klingon"}, {"response_format": "yaml"}, {"response_format": "diarized_json"},
             {"timestamp_granularities": ["word"]}, {"include": ["logprobs"]}, {"stream": True, "response_format": "srt"})
    for fields in wrong:
        with world.tally.case(f"openai-python: transcription with {fields}"):
            error = raised(openai.BadRequestError, lambda: api.audio.transcriptions.create(
                model="whisper-transcribes", file=("a.wav", world.tone), **fields))
            same(error.param, next(iter(fields)))


def test_keys(world):
    with world.serve(world.text.model, "--api-key", "first", "--api-key", "second") as server:
        for key in ("first", "second"):
            with world.tally.case("openai-python: a right key"):
                same(client(world, server, api_key=key).completions.create(model="g2p", prompt="hello").choices[0].text, "hˈɛloʊ")
                same(len(list(client(world, server, api_key=key).models.list())), 1)
        for key in ("wrong", "firs", "first1", "FIRST"):
            with world.tally.case(f"openai-python: the key {key}"):
                raised(openai.AuthenticationError, lambda: client(world, server, api_key=key).completions.create(model="g2p", prompt="x"))
                raised(openai.AuthenticationError, lambda: list(client(world, server, api_key=key).models.list()))
        document = server.wire.get("/openapi.json", headers={"Authorization": "Bearer first"}).json
        assert "401" in document["paths"]["/v1/completions"]["post"]["responses"]
        same(server.wire.post("/v1/completions", {"prompt": "x"}).status, 401)
        same([server.wire.get(path).status for path in ("/health", "/health/live", "/health/ready", "/", "/metrics", "/debug/state")], [200] * 6)


def test_several_names(world):
    with world.serve(world.text.model, "--served-model-name", "one", "--served-model-name", "org/two") as server:
        api = client(world, server)
        same(sorted(model.id for model in api.models.list()), ["one", "org/two"])
        for name in ("one", "org/two"):
            same(api.models.retrieve(name).id, name)
            same(api.completions.create(model=name, prompt="hello").model, name)
        raised(openai.NotFoundError, lambda: api.completions.create(model="g2p", prompt="hello"))


def test_a_full_queue(world):
    """Past the bound RateLimitError with Retry-After; a client that tries again is served in the end."""
    with world.serve(world.text.model, "--max-queued-requests", "1", "--max-num-seqs", "1") as server:
        def ask(api):
            try:
                return api.completions.create(model="g2p", prompt="hello", extra_body={"ignore_eos": True})
            except openai.APIStatusError as error:
                return error

        once = client(world, server)
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda _: ask(once), range(64)))
        refused = [answer for answer in answers if isinstance(answer, openai.APIStatusError)]
        served = {answer.choices[0].text for answer in answers if not isinstance(answer, openai.APIStatusError)}
        same({type(error) for error in refused}, {openai.RateLimitError})
        same(len(served), 1, "texts of those served")
        for error in refused:
            assert 1 <= int(error.response.headers["retry-after"]) <= 30, error.response.headers
            same(sorted(error.body), ["code", "message", "param", "type"])
        stubborn = client(world, server, max_retries=20)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: ask(stubborn), range(8)))
        same({answer.choices[0].text for answer in answers}, served)


def test_deadlines(world):
    with world.serve(world.speech.model, "--request-timeout", "0.05") as server:
        start = time.monotonic()
        error = raised(openai.InternalServerError, lambda: client(world, server, max_retries=3).audio.transcriptions.create(
            model="whisper-transcribes", file=("a.wav", world.long_tone), language="en"))
        same((error.status_code, error.response.headers["x-should-retry"]), (504, "false"))
        assert time.monotonic() - start < 10
        world.await_idle(server)
