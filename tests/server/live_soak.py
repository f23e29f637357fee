#!/usr/bin/env python3
"""Live audio for long: tests/server/live_soak.py [--minutes N] [--binary PATH]. Twelve speakers in real time who come and go, and beside them clients
that vanish at any point, that push audio and read nothing, and that never speak. Each transcript of a speaker is that of a file with the item's bytes, each
event is of his own session and in its place; memory and descriptors are flat from the warm-up's end on, and nothing is in use at the end."""
import argparse
import contextlib
import random
import socket
import struct
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import harness
import serving  # first: it makes the modules of tests importable
import live_wire
import wire
from soak import Sampler, check_flat

NUM_SPEAKERS, NUM_VANISHING, NUM_SLOW, NUM_SILENT = 12, 3, 2, 2
PIECE = 0.1  # seconds of audio in an event
MAX_GROWTH = 40 << 20  # as soak.py's, of speech
FILES_ROUTE = "/v1/audio/transcriptions"


def wav(rate, frames):
    return (b"RIFF" + struct.pack("<I", 36 + len(frames)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, 2 * rate, 2, 16) + b"data"
            + struct.pack("<I", len(frames)) + frames)


class Files:
    """What a file with these bytes says, asked once."""

    def __init__(self, server):
        self.server, self.known, self.lock = server, {}, threading.Lock()

    def text(self, rate, frames):
        with self.lock:
            if (rate, frames) in self.known:
                return self.known[rate, frames]
        while True:  # every one of them is asked for at once when the server is full
            answer = self.server.ask(wire.form(FILES_ROUTE, [("language", "en")], wav(rate, frames)))
            if answer.status != 429:
                break
            time.sleep(0.2)
        assert answer.status == 200, answer.body
        with self.lock:
            return self.known.setdefault((rate, frames), answer.json()["text"])


class Events:
    """What one session is told, read by a thread of its own; checks the order of each item's events."""

    ORDER = ("speech_started", "delta", "speech_stopped", "committed", "added", "done", "delta", "completed")

    def __init__(self, session):
        self.session, self.ids, self.items, self.error, self.committed = session, set(), {}, None, []
        self.changed = threading.Condition()
        self.is_over = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while isinstance(event := self.session.receive(), dict):
                with self.changed:
                    self.take(event)
                    self.changed.notify_all()
        except Exception as error:  # told to whoever waits
            with self.changed:
                self.error = self.error or error
        with self.changed:
            self.is_over = True
            self.changed.notify_all()

    def take(self, event):
        kind = event["type"].rsplit(".", 1)[-1]
        assert event["type"] not in ("error", "conversation.item.input_audio_transcription.failed"), event
        assert event["event_id"] not in self.ids, f"an event came twice: {event}"
        self.ids.add(event["event_id"])
        item = event.get("item_id") or event.get("item", {}).get("id")
        if not item:
            return
        assert item.startswith("item_" + self.session.created["session"]["id"].removeprefix("sess_")), f"of another session: {event}"
        seen = self.items.setdefault(item, {"kinds": [], "told": ""})
        assert "completed" not in seen["kinds"], f"{kind} after an item's end"
        seen["kinds"].append(kind)
        seen["told"] += event.get("delta", "")
        if kind == "speech_started":
            seen["begin"] = event["audio_start_ms"]
        if kind == "speech_stopped":
            seen["end"] = event["audio_end_ms"]
        if kind == "committed":
            assert event["previous_item_id"] == (self.committed[-1] if self.committed else None), event
            self.committed.append(item)
        if kind == "completed":
            seen["text"], seen["is_revised"] = event["transcript"], event.get("transept_revised", False)
            rest = list(self.ORDER)
            for one in seen["kinds"]:
                assert one in rest, f"{seen['kinds']}"
                rest = rest[rest.index(one) + (one != "delta"):]
            assert seen["is_revised"] or seen["text"] == seen["told"].strip(), seen

    def wait_for(self, holds, seconds):
        end = time.monotonic() + seconds
        with self.changed:
            while not holds(self):
                assert not self.is_over, f"the session ended: {self.error}"
                assert self.changed.wait(end - time.monotonic()), f"nothing came for {seconds} s: {self.items}"

    def are_completed(self, count):
        return sum("text" in item for item in self.items.values()) >= count


