"""The official Python client (openai, from PyPI) on live transcription: whole sessions, with and without asyncio. Every event is held
against the client's own types, and a member that these do not have is a mistake."""
import asyncio
import base64
import io
import json
import wave

import openai
from openai.types.realtime import RealtimeServerEvent
from pydantic import BaseModel, TypeAdapter

from harness import same
from openai_text import async_client, client

MODEL = "whisper-transcribes"
EVENT = TypeAdapter(RealtimeServerEvent)
OURS = {"session.created": {"id", "created"}, "conversation.item.input_audio_transcription.completed": {"transept_revised"}}
ITEM = ["input_audio_buffer.committed", "conversation.item.added", "conversation.item.done"]
TRANSCRIPTION = "conversation.item.input_audio_transcription."


def extras_of(model, path=""):
    """Paths of members that no type names."""
    if isinstance(model, list):
        return set().union(*(extras_of(entry, f"{path}[{i}]") for i, entry in enumerate(model)))
    if not isinstance(model, BaseModel):
        return set()
    found = {f"{path}{name}" for name in model.model_extra or {}}
    for name in type(model).model_fields:
        found |= extras_of(getattr(model, name), f"{path}{name}.")
    return found


def checked(data):
    event = EVENT.validate_python(json.loads(data))
    extra = extras_of(event) - OURS.get(event.type, set())
    if event.type.startswith("session."):
        extra -= {"session.id", "session.object", "session.expires_at"}  # of the types that the client has for REST answers
    assert not extra, f"{event.type}: {extra}"
    return event


def pcm(data):
    """(rate, frames) of a WAV file, played faster: the client's types know one rate alone."""
    with wave.open(io.BytesIO(data)) as file:
        same((file.getnchannels(), file.getsampwidth()), (1, 2))
        return 24000, file.readframes(file.getnframes())


