"""The server answers what `generate`, `transcribe`, `tokenize` and `detokenize` print for the same request: texts, reasons,
log-probabilities and errors; and a stream's pieces are the whole. Every request of tests/models goes both ways."""
import json

from harness import counts, near, read_jsonl, run_binary, same

TRANSCRIPTS = (({"language": "en"}, ("--language", "en")),
               ({"language": "de", "prompt": "Transept"}, ("--language", "de", "--initial-prompt", "Transept")),
               ({"language": "en", "temperature": "0.4"},
                ("--language", "en", "--temperature", "0.4", "--temperature-increment-on-fallback", "none")),
               ({}, ()))


def text_folders(world):
    return sorted(path.parent for path in world.models.glob("*/requests.jsonl"))


def read_file(path):
    return read_jsonl(path.read_text(encoding="utf-8")) if path.exists() else []


def printed(world, folder, requests, *flags):
    """What the binary prints for the requests, with names of our own."""
    named = [{**request, "id": str(i)} for i, request in enumerate(requests)]
    lines = "".join(json.dumps(request) + "\n" for request in named).encode()
    results = read_jsonl(run_binary(world.options.transept, *flags[:1], folder, "--input", "-", *flags[1:], stdin=lines))
    same([result["id"] for result in results], [request["id"] for request in named], "lines")
    return results


def without_id(request):
    return {name: value for name, value in request.items() if name != "id"}


def test_completions(world):
    for folder in text_folders(world):
        found = [request for name in ("requests", "beams", "alignments", "errors") for request in read_file(folder / f"{name}.jsonl")]
        requests = [{"logprobs": 2, **without_id(request)} for request in found]
        with world.serve(folder) as server:
            for request, wanted in zip(requests, printed(world, folder, requests, "generate")):
                with world.tally.case(f"completion of {folder.name}: {json.dumps(request)[:300]}"):
                    compare_completion(world, server, request, wanted)
            world.await_idle(server)


def compare_completion(world, server, request, wanted):
    reply = server.wire.post("/v1/completions", request)
    if "error" not in wanted or reply.status != 200:
        world.check(server, "POST", "/v1/completions", reply.status, reply.headers["content-type"], reply.body)
    if "error" in wanted:
        same((reply.status, reply.json["error"]), (400, wanted["error"]))
        return
    same(reply.status, 200, reply.text[:500])
    answer = reply.json
    same(len(answer["choices"]), len(wanted["outputs"]), "answers")
    for choice, output in zip(answer["choices"], wanted["outputs"]):
        same([choice[name] for name in ("index", "text", "finish_reason", "stop_reason")],
             [output[name] for name in ("index", "text", "finish_reason", "stop_reason")])
        same(choice.get("alignments"), output.get("alignments"), "alignments")
        compare_logprobs(choice["logprobs"], output)
    details = answer["usage"]["prompt_tokens_details"]
    same((details["encoder_tokens"], details["decoder_tokens"]),
         (len(wanted["encoder_prompt_token_ids"]), len(wanted["prompt_token_ids"])), "usage")
    if not any(name in request for name in ("num_beams", "use_beam_search", "best_of")):
        same(answer["usage"]["completion_tokens"], sum(len(output["token_ids"]) for output in wanted["outputs"]), "usage")


def compare_logprobs(got, output):
    same(got is None, output["logprobs"] is None, "whether there are logprobs")
    if got is None:
        return
    same(len(got["token_logprobs"]), len(output["token_ids"]), "logprobs")
    for i, (token, entry) in enumerate(zip(output["token_ids"], output["logprobs"])):
        near(got["token_logprobs"][i], entry[str(token)]["logprob"], f"logprob of token {i}")


