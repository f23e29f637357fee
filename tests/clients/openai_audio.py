"""The official Python client on transcriptions and translations: all formats, streams, granularities."""
import asyncio

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