def wav(rate, frames):
    sink = io.BytesIO()
    with wave.open(sink, "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(frames)
    return sink.getvalue()


def pieces(frames, size):
    return [base64.b64encode(frames[i:i + size]).decode() for i in range(0, len(frames), size)]


def configuration(rate, **more):
    return {"type": "transcription",
            "audio": {"input": {"format": {"type": "audio/pcm", "rate": rate}, "transcription": {"model": MODEL, "language": "en"},
                                "turn_detection": None, **more}}}


def offline(world, rate, frames):
    return client(world, world.speech).audio.transcriptions.create(model=MODEL, file=("clip.wav", wav(rate, frames)), language="en").text


def check_item(events, wanted):
    """The events of one committed item: their order, ids and text. Returns its id."""
    kinds = [event.type for event in events if event.type != TRANSCRIPTION + "delta"]
    same(kinds, [*ITEM, TRANSCRIPTION + "completed"])
    same(len({event.event_id for event in events}), len(events))
    ids = {event.item.id if hasattr(event, "item") else event.item_id for event in events}
    same(len(ids), 1, "ids")
    done = events[-1]
    same(done.transcript, wanted)
    same(done.usage.type, "duration")
    if not (done.model_extra or {}).get("transept_revised"):
        same("".join(event.delta for event in events if event.type == TRANSCRIPTION + "delta").strip(), wanted)
    return ids.pop()


def read_item(receive):
    events = [receive()]
    while not events[-1].type.startswith(TRANSCRIPTION + "completed"):
        assert events[-1].type not in ("error", TRANSCRIPTION + "failed"), events[-1]
        events.append(receive())
    return events


def test_a_session(world):
    rate, frames = pcm(world.tone)
    wanted = offline(world, rate, frames)
    api = client(world, world.speech)
    with api.realtime.connect(extra_query={"intent": "transcription"}) as session:
        receive = lambda: checked(session.recv_bytes())
        same(receive().type, "session.created")
        session.session.update(session=configuration(rate))
        updated = receive()
        same((updated.type, updated.session.audio.input.turn_detection), ("session.updated", None))
        previous = None
        for size in (len(frames), 4801, 999):
            with world.tally.case(f"openai-python: live, events of {size} bytes"):
                for piece in pieces(frames, size):
                    session.input_audio_buffer.append(audio=piece)
                session.input_audio_buffer.commit()
                events = read_item(receive)
                item = check_item(events, wanted)
                same([event.previous_item_id for event in events if event.type in ITEM], [previous] * 3)
                previous = item
        session.input_audio_buffer.append(audio=pieces(frames, len(frames))[0])
        session.input_audio_buffer.clear()
        while (event := receive()).type != "input_audio_buffer.cleared":
            same(event.type, TRANSCRIPTION + "delta")
        session.input_audio_buffer.commit(event_id="mine")
        error = receive().error
        same((error.code, error.event_id), ("input_audio_buffer_commit_empty", "mine"))
        session.response.create()
        same(receive().error.code, "unsupported_event")


def test_logprobs(world):
    rate, frames = pcm(world.tone)
    wanted = offline(world, rate, frames)
    with client(world, world.speech).realtime.connect(model=MODEL) as session:
        receive = lambda: checked(session.recv_bytes())
        receive()
        session.session.update(session={**configuration(rate), "include": ["item.input_audio_transcription.logprobs"]})
        same(receive().session.include, ["item.input_audio_transcription.logprobs"])
        session.input_audio_buffer.append(audio=pieces(frames, len(frames))[0])
        session.input_audio_buffer.commit()
        events = read_item(receive)
        check_item(events, wanted)
        tokens = events[-1].logprobs
        same(b"".join(bytes(token.bytes) for token in tokens).decode().strip(), wanted)
        assert all(token.logprob <= 0 for token in tokens), tokens


def test_turns(world):
    """Turn detection: the item's bounds are those of its two events."""
    rate, frames = pcm(world.tone)
    silence = bytes(2 * rate * 2)
    api = client(world, world.speech)
    with api.realtime.connect(model=MODEL) as session:
        same(checked(session.recv_bytes()).session.audio.input.turn_detection.type, "server_vad")
        vad = {"type": "server_vad", "silence_duration_ms": 700}
        session.session.update(session=configuration(rate, turn_detection=vad))
        same(checked(session.recv_bytes()).session.audio.input.turn_detection.silence_duration_ms, 700)
        everything = silence + frames + silence + silence
        for piece in pieces(everything, 9600):
            session.input_audio_buffer.append(audio=piece)
        events = [checked(session.recv_bytes())]
        while events[-1].type != TRANSCRIPTION + "completed":
            assert events[-1].type not in ("error", TRANSCRIPTION + "failed"), events[-1]
            events.append(checked(session.recv_bytes()))
        started = next(event for event in events if event.type == "input_audio_buffer.speech_started")
        stopped = next(event for event in events if event.type == "input_audio_buffer.speech_stopped" and event.item_id == started.item_id)
        same(events[-1].item_id, started.item_id)
        at = lambda ms: 2 * (ms * rate // 1000)
        same(events[-1].transcript, offline(world, rate, everything[at(started.audio_start_ms):at(stopped.audio_end_ms)]))


def test_async(world):
    rate, frames = pcm(world.tone)
    wanted = offline(world, rate, frames)

    async def speaker(api):
        async with api.realtime.connect(model=MODEL) as session:
            same(checked(await session.recv_bytes()).type, "session.created")
            await session.session.update(session=configuration(rate))
            same(checked(await session.recv_bytes()).type, "session.updated")
            for piece in pieces(frames, 4800):
                await session.input_audio_buffer.append(audio=piece)
            await session.input_audio_buffer.commit()
            events = [checked(await session.recv_bytes())]
            while events[-1].type != TRANSCRIPTION + "completed":
                events.append(checked(await session.recv_bytes()))
            return check_item(events, wanted)

    async def all_of_them():
        api = async_client(world, world.speech)
        return await asyncio.gather(*(speaker(api) for _ in range(4)))

    same(len(set(asyncio.run(all_of_them()))), 4, "ids of four sessions")


def test_client_secrets(world):
    api = client(world, world.speech)
    secret = api.realtime.client_secrets.create(expires_after={"anchor": "created_at", "seconds": 60}, session=configuration(24000))
    assert secret.value.startswith("ek_"), secret
    same(secret.session.type, "transcription")
    with openai.OpenAI(base_url=f"{world.speech.url}/v1", api_key=secret.value).realtime.connect() as session:
        same(checked(session.recv_bytes()).session.audio.input.transcription.language, "en")


def test_refused(world):
    rate, _ = pcm(world.tone)
    api = client(world, world.speech)
    for kind, change in (("semantic_vad", {"turn_detection": {"type": "semantic_vad"}}),
                         ("noise_reduction", {"noise_reduction": {"type": "near_field"}})):
        with world.tally.case(f"openai-python: live, {kind}"), api.realtime.connect() as session:
            session.recv_bytes()
            session.session.update(session=configuration(rate, **change))
            error = checked(session.recv_bytes()).error
            same(error.code, "unsupported")
            assert kind in error.message or kind in error.param, error


def test_beta(world):
    """The beta's form, by the client's own beta resource."""
    rate, frames = pcm(world.tone)
    api = client(world, world.speech, websocket_base_url=world.speech.url.replace("http", "ws") + "/v1")  # else it speaks wss
    with api.beta.realtime.connect(model=MODEL) as session:
        same(json.loads(session.recv_bytes())["type"], "transcription_session.created")
        session.transcription_session.update(session={"input_audio_format": "g711_ulaw", "turn_detection": None,
                                                      "input_audio_transcription": {"model": MODEL, "language": "en"}})
        updated = json.loads(session.recv_bytes())
        same((updated["type"], updated["session"]["input_audio_format"]), ("transcription_session.updated", "g711_ulaw"))
        session.input_audio_buffer.append(audio=base64.b64encode(bytes(range(256)) * 16).decode())
        session.input_audio_buffer.commit()
        kinds = []
        while not kinds or not kinds[-1].endswith((".completed", ".failed")):
            kinds.append(session.recv().type)
        same([kind for kind in kinds if not kind.endswith(".delta")],
             ["input_audio_buffer.committed", "conversation.item.created", TRANSCRIPTION + "completed"])
