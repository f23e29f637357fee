"""The official Python client on transcriptions and translations: all formats, streams, granularities."""
import asyncio
import struct

from harness import SHARED, near, same
from openai_text import async_client, client

MODEL = "whisper-transcribes"


def transcribe(world, audio=None, api=None, **fields):
    api = api or client(world, world.speech)
    return api.audio.transcriptions.create(model=MODEL, file=("clip.wav", audio or world.tone), **{"language": "en", **fields})


def test_json(world):
    answer = transcribe(world)
    assert answer.text, "no text"
    same((answer.usage.type, answer.usage.seconds), ("duration", world.tone_seconds))
    same(transcribe(world, response_format="json").text, answer.text)


def test_text(world):
    same(transcribe(world, response_format="text"), transcribe(world).text + "\n")


def test_srt(world):
    found = transcribe(world, response_format="srt")
    assert found.startswith("1\n00:00:"), found[:40]
    same(found.count(" --> "), len(transcribe(world, response_format="verbose_json").segments))


def test_vtt(world):
    found = transcribe(world, response_format="vtt")
    assert found.startswith("WEBVTT\n\n00:"), found[:40]
    same(found.count(" --> "), len(transcribe(world, response_format="verbose_json").segments))


def test_verbose_json(world):
    found = transcribe(world, response_format="verbose_json")
    same((found.language, found.to_dict()["task"]), ("english", "transcribe"))
    near(found.duration, world.tone_seconds, "duration", 0.01)
    same(found.text, "".join(segment.text for segment in found.segments).strip())
    for i, segment in enumerate(found.segments):
        same(segment.id, i)
        assert 0 <= segment.start <= segment.end <= found.duration + 30, segment
    same(found.words, None)


def test_granularities(world):
    words = transcribe(world, response_format="verbose_json", timestamp_granularities=["word"])
    assert words.words and words.segments is None, words
    both = transcribe(world, response_format="verbose_json", timestamp_granularities=["word", "segment"])
    same([word.to_dict() for word in both.words], [word.to_dict() for word in words.words])
    assert both.segments
    segments = transcribe(world, response_format="verbose_json", timestamp_granularities=["segment"])
    assert segments.words is None and segments.segments
    times = [time for word in words.words for time in (word.start, word.end)]
    assert all(0 <= time <= world.tone_seconds + 30 for time in times), times


def test_streams(world):
    for fields in ({}, {"response_format": "text"}, {"response_format": "json"}):
        with world.tally.case(f"openai-python: stream of a transcript {fields}"):
            wanted = transcribe(world, audio=world.long_tone).text
            events = list(transcribe(world, audio=world.long_tone, stream=True, **fields))
            for event in events:
                world.check_event(world.speech, "/v1/audio/transcriptions", event.to_dict())
            same([event.type for event in events[-1:]], ["transcript.text.done"])
            same({event.type for event in events[:-1]}, {"transcript.text.delta"})
            same("".join(event.delta for event in events[:-1]), wanted)
            same(events[-1].text, wanted)
            assert len(events) > 2, "one piece alone: it did not come as it was decoded"
            same(events[-1].usage.type, "tokens")


def test_verbose_streams(world):
    """The events are the reply that is not streamed, in pieces."""
    fields = {"response_format": "verbose_json", "timestamp_granularities": ["word", "segment"], "audio": world.long_tone}
    wanted = transcribe(world, **fields)
    plain = [event.to_dict()["type"] for event in transcribe(world, stream=True, **fields)]
    same(set(plain[:-1]), {"transcript.text.delta", "transcript.text.segment"})
    progress = {"extra_body": {"stream_options": {"include_progress": True}}}
    events = [event.to_dict() for event in transcribe(world, stream=True, **fields, **progress)]
    for event in events:
        world.check_event(world.speech, "/v1/audio/transcriptions", event)
    same({event["type"] for event in events[:-1]}, {"transcript.text.delta", "transcript.text.segment", "transept.progress"})
    told = [event for event in events if event["type"] == "transcript.text.segment"]
    segments = [{"speaker": "", **segment.to_dict(), "id": str(segment.id)} for segment in wanted.segments]
    same([{name: value for name, value in event.items() if name not in ("type", "words")} for event in told], segments)
    same([word for event in told for word in event["words"]], [word.to_dict() for word in wanted.words])
    same([event["seconds_done"] for event in events if event["type"] == "transept.progress"][-1], world.long_seconds)
    head = {name: value for name, value in wanted.to_dict().items() if name not in ("segments", "words", "usage")}
    same({name: value for name, value in events[-1].items() if name != "usage"}, {"type": "transcript.text.done", **head})
    same(events[-1]["usage"]["type"], "tokens")


