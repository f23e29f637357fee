"""Four times as much as the server can do: nothing is lost, crossed or changed, and it does as much as before."""
import json
import random
import subprocess
import threading
import time
from collections import Counter
from dataclasses import dataclass

import generator
import serving
import wire
from prober import Prober

PROMPTS = 3  # of a request: a place in the queue each
MAX_QUEUED, NUM_CLIENTS = 32 * PROMPTS, 24
LEAST_GOODPUT = 0.95
MAX_LIVE_SECONDS = 0.25
# (n, max_tokens) of requests: what fills optimised builds, and less for those that would have few answers in a phase.
SIZES = ((16, 120), (8, 60), (4, 30), (2, 15))
MAX_SECONDS_ALONE = 0.25  # of a request of which nothing smaller is taken
MIN_ROUNDS = 3            # of all clients in a phase, were there no batches
WARM_UP = 0.2       # of a phase, which is not counted
QUIET_SHARE = 0.05  # of the machine for others; with more of it the clock says little
SAMPLES = {"n": 16, "temperature": 1, "ignore_eos": True, "max_tokens": 120}
MIXED = ({**SAMPLES, "n": 4, "stream": True}, {"num_beams": 8, "n": 2, "max_tokens": 120}, {"max_tokens": 120}, SAMPLES)


def unique_requests(count, kinds, seed=7):
    """Bodies of which no two have the same answer. Each is many sequences of a hundred steps, so that the engine, not
    the generator, is what is full."""
    rng, words, bodies = random.Random(seed), set(), []
    while len(words) < PROMPTS * count:
        words.add("".join(rng.choice("abcdefghijklmnoprstuvwyz") for _ in range(rng.randint(20, 60))))
    words = sorted(words)
    rng.shuffle(words)
    for i in range(count):
        batch = words[PROMPTS * i:PROMPTS * (i + 1)]
        bodies.append({"prompt": batch, "seed": i, **kinds[i % len(kinds)]})
    return bodies


def content(body, answer):
    """What must be the same whenever the same is asked."""
    if body.get("stream"):
        return sorted(wire.texts(answer).items())
    parsed = wire.json.loads(answer)
    return [sorted((c["index"], (c["text"], c["finish_reason"])) for c in parsed["choices"]), {**parsed["usage"], "prompt_tokens_details": None}]


def unloaded_answers(server, bodies, requests):
    """One after the other, on a server that has nothing else to do."""
    answers = []
    with server.connect() as connection:
        for body, request in zip(bodies, requests):
            answer = connection.ask(request)
            assert answer.status == 200, answer.body
            answers.append(content(body, answer.body))
    assert len({repr(answer) for answer in answers}) > 0.99 * len(answers), "answers that could be mistaken for others"
    return answers


def check_replies(replies, bodies, expected):
    """Counts of statuses; every answer right."""
    wrong = [reply for reply in replies if reply.status == 200 and
             content(bodies[reply.index], reply.body) != expected[reply.index]]
    lost = [reply.error for reply in replies if reply.status == 0]
    assert not lost, f"{len(lost)} of {len(replies)} requests had no answer: {lost[:3]}"
    assert not wrong, f"{len(wrong)} wrong answers, such as {wrong[0].body[:300]} for {bodies[wrong[0].index]}"
    statuses = Counter(reply.status for reply in replies)
    assert set(statuses) <= {200, 429, 503}, statuses
    for reply in replies:
        if reply.status == 429:
            assert 1 <= int(reply.retry_after) <= 30, reply.retry_after
            assert set(wire.json.loads(reply.body)["error"]) == {"message", "type", "param", "code"}
    return statuses


@dataclass
class Phase:
    """One time of one kind of load."""
    replies: list
    offered: int
    seconds: float
    num_answers: int      # right or wrong, 200, while it lasted and after its beginning
    server_cpu: float     # processor time, over the same
    others_share: float   # of the machine's processors, of what is neither server nor generator


class Watch:
    """What the machine and the server did between a phase's warm-up and its end, read by a thread."""

    def __init__(self, server, seconds):
        self.server, self.seconds = server, seconds
        self.begin, self.marks = time.monotonic(), []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        for at in (WARM_UP * self.seconds, self.seconds):
            time.sleep(max(0, self.begin + at - time.monotonic()))
            self.marks.append((time.monotonic(), self.server.cpu_seconds(), time.process_time(), *machine_seconds()))

    def phase(self, replies, offered):
        self.thread.join()
        (begin, *first), (end, *last) = self.marks
        server, generator, busy, idle = (b - a for a, b in zip(first, last))
        count = sum(reply.status == 200 and begin <= reply.at <= end for reply in replies)
        return Phase(replies, offered, end - begin, count, server, max(0, busy - server - generator) / (busy + idle))


def machine_seconds():
    """(busy, idle) processor seconds since the machine began."""
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system, idle, wait, *rest = (int(n) / serving.TICKS for n in stat.readline().split()[1:9])
    return user + nice + system + sum(rest), idle + wait


def closed_phase(server, requests, seconds):
    watch = Watch(server, seconds)
    replies = generator.closed_loop(server.port, requests, NUM_CLIENTS, seconds)
    return watch.phase(replies, len(replies))


def open_phase(server, requests, rate, seconds):
    watch = Watch(server, seconds)
    phase = watch.phase(*generator.open_loop(server.port, requests, rate, seconds))
    assert len(phase.replies) == phase.offered, f"{phase.offered} requests were offered, {len(phase.replies)} ended"
    return phase


def ratio_of(closed, opened, cost):
    """Answers of all open phases over those of all closed ones, each per what they cost."""
    def rate(phases):
        return sum(phase.num_answers for phase in phases) / sum(cost(phase) for phase in phases)

    return rate(opened) / rate(closed)