def test_scores(world):
    for folder in text_folders(world):
        requests = [without_id(request) for request in read_file(folder / "score.jsonl")]
        with world.serve(folder) as server:
            for request, wanted in zip(requests, printed(world, folder, requests, "generate", "--score")):
                with world.tally.case(f"score of {folder.name}: {json.dumps(request)[:300]}"):
                    reply = server.wire.post("/v1/score", request)
                    world.check(server, "POST", "/v1/score", reply.status, reply.headers["content-type"], reply.body)
                    entry = reply.json["data"][0]
                    near(entry["score"], wanted["score"], "score")
                    same(entry["prompt_token_ids"], wanted["prompt_token_ids"])
                    compare_prompt_logprobs(entry["prompt_logprobs"], wanted["prompt_logprobs"])


def compare_prompt_logprobs(got, wanted):
    same([place and sorted(place) for place in got], [place and sorted(place) for place in wanted], "tokens")
    for mine, theirs in zip(got, wanted):
        for token in theirs or ():
            near(mine[token]["logprob"], theirs[token]["logprob"], token)
            same((mine[token]["rank"], mine[token]["decoded_token"]), (theirs[token]["rank"], theirs[token]["decoded_token"]))


def test_tokens(world):
    for folder in text_folders(world):
        texts = [without_id(request) for request in read_file(folder / "tokenize.jsonl")]
        ids = [without_id(request) for request in read_file(folder / "detokenize.jsonl")]
        if not texts:
            continue
        with world.serve(folder) as server:
            for request, wanted in zip(texts, printed(world, folder, texts, "tokenize")):
                with world.tally.case(f"tokens of {folder.name}: {json.dumps(request)[:300]}"):
                    body = {"prompt" if name == "text" else name: value for name, value in request.items()}
                    got = server.wire.post("/tokenize", {**body, "return_token_strs": True}).json
                    same((got["tokens"], got["token_strs"], got["count"]), (wanted["token_ids"], wanted["tokens"], len(wanted["token_ids"])))
            for request, wanted in zip(ids, printed(world, folder, ids, "detokenize")):
                with world.tally.case(f"text of {folder.name}: {json.dumps(request)[:300]}"):
                    body = {"tokens" if name == "token_ids" else name: value for name, value in request.items()}
                    same(server.wire.post("/detokenize", body).json["prompt"], wanted["text"])


def test_streams(world):
    """Pieces joined are the whole; beams, whose text is not certain before their end, are refused by name."""
    for folder in text_folders(world):
        with world.serve(folder) as server:
            for request in map(without_id, read_file(folder / "requests.jsonl")):
                with world.tally.case(f"stream of {folder.name}: {json.dumps(request)[:300]}"):
                    compare_stream(world, server, request)


def test_chats(world):
    """A turn is a prompt: of every request whose prompt is a text alone."""
    for folder in text_folders(world):
        found = [without_id(request) for request in read_file(folder / "requests.jsonl")]
        requests = [request for request in found if isinstance(request.get("prompt"), str) and "decoder_prompt" not in request]
        with world.serve(folder) as server:
            for request in requests:
                with world.tally.case(f"chat of {folder.name}: {json.dumps(request)[:300]}"):
                    compare_chat(world, server, request)


def compare_chat(world, server, request):
    kept = {name: value for name, value in request.items() if name not in ("prompt", "logprobs")}
    asked = {**kept, "messages": [{"role": "user", "content": request["prompt"]}], "logprobs": True, "top_logprobs": 1}
    wanted = server.wire.post("/v1/completions", {**request, "logprobs": 1})
    reply = server.wire.post("/v1/chat/completions", asked)
    same(reply.status, wanted.status)
    world.check(server, "POST", "/v1/chat/completions", reply.status, reply.headers["content-type"], reply.body)
    if wanted.status != 200:
        return
    same(counts(reply.json["usage"]), counts(wanted.json["usage"]))
    for mine, theirs in zip(reply.json["choices"], wanted.json["choices"], strict=True):
        same([mine["message"]["content"], mine["finish_reason"], mine["stop_reason"]], [theirs[name] for name in ("text", "finish_reason", "stop_reason")])
        same([token["logprob"] for token in mine["logprobs"]["content"]], theirs["logprobs"]["token_logprobs"])


