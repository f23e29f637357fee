"""Load for a fleet: threads of clients whose requests are all different, and what one process answers to the same. Standard library only."""
import collections
import itertools
import json
import math
import random
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import wire

DEADLINE = 45  # s, of a client: the server's --request-timeout and more
OK, REFUSED, LATE, BROKEN, HUNG, ODD = "answered", "refused", "late", "broken", "hung", "odd"
LETTERS = "abcdefghijklmnoprstuvwyz"


@dataclass
class Request:
    data: bytes
    is_stream: bool = False

    def content(self, body):
        """What must be the same whenever the same is asked."""
        if self.is_stream:
            return sorted(wire.texts(body).items())
        parsed = json.loads(body)
        return [parsed["choices"], parsed["usage"]["completion_tokens"]] if "choices" in parsed else parsed


class Texts:
    """Of several kinds, none twice."""

    KINDS = ({}, {}, {"logprobs": 2}, {"stream": True}, {"num_beams": 4}, {"n": 3, "temperature": 1.0}, {"many": 3})
    LONG = ({"many": 6, "n": 4, "temperature": 1.0, "max_tokens": 110, "ignore_eos": True}, {"many": 12, "stream": True, "ignore_eos": True})

    def __init__(self, seed, kinds=KINDS):  # LONG: those that are in work when something happens
        self.rng, self.kinds, self.count, self.lock = random.Random(seed), kinds, itertools.count(), threading.Lock()

    def word(self, rng):
        return "".join(rng.choice(LETTERS) for _ in range(rng.randint(12, 50))) + "".join(LETTERS[int(d)] for d in str(next(self.count)))

    def next(self):
        with self.lock:
            rng = random.Random(self.rng.random())
            fields = dict(rng.choice(self.kinds))
            many = fields.pop("many", 0)
            prompt = [self.word(rng) for _ in range(many)] if many else self.word(rng)
        body = {"prompt": prompt, "max_tokens": 60, "seed": rng.randrange(1 << 30), **fields}
        return Request(wire.post("/v1/completions", body), "stream" in fields)


def melody(rng, seconds, rate=8000):
    """A WAV file of notes, 8 bits."""
    samples = bytearray()
    while len(samples) < seconds * rate:
        step, loudness = rng.uniform(0.05, 1.2), rng.randint(10, 100)
        samples += bytes(128 + round(loudness * math.sin(step * i)) for i in range(rng.randint(rate // 20, rate // 4)))
    head = struct.pack("<IHHIIHH", 16, 1, 1, rate, rate, 1, 8)
    return b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt " + head + b"data" + struct.pack("<I", len(samples)) + bytes(samples)


class Sounds:
    """Uploads, none twice: of one window, and now and then of several, whose bounds depend on the text before."""

    def __init__(self, seed, longest=40):
        self.rng, self.lock, self.longest = random.Random(seed), threading.Lock(), longest

    def next(self):
        with self.lock:
            rng = random.Random(self.rng.random())
        seconds = self.longest if rng.random() < 0.1 else rng.uniform(0.5, 3)
        fields = [("response_format", "verbose_json"), *rng.choice(([], [("language", "en")]))]
        return Request(wire.form("/v1/audio/transcriptions", fields, melody(rng, seconds)))


@dataclass
class Reply:
    request: Request
    begin: float  # time.monotonic()
    end: float
    what: str
    status: int = 0
    content: object = None
    words: str = ""
    retry_after: float = 0.0  # s, that the answer says
    is_balancers: bool = False  # HAProxy's own, which is HTML


def ask(port, request, deadline=DEADLINE):
    begin = time.monotonic()

    def reply(what, **more):
        return Reply(request, begin, time.monotonic(), what, **more)

    try:
        with wire.Connection(port, timeout=deadline) as connection:
            answer = connection.ask(request.data)
        if answer.status == 200:
            return reply(OK, status=200, content=request.content(answer.body))
        if answer.status in (502, 503, 504) and answer.headers.get("content-type", "").startswith("text/html"):
            return reply(REFUSED, status=answer.status, words="by the balancer itself", is_balancers=True)
        message = answer.message()  # a clear error has one
        if answer.status in (429, 503) and message:
            return reply(REFUSED, status=answer.status, words=message + ("" if "retry-after" in answer.headers else " [no Retry-After]"),
                         retry_after=float(answer.headers.get("retry-after", 0)))
        return reply(LATE if answer.status == 504 and message else ODD, status=answer.status, words=message)
    except (socket.timeout, TimeoutError):
        return reply(HUNG, words=f"nothing within {deadline} s")
    except (wire.Cut, ConnectionError) as error:
        return reply(BROKEN, words=str(error) or repr(error))
    except Exception as error:  # whatever it is, the row is to say it
        return reply(ODD, words=repr(error))


class Load:
    """In `with`: so many clients, each of which asks again when it is answered, or every `pause` seconds on the average."""

    def __init__(self, port, source, num_clients=6, pause=0.0):
        self.port, self.source, self.pause = port, source, pause
        self.replies, self.is_over = [], threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(seed,)) for seed in range(num_clients)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join()

    def run(self, seed):
        rng, due = random.Random(seed), time.monotonic()
        while not self.is_over.is_set():
            reply = ask(self.port, self.source.next())
            self.replies.append(reply)
            if reply.what != OK:
                self.is_over.wait(0.05)  # who was refused or cut off does not storm
            if self.pause:
                due = max(due + rng.expovariate(1 / self.pause), time.monotonic() - self.pause)
                self.is_over.wait(max(0, due - time.monotonic()))

    def num_answered(self):
        return sum(reply.what == OK for reply in list(self.replies))


def counts(replies):
    found = collections.Counter(f"{reply.what} {reply.status}" if reply.what in (REFUSED, ODD) else reply.what for reply in replies)
    return ", ".join(f"{count} {what}" for what, count in sorted(found.items()))


def asked_one_process(server, requests):
    """The contents of its answers."""
    def one(request):
        answer = server.ask(request.data, timeout=120)
        assert answer.status == 200, answer.body
        return request.content(answer.body)

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(one, requests))