def test_silence(world):
    """45 s of it have no text on any path; with --skip-silence off, and with vad_filter=false, they are decoded."""
    silence = b"RIFF" + struct.pack("<I", 36 + 2 * 720000) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 16000, 32000, 2, 16)
    silence += b"data" + struct.pack("<I", 2 * 720000) + bytes(2 * 720000)
    words = {"response_format": "verbose_json", "timestamp_granularities": ["word", "segment"]}
    for fields in ({}, {"response_format": "verbose_json"}, words, {"extra_body": {"beam_size": 5}}, {"chunking_strategy": "auto"}):
        with world.tally.case(f"openai-python: silence with {fields}"):
            same(transcribe(world, audio=silence, **fields).text, "")
    for fields in ({}, words):
        events = [event.to_dict() for event in transcribe(world, audio=silence, stream=True, **fields)]
        same([event["text"] for event in events if "text" in event], [""])
    assert transcribe(world, audio=silence, extra_body={"vad_filter": False}).text, "vad_filter=false was not heard"
    with world.serve(world.models / "whisper-transcribes", "--skip-silence", "off") as server:
        assert transcribe(world, audio=silence, api=client(world, server)).text, "--skip-silence off was not heard"


def test_fields_of_others(world):
    """What OpenAI has not, in extra_body."""
    greedy = transcribe(world, audio=world.long_tone).text
    beams = transcribe(world, audio=world.long_tone, extra_body={"beam_size": 4}).text
    assert beams != greedy, "beams make no difference"
    same(transcribe(world, audio=world.long_tone, extra_body={"num_beams": 4}).text, beams)
    assert transcribe(world, audio=world.long_tone, extra_body={"hotwords": "the harbour"}).text != greedy, "hotwords make no difference"
    verbose = {"audio": world.long_tone, "response_format": "verbose_json"}
    same(transcribe(world, extra_body={"word_timestamps": True}, **verbose).to_dict(),
         transcribe(world, timestamp_granularities=["word"], **verbose).to_dict())
    same(transcribe(world, extra_body={"vad_filter": True}, **verbose).to_dict(),
         transcribe(world, chunking_strategy="auto", **verbose).to_dict())


def test_translations(world):
    api = client(world, world.speech)
    file = ("clip.wav", world.tone)
    plain = api.audio.translations.create(model=MODEL, file=file)
    verbose = api.audio.translations.create(model=MODEL, file=file, response_format="verbose_json")
    same((verbose.text, verbose.language), (plain.text, "english"))
    same(verbose.to_dict()["task"], "translate")
    same(api.audio.translations.create(model=MODEL, file=file, response_format="text"), plain.text + "\n")
    assert api.audio.translations.create(model=MODEL, file=file, response_format="vtt").startswith("WEBVTT")
    assert api.audio.translations.create(model=MODEL, file=file, response_format="srt").startswith("1\n")


def test_other_fields(world):
    for fields in ({"prompt": "Transept"}, {"temperature": 0}, {"temperature": 0.4}, {"language": "English"}, {"language": "de"},
                   {"chunking_strategy": "auto"}, {"chunking_strategy": {"type": "server_vad"}}):
        with world.tally.case(f"openai-python: transcription with {fields}"):
            assert isinstance(transcribe(world, **fields).text, str)


def test_names_and_types_of_files_do_not_matter(world):
    api = client(world, world.speech)
    wanted = transcribe(world).text
    for file in (world.tone, ("x.mp3", world.tone), ("x", world.tone, "application/octet-stream"), world.tone_path, open(world.tone_path, "rb")):
        with world.tally.case(f"openai-python: a file as {type(file).__name__}"):
            same(api.audio.transcriptions.create(model=MODEL, file=file, language="en").text, wanted)


def test_many_at_once(world):
    async def ask_all():
        async with async_client(world, world.speech) as api:
            return await asyncio.gather(*(api.audio.transcriptions.create(
                model=MODEL, file=("a.wav", world.long_tone if i % 4 == 0 else world.tone), language="en") for i in range(12)))

    short, long = transcribe(world).text, transcribe(world, audio=world.long_tone).text
    for i, answer in enumerate(asyncio.run(ask_all())):
        with world.tally.case(f"openai-python: transcription {i} of 12 at once"):
            same(answer.text, short if i % 4 else long)


def test_speech(world):
    """Real weights on a real voice, where they are present."""
    model, clip = SHARED / "models" / "whisper-tiny", SHARED / "audio" / "jfk.flac"
    if not (model.is_dir() and clip.exists()):
        return world.tally.skip("no ../shared/models/whisper-tiny or no clip")
    with world.serve(model) as server:
        api = client(world, server)
        found = api.audio.transcriptions.create(model="whisper-tiny", file=clip, response_format="verbose_json",
                                                timestamp_granularities=["word", "segment"])
        assert "ask not what your country can do for you" in found.text.lower(), found.text
        same(found.language, "english")
        country = [word for word in found.words if word.word.strip(" ,.").lower() == "country"]
        same(len(country), 2)
        assert 0 < country[0].start < country[0].end < country[1].start < found.duration
        stream = api.audio.transcriptions.create(model="whisper-tiny", file=clip, stream=True)
        same("".join(event.delta for event in stream if event.type == "transcript.text.delta"), found.text)