def configure(session, rate, turns):
    session.send("session.update", session={"type": "transcription", "audio": {"input": {
        "format": {"type": "audio/pcm", "rate": rate}, "transcription": {"language": "en", "delay": random.choice(("minimal", "low", "medium", "high"))},
        "turn_detection": {"type": "server_vad"} if turns else None}}})


def send_binary(session, frames):
    session.send_frame(2, frames)


class Worker(threading.Thread):
    """Does one thing again and again until the end; counts what it met."""

    def __init__(self, action, setup, server, files, seed, end):
        super().__init__()
        self.action, self.setup, self.server, self.files, self.end = action, setup, server, files, end
        self.rng, self.met, self.broken = random.Random(seed), Counter(), []

    def run(self):
        while time.monotonic() < self.end:
            try:
                self.met[self.action.__name__] += self.action(self)
            except live_wire.Refused as refused:
                self.met[f"{self.action.__name__} {refused.status}"] += 1
                time.sleep(0.1)
            except Exception as error:  # counted, and the test fails by it
                self.broken.append(f"{self.action.__name__}: {error!r}")
                time.sleep(0.1)


def speaks(worker):
    """One session in real time: one to three items, by commits or turns. Their number."""
    rng, rate = worker.rng, worker.rng.choice((8000, 16000, 24000))
    turns, count = rng.random() < 0.5, rng.randint(1, 3)
    patience = 30 * worker.setup.time_factor
    with live_wire.Session(worker.server.port) as session:
        configure(session, rate, turns)
        events, said = Events(session), b""
        for i in range(count):
            frames = SPEECH[rate][:2 * round(rate * rng.uniform(0.4, 4))]
            said += speak(session, rng, rate, frames + bytes(2 * rate if turns else 0))
            if not turns:
                session.send("input_audio_buffer.commit")
                events.wait_for(lambda all, i=i: all.are_completed(i + 1), patience)
                assert list(events.items.values())[-1]["text"] == worker.files.text(rate, frames), "the transcript is not the file's"
        if turns:
            events.wait_for(lambda all: all.items and all.are_completed(len(all.items)), patience)
            for item in events.items.values():
                begin, end = (ms * rate // 1000 * 2 for ms in (item["begin"], item["end"]))
                assert item["text"] == worker.files.text(rate, said[begin:end]), "the transcript is not that of the turn's bytes"
        session.close()
        events.thread.join(patience)
        assert events.is_over, "no close frame came back"
        return len(events.items)


def speak(session, rng, rate, frames):
    """In real time, cut anyhow. Returns the frames."""
    begin, at = time.monotonic(), 0
    while at < len(frames):
        size = rng.choice((2 * round(PIECE * rate), 2 * round(PIECE * rate), rng.randint(1, 2 * rate // 4)))
        piece = frames[at:at + size]
        at += len(piece)
        time.sleep(max(0.0, begin + at / 2 / rate - time.monotonic()))
        if rng.random() < 0.5:
            send_binary(session, piece)
        else:
            session.append(piece, len(piece))
    return frames


def vanishes(worker):
    """At any point: in the head, the configuration, a frame, between commit and transcript. 1."""
    rng = worker.rng
    if rng.random() < 0.2:
        with worker.server.connect() as connection:
            request = wire.get("/v1/realtime", live_wire.OPENING)
            connection.send(request[:rng.randrange(len(request))])
            connection.reset()
        return 1
    session = live_wire.Session(worker.server.port)
    with contextlib.suppress(OSError):
        if rng.random() < 0.8:
            configure(session, 16000, rng.random() < 0.5)
        for _ in range(rng.randrange(12)):
            send_binary(session, SPEECH[16000][:2 * rng.randrange(1, 32000)])
            time.sleep(rng.uniform(0, 0.1))
            if rng.random() < 0.2:
                session.send("input_audio_buffer.commit")
        if rng.random() < 0.5:
            session.connection.send(b"\x82\xfe\xff\xff")  # of a frame, the beginning
    if rng.random() < 0.7:
        session.connection.reset()
    else:
        session.connection.close()
    return 1


def reads_nothing(worker):
    """Pushes a minute of audio at once and looks at nothing; then goes, or is sent away. 1."""
    rng = worker.rng
    with live_wire.Session(worker.server.port, timeout=3) as session:
        session.connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        session.send("session.update", session={"type": "transcription", "include": ["transept.hypothesis"], "audio": {"input": {
            "format": {"type": "audio/pcm", "rate": 16000}, "transcription": {"language": "en", "delay": "minimal"}}}})
        with contextlib.suppress(OSError):  # it stops to read us
            for _ in range(rng.randrange(1, 60)):
                send_binary(session, SPEECH[16000][:32000])
        time.sleep(rng.uniform(0, 2))
        session.connection.reset()
    return 1


def says_nothing(worker):
    """Opens, sends silence or nothing, and goes as one should. 1."""
    rng = worker.rng
    with live_wire.Session(worker.server.port) as session:
        for _ in range(rng.randrange(50)):
            send_binary(session, bytes(4800))
            time.sleep(PIECE)
        session.close()
        while isinstance(event := session.receive(), dict):
            assert event["type"] == "session.created", event
    return 1


SPEECH = {}


def prepare():
    """Sound of the tests' speech model, at each rate, without silence at either end."""
    rate, frames, _ = live_wire.clip(6)
    samples = memoryview(frames).cast("h")
    for wanted in (8000, 16000, 24000):
        picked = [samples[i * rate // wanted] for i in range(len(samples) * wanted // rate)]
        SPEECH[wanted] = struct.pack(f"<{len(picked)}h", *picked)


def soak_for(setup, minutes):
    prepare()
    with setup.serve(serving.SPEECH_MODEL) as server:
        idle, end = server.num_descriptors(), time.monotonic() + 60 * minutes
        files = Files(server)
        actions = [speaks] * NUM_SPEAKERS + [vanishes] * NUM_VANISHING + [reads_nothing] * NUM_SLOW + [says_nothing] * NUM_SILENT
        workers = [Worker(action, setup, server, files, seed, end) for seed, action in enumerate(actions)]
        sampler = Sampler(server, end)
        for thread in [*workers, sampler]:
            thread.start()
        for thread in [*workers, sampler]:
            thread.join()
        met = sum((worker.met for worker in workers), Counter())
        setup.say(", ".join(f"{what} {count}" for what, count in sorted(met.items())))
        broken = [words for worker in workers for words in worker.broken]
        assert not broken, f"{len(broken)}, such as {broken[:3]}"
        assert all(met[action.__name__] for action in set(actions)), "somebody did nothing"
        setup.becomes_idle(server, 2.0)
        gone = serving.wait_until(lambda: server.metric("live_sessions") == 0, 5 * setup.time_factor, 0.05)
        assert gone is not None, f"{server.metric('live_sessions')} sessions are left"
        setup.say(f"{server.metric('live_sessions_total'):.0f} sessions, {server.metric('live_hypotheses_total'):.0f} hypotheses")
        gone = serving.wait_until(lambda: server.num_descriptors() <= idle + 1, 5 * setup.time_factor)
        assert gone is not None, f"{server.num_descriptors()} descriptors, {idle} at the start"
        check_flat(setup, "live", sampler.samples, MAX_GROWTH)
        setup.stops_clean(server)


def speakers_come_and_go(setup):
    """A minute of it: the slow tests'."""
    soak_for(setup, max(0.5, setup.scale))


CASES = [speakers_come_and_go]


def main():
    parser = argparse.ArgumentParser(prog="tests/server/live_soak.py")
    parser.add_argument("--binary", type=Path, default=serving.ROOT / "build" / "release" / "transept")
    parser.add_argument("--minutes", type=float, default=30)
    options = parser.parse_args()
    setup = harness.Setup(options.binary.resolve(), 1.0, harness.sanitizer_of(options.binary))
    outcome = harness.Outcome()

    def soak(setup):
        soak_for(setup, options.minutes)

    harness.run_case(soak, setup, outcome)
    print(f"{outcome.passed} passed, {outcome.failed} failed, {outcome.skipped} skipped")
    sys.exit(1 if outcome.failed or outcome.skipped else 0)


if __name__ == "__main__":
    main()