def check_goodput(setup, closed, opened):
    """By the clock; where others had much of the machine, and whom they hit was chance, by the server's own time."""
    by_clock = ratio_of(closed, opened, lambda phase: phase.seconds)
    by_cpu = ratio_of(closed, opened, lambda phase: phase.server_cpu)
    others = max(phase.others_share for phase in closed + opened)
    setup.say(f"goodput at 4x: {100 * by_clock:.1f} % of the capacity by the clock, {100 * by_cpu:.1f} % per second of the "
              f"server's processor time (bound {100 * LEAST_GOODPUT:.0f} %); others had up to {100 * others:.0f} % of "
              "the machine")
    if others < QUIET_SHARE:
        assert by_clock >= LEAST_GOODPUT, f"goodput {by_clock:.3f}"
    else:
        setup.say("the machine was not quiet: judged by the server's processor time")
        assert max(by_clock, by_cpu) >= LEAST_GOODPUT, f"goodput {by_clock:.3f}, by processor time {by_cpu:.3f}"


def seconds_alone(server, kind):
    """What one request takes on an idle server: the second one, since the first meets cold memory."""
    with server.connect() as connection:
        for body in unique_requests(2, (kind,), seed=9):
            begin = time.monotonic()
            answer = connection.ask(wire.post("/v1/completions", body))
            assert answer.status == 200, answer.body
    return time.monotonic() - begin


def kind_for(setup, server):
    """(the largest kind of request that this build answers fast enough, the seconds of a phase that has many of them).
    Rates are compared over requests that cost the same; the other case has every kind."""
    for n, max_tokens in SIZES:
        kind = {**SAMPLES, "n": n, "max_tokens": max_tokens}
        alone = seconds_alone(server, kind)
        if alone <= MAX_SECONDS_ALONE:
            break
    seconds = max(setup.scaled(5, 2), MIN_ROUNDS * NUM_CLIENTS * alone)
    setup.say(f"requests of {PROMPTS} x {n} sequences of {max_tokens} tokens: {1000 * alone:.0f} ms alone; phases of "
              f"{seconds:.1f} s")
    return kind, seconds


def four_times_capacity(setup):
    closed, opened = [], []
    with setup.serve(serving.TEXT_MODEL, "--max-queued-requests", MAX_QUEUED) as server:
        kind, seconds = kind_for(setup, server)
        bodies = unique_requests(setup.scaled(96, 24), (kind,))
        requests = [wire.post("/v1/completions", body) for body in bodies]
        expected = unloaded_answers(server, bodies, requests)
        with Prober(server.port) as prober:
            # Turn and turn about, so that whatever else the machine does meets both alike.
            for _ in range(setup.scaled(5)):
                closed.append(closed_phase(server, requests, seconds))
                capacity = max(phase.num_answers / phase.seconds for phase in closed)
                assert capacity > 0, "no answers at all"
                opened.append(open_phase(server, requests, 4 * capacity, seconds))
                setup.say(f"1x: {closed[-1].num_answers / closed[-1].seconds:.1f} answers/s; 4x: {4 * capacity:.0f}/s "
                          f"offered, {opened[-1].num_answers / opened[-1].seconds:.1f} answers/s")
        say_replies(setup, "1x", check_replies([reply for phase in closed for reply in phase.replies], bodies, expected))
        say_replies(setup, "4x", check_replies([reply for phase in opened for reply in phase.replies], bodies, expected))
        check_live(setup, prober)
        setup.becomes_idle(server, 0.25)
        check_goodput(setup, closed, opened)
        setup.stops_clean(server)


def four_times_capacity_of_every_kind(setup):
    """Streams, beam searches, samples and greedy ones beside each other: every answer is right."""
    bodies = unique_requests(setup.scaled(160, 24), MIXED, seed=8)
    requests = [wire.post("/v1/completions", body) for body in bodies]
    with setup.serve(serving.TEXT_MODEL, "--max-queued-requests", MAX_QUEUED) as server:
        expected = unloaded_answers(server, bodies, requests)
        with Prober(server.port) as prober:
            closed = closed_phase(server, requests, setup.scaled(3, 2))
            rate = 4 * max(1, closed.num_answers / closed.seconds)
            opened = open_phase(server, requests, rate, setup.scaled(10, 3))
        setup.say(f"{rate:.0f}/s offered for {opened.seconds:.1f} s")
        say_replies(setup, "4x", check_replies(opened.replies, bodies, expected))
        check_live(setup, prober)
        setup.becomes_idle(server, 0.25)
        setup.stops_clean(server)


def say_replies(setup, what, statuses):
    setup.say(f"{what}: {statuses[200]} answers, all right; {statuses[429]} refused, none lost")


def check_live(setup, prober):
    setup.say(prober.words())
    assert not prober.found["failures"], prober.found["failures"][:5]
    # What the prober waited for a processor, the server's thread may have waited as well.
    bound = 1000 * MAX_LIVE_SECONDS * setup.time_factor + prober.found["own_max"]
    assert prober.found["max"] < bound, prober.words()


def bench_serve_fits_the_model(setup):
    """With nothing but the URL, on a model of 128 positions and a token a character."""
    with setup.serve(serving.TEXT_MODEL) as server:
        done = subprocess.run([str(setup.binary), "bench", "serve", f"http://127.0.0.1:{server.port}", "--json"],
                              capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr + done.stdout
        report = json.loads(done.stdout)
        assert report["num_ok"] == report["num_requests"] == 100, report
        setup.stops_clean(server)


CASES = [four_times_capacity, four_times_capacity_of_every_kind, bench_serve_fits_the_model]
