#!/usr/bin/env python3
"""Hours in minutes: tests/server/soak.py [--minutes N] [--attacked] [--binary PATH]. Mixed load, of inputs that are new and that come
again, with clients that go, mistakes and uploads, over two servers (text, speech). Memory and descriptors are flat from the warm-up's end on, and
nothing is in use at the end. --attacked: attack.py's clients and bodies that stall beside them all along; no request
of the others is refused."""
import argparse
import contextlib
import random
import select
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import attack
import harness
import hostile
import serving
import sound
import wire
from work import LONG, words

# Of mean resident memory between the second quarter and the last. Up to 32 transcriptions at once, each on a thread with
# an arena of malloc's, move by some tens of MiB either way; text hardly moves.
MAX_GROWTH = {"text": 8 << 20, "speech": 40 << 20}
MAX_GROWTH_ATTACKED = {"text": 48 << 20, "speech": 40 << 20}  # bodies of 8 MiB and what they are parsed to come and go
MAX_MORE_DESCRIPTORS = 4
NUM_CLIENTS = 6
NUM_REPEATED = 200  # prompts that come again and again


class Client(threading.Thread):
    """Asks for this and that until the end; counts what it met."""

    def __init__(self, server, actions, seed, end):
        super().__init__()
        self.server, self.actions, self.end = server, actions, end
        self.rng, self.met, self.broken = random.Random(seed), Counter(), []

    def run(self):
        while time.monotonic() < self.end:
            action = self.rng.choice(self.actions)
            try:
                self.met[f"{action.__name__} {action(self.server, self.rng)}"] += 1
            except Exception as error:  # counted, and the test fails by it
                self.broken.append(f"{action.__name__}: {error!r}")


def prompt(rng):
    """Half of them were asked before: their inputs are in the cache, or were given up for others."""
    if rng.random() < 0.5:
        rng = random.Random(rng.randrange(NUM_REPEATED))
    return "".join(rng.choice("abcdefghijklmnoprstuvwyz") for _ in range(rng.randint(1, 60)))


def completes(server, rng):
    fields = rng.choice(({}, {"n": 4, "temperature": 0.8}, {"num_beams": 4}, {"logprobs": 5}, {"stop": ["t"]}))
    answer = server.complete(rng.choice((prompt(rng), [prompt(rng), prompt(rng)])), max_tokens=60, **fields)
    assert answer.status in (200, 429), answer.body
    return answer.status


def streams(server, rng):
    answer = server.complete(prompt(rng), stream=True, **{**LONG, "n": 4, "seed": rng.randrange(1 << 30)})
    assert answer.status in (200, 429), answer.body
    return len(wire.texts(answer.body)) if answer.status == 200 else 429


def goes(server, rng):
    """At any point: in the head, the body, the queue, the decode or the stream."""
    request = wire.post("/v1/completions", {"prompt": words(4, prompt(rng)), "stream": rng.random() < 0.5, **LONG})
    with server.connect() as connection:
        connection.send(request[:rng.randrange(len(request))] if rng.random() < 0.3 else request)
        time.sleep(rng.uniform(0, 0.2))
        if rng.random() < 0.5:
            connection.reset()
    return ""


def errs(server, rng):
    body = rng.choice((b"{", b'{"prompt": 5}', b'{"prompt": "a", "n": 1000}', b'{"prompt": "a", "model": "x"}'))
    return server.ask(wire.post("/v1/completions", body)).status


def looks(server, rng):
    answer = server.ask(wire.get(rng.choice(("/metrics", "/debug/state", "/v1/models", "/", "/openapi.json", "/x"))))
    assert answer.status in (200, 404)
    return ""


def transcribes(server, rng):
    fields = [("response_format", rng.choice(("json", "text", "srt", "vtt", "verbose_json")))]
    fields = rng.choice((fields, [("stream", "true")], [*fields, ("language", "en")]))
    answer = server.ask(wire.form("/v1/audio/transcriptions", fields, sound.tones(rng.choice((1, 5, 40, rng.uniform(1, 8))))))
    assert answer.status in (200, 429), answer.body
    return answer.status


def uploads_nonsense(server, rng):
    return server.ask(wire.form("/v1/audio/transcriptions", [], rng.randbytes(rng.randrange(1, 100000)))).status


def leaves_an_upload(server, rng):
    request = wire.form("/v1/audio/transcriptions", [], sound.tones(rng.choice((40, 300))))
    with server.connect() as connection, contextlib.suppress(OSError):
        connection.send(request[:rng.randrange(len(request))] if rng.random() < 0.5 else request)
        time.sleep(rng.uniform(0, 0.2))
        connection.reset()
    return ""


TEXT_ACTIONS = (completes, completes, streams, goes, errs, looks)
SPEECH_ACTIONS = (transcribes, transcribes, uploads_nonsense, leaves_an_upload, looks)


class Sampler(threading.Thread):
    """(resident bytes, descriptors) of a server, every quarter of a second."""

    def __init__(self, server, end):
        super().__init__()
        self.server, self.end, self.samples = server, end, []

    def run(self):
        while time.monotonic() < self.end:
            self.samples.append((self.server.rss(), self.server.num_descriptors()))
            time.sleep(0.25)