def compare_stream(world, server, request):
    wanted = server.wire.post("/v1/completions", request)
    reply = server.wire.post("/v1/completions", {**request, "stream": True, "stream_options": {"include_usage": True}})
    if wanted.status == 200 and request.get("num_beams", 1) > 1:
        same((reply.status, reply.json["error"]["param"]), (400, "stream"))
        return
    if wanted.status != 200 or reply.status != 200:
        same((reply.status, wanted.status), (wanted.status, wanted.status))
        same(reply.json["error"], wanted.json["error"])
        return
    events = reply.events
    same(events.pop(), "[DONE]")
    for event in events:
        world.check_event(server, "/v1/completions", event)
    texts, reasons = {}, {}
    for choice in (choice for event in events for choice in event["choices"]):
        texts[choice["index"]] = texts.get(choice["index"], "") + choice["text"]
        reasons[choice["index"]] = (choice["finish_reason"], choice["stop_reason"])
    choices = wanted.json["choices"]
    same(texts, {choice["index"]: choice["text"] for choice in choices})
    same(reasons, {choice["index"]: (choice["finish_reason"], choice["stop_reason"]) for choice in choices})
    same(counts(events[-1]["usage"]), counts(wanted.json["usage"]), "usage")


# ---- speech

def transcripts(world, audio, flags):
    """{format: what `transcribe` writes}, searched as the server searches."""
    folder = world.scratch / "transcripts"
    run_binary(world.options.transept, "transcribe", world.speech.model, audio, "--beam-size", "1", "-f", "all", "-o", folder,
               "--verbose", "false", *flags)
    return {path.suffix[1:]: path.read_text(encoding="utf-8") for path in folder.glob(f"{audio.stem}.*")}


def test_transcripts(world):
    for audio in ("tone.wav", "long.wav"):
        clip = (world.scratch / audio).read_bytes()
        for fields, flags in TRANSCRIPTS:
            wanted = transcripts(world, world.scratch / audio, flags)
            post = lambda **more: world.speech.wire.form("/v1/audio/transcriptions", {**fields, **more, "file": clip})
            with world.tally.case(f"transcript of {audio} as verbose_json, {fields}"):
                compare_transcript(post(response_format="verbose_json").json, json.loads(wanted["json"]))
            with world.tally.case(f"transcript of {audio} as subtitles, {fields}"):
                same(post(response_format="srt").text, wanted["srt"])
                same(post(response_format="vtt").text, wanted["vtt"])
            with world.tally.case(f"transcript of {audio} as text, {fields}"):
                text = json.loads(wanted["json"])["text"].strip()
                same(post().json["text"], text)
                same(post(response_format="text").text, text + "\n")
                events = post(stream="true").events
                same("".join(event["delta"] for event in events[:-2]), text, "pieces")
                same(events[-2]["text"], text, "the whole at the end")


def compare_transcript(got, wanted):
    same(len(got["segments"]), len(wanted["segments"]), "segments")
    for mine, theirs in zip(got["segments"], wanted["segments"]):
        same([mine[name] for name in ("id", "seek", "start", "end", "text", "tokens", "temperature")],
             [theirs[name] for name in ("id", "seek", "start", "end", "text", "tokens", "temperature")])
        for name in ("avg_logprob", "compression_ratio", "no_speech_prob"):
            near(mine[name], theirs[name], name)


def test_words(world):
    wanted = json.loads(transcripts(world, world.tone_path, ("--language", "en", "--word-timestamps", "true"))["json"])
    got = world.speech.wire.form("/v1/audio/transcriptions", [
        ("file", world.tone), ("language", "en"), ("response_format", "verbose_json"), ("timestamp_granularities[]", "word")]).json
    words = [(word["word"].strip(), word["start"], word["end"]) for segment in wanted["segments"] for word in segment["words"]]
    same([(word["word"], word["start"], word["end"]) for word in got["words"]], words)


def test_translations(world):
    wanted = json.loads(transcripts(world, world.tone_path, ("--language", "de", "--task", "translate"))["json"])
    got = world.speech.wire.form("/v1/audio/translations", {"file": world.tone, "language": "de", "response_format": "verbose_json"}).json
    compare_transcript(got, wanted)