def check_flat(setup, name, samples, may_grow, more_descriptors=MAX_MORE_DESCRIPTORS):
    """The last quarter against the second: the first warms up, and what leaks grows between the two."""
    quarter = len(samples) // 4
    (rss_before, fds_before), (rss_after, fds_after) = (
        (sum(rss for rss, _ in part) // len(part), max(descriptors for _, descriptors in part))
        for part in (samples[quarter:2 * quarter], samples[3 * quarter:]))
    setup.say(f"{name}: mean memory {rss_before >> 20} MiB in the second quarter, {rss_after >> 20} MiB in the last (may "
              f"grow {may_grow >> 20} MiB); descriptors at most {fds_before} and {fds_after}")
    if setup.sanitizer == "none":  # their allocators keep what is freed
        assert rss_after - rss_before < may_grow, "memory grows"
    assert fds_after <= fds_before + more_descriptors, "descriptors grow"


def stalled_and_answered(connections):
    """Those that have something to read: an answer, or their end."""
    if not connections:
        return []
    waiting = select.poll()
    for connection in connections:
        waiting.register(connection.socket, select.POLLIN)
    ready = {descriptor for descriptor, _ in waiting.poll(0)}
    return [connection for connection in connections if connection.socket.fileno() in ready]


class Staller(threading.Thread):
    """Keeps bodies on their way that stop after a byte; for each that is ended it begins another."""

    def __init__(self, server, count, end):
        super().__init__()
        self.server, self.count, self.end, self.num_begun = server, count, end, 0

    def run(self):
        stalled = []
        while time.monotonic() < self.end:
            gone = set(stalled_and_answered(stalled))
            for connection in gone:
                connection.reset()
            stalled = [connection for connection in stalled if connection not in gone]
            while len(stalled) < self.count:
                stalled.append(self.server.connect())
                hostile.send_all(stalled[-1], hostile.SIZED + b"Content-Length: 100000\r\n\r\n{")
                self.num_begun += 1
            time.sleep(0.2)
        for connection in stalled:
            connection.reset()


@contextlib.contextmanager
def attacked(server, end):
    staller = Staller(server, 200, end)
    with contextlib.ExitStack() as attackers:
        for kind in attack.KINDS:
            attackers.enter_context(hostile.attackers(server.port, kind, 1))
        staller.start()
        yield staller
        staller.join()


def soak_for(setup, minutes, is_attacked=False):
    with setup.serve(serving.TEXT_MODEL) as text, setup.serve(serving.SPEECH_MODEL) as speech:
        idle = {server: server.num_descriptors() for server in (text, speech)}
        end = time.monotonic() + 60 * minutes
        clients = [Client(server, actions, seed, end) for seed in range(NUM_CLIENTS // 2)
                   for server, actions in ((text, TEXT_ACTIONS), (speech, SPEECH_ACTIONS))]
        samplers = [Sampler(server, end) for server in (text, speech)]
        with attacked(text, end) if is_attacked else contextlib.nullcontext() as staller:
            for thread in clients + samplers:
                thread.start()
            for thread in clients + samplers:
                thread.join()
        met = sum((client.met for client in clients), Counter())
        setup.say(f"{sum(met.values())} requests: " + ", ".join(f"{what} {count}" for what, count in sorted(met.items())))
        hits = {name: server.metric("encoder_cache_hits_total") for name, server in (("text", text), ("speech", speech))}
        setup.say(f"inputs that were in the cache: {hits}")
        assert all(hits.values()), "no input was found again"
        broken = [words for client in clients for words in client.broken]
        assert not broken, f"{len(broken)}, such as {broken[:3]}"
        if is_attacked:
            setup.say(f"{staller.num_begun} bodies stalled")
            refused = {what: count for what, count in met.items() if what.endswith(" 429")}
            assert not refused, f"honest clients were refused: {refused}"
        for name, server, sampler in zip(("text", "speech"), (text, speech), samplers):
            setup.becomes_idle(server, 5.0 if is_attacked else 1.0, f"{name}: nothing runs, all blocks free after")  # what came last is tokenised
            gone = serving.wait_until(lambda: server.num_descriptors() <= idle[server] + 1, 5 * setup.time_factor)
            assert gone is not None, f"{name}: {server.num_descriptors()} descriptors, {idle[server]} at the start"
            check_flat(setup, name, sampler.samples, (MAX_GROWTH_ATTACKED if is_attacked else MAX_GROWTH)[name])
            setup.stops_clean(server)


def memory_and_descriptors_are_flat(setup):
    """A minute of it: the slow tests'."""
    soak_for(setup, max(0.75, setup.scale))


CASES = [memory_and_descriptors_are_flat]


def main():
    parser = argparse.ArgumentParser(prog="tests/server/soak.py")
    parser.add_argument("--binary", type=Path, default=serving.ROOT / "build" / "release" / "transept")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--attacked", action="store_true")
    options = parser.parse_args()
    setup = harness.Setup(options.binary.resolve(), 1.0, harness.sanitizer_of(options.binary))
    outcome = harness.Outcome()

    def soak(setup):
        soak_for(setup, options.minutes, options.attacked)

    harness.run_case(soak, setup, outcome)
    print(f"{outcome.passed} passed, {outcome.failed} failed, {outcome.skipped} skipped")
    sys.exit(1 if outcome.failed or outcome.skipped else 0)


if __name__ == "__main__":
    main()
