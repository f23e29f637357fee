#!/usr/bin/env python3
"""Ranks that die behind a balancer: tests/deploy/rank_soak.py [--minutes N] [--every SECONDS] [--seed N] [--transept PATH]. Two servers of two ranks behind
HAProxy (deploy/haproxy.cfg), each started again whenever it ends. Beside a load of completions, streams, beams and samples, one process of the four is killed
every minute. Every whole answer is that of one process; what was cut or refused is answered when it is asked again, as official clients do; memory and
descriptors are flat; at the end nothing is left in /proc, in /dev/shm or listening. Closes with `N passed, N failed, N skipped`."""
import argparse
import contextlib
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from epd_fleet import is_alive, num_descriptors, resident_bytes  # makes the modules of tests/server importable
from epd_load import BROKEN, OK, REFUSED, Texts, ask, asked_one_process, counts
from ports import free_port

import balancers
import harness
import serving
import soak
import wire
from front import listens

MODEL = serving.ROOT / "tests" / "models" / "t5-float32"
NUM_RANKS = 2
FLAGS = ("--threads", 1, "--max-model-len", 4096, "--kv-cache-memory", "16MiB")
# With log-probabilities: a random model gives different prompts one text now and then, and never one number.
KINDS = tuple({"logprobs": 1, **kind} for kind in (
    *2 * ({}, {"stream": True}, {"num_beams": 4}, {"n": 3, "temperature": 1.0}, {"many": 3}),
    # Those that are in work when a rank dies.
    {"stream": True, "many": 2, "max_tokens": 1500, "ignore_eos": True}, {"num_beams": 4, "max_tokens": 400, "ignore_eos": True},
    {"n": 4, "temperature": 1.0, "max_tokens": 600, "ignore_eos": True, "stream": True}))
NUM_REQUESTS = 400  # that come again and again, and whose answers are known
NUM_CLIENTS = 6
PAUSE = 0.15        # s of a client between its requests, on the average
RETRIES = 2         # of official clients
RESTART_PAUSE = 0.1  # s: RestartSec of systemd
GONE_WITHIN = 1.0   # s, of all processes of a server after one was killed
CUT_WITHIN = 2.0    # s, of what was in flight there: the server's end, and what HAProxy needs to tell it
BACK_WITHIN = 20    # s, of the server that is started again
SLOWEST = 10        # s, of any request
MAX_GROWTH = 8 << 20  # of a process's mean resident memory, as soak.py's of text
MARK = "TRANSEPT_RANK_SOAK"  # in the environment of every process of the test


# ---- Servers that are started again

class Life(serving.Server):
    """One process of a server, with its ranks, from start to end."""

    def __init__(self, setup, port):
        self.port, self.ranks, self.samples, self.end = port, [], [], None
        self.idle_descriptors = 0
        super().__init__(setup.binary, MODEL, "--tensor-parallel-size", NUM_RANKS, *FLAGS, port=port, wait=False)

    def becomes_ready(self):
        """Whether it is. Finds its processes then, by rank."""
        if not self.ranks and self.process.poll() is None and " ready" in (log := self.log()) and re.search(r"serves .* at http://.*, ready", log):
            ranks = dict(re.findall(r"rank (\d): host \S+, pid (\d+)", log))
            assert len(ranks) == NUM_RANKS, log
            self.idle_descriptors = self.num_descriptors()
            self.ranks = [int(ranks[str(rank)]) for rank in range(NUM_RANKS)]
        return bool(self.ranks)

    def sample(self):
        if self.ranks and self.end is None:
            with contextlib.suppress(OSError):  # one of them dies just now
                self.samples.append([(resident_bytes(pid), num_descriptors(pid)) for pid in self.ranks])


class Supervised:
    """A server in the hands of a service manager: started again when it ends, whatever the reason; what it leaves behind is left alone. Use in `with`."""

    def __init__(self, setup, name):
        self.setup, self.name, self.port = setup, name, free_port()
        self.lives, self.is_over = [], threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.is_over.is_set():
            life = Life(self.setup, self.port)
            self.lives.append(life)
            life.process.wait()
            life.end = time.monotonic()
            self.is_over.wait(RESTART_PAUSE)

    @property
    def life(self):
        return self.lives[-1] if self.lives else None

    def is_ready(self):
        return self.life is not None and self.life.becomes_ready()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, *_):
        self.is_over.set()
        if self.life and self.life.process.poll() is None:
            self.life.process.kill()
        self.thread.join()
        for life in self.lives:
            life.__exit__(kind)

    def stops_clean(self):
        """By SIGTERM, after which nothing is started again."""
        self.is_over.set()
        self.setup.stops_clean(self.life)
        self.thread.join()


# ---- Clients

@dataclass
class Asked:
    """A request until its answer, or until its client gives up."""
    failed: list  # replies before the last one
    last: object

    @property
    def is_answered(self):
        return self.last.what == OK


def retry_pause(reply, attempt, rng):
    """As openai-python waits."""
    return reply.retry_after or min(0.5 * 2 ** attempt, 8) * rng.uniform(0.75, 1)


class Client(threading.Thread):
    """Asks one of the known requests after the other. Keeps what was not answered at once, and what was answered otherwise than by one process."""

    def __init__(self, port, known, seed, is_over):
        super().__init__()
        self.port, self.known, self.rng, self.is_over = port, known, random.Random(seed), is_over
        self.num_answered, self.slowest, self.asked, self.wrong = 0, 0.0, [], []

    def run(self):
        while not self.is_over.is_set():
            request, wanted = self.rng.choice(self.known)
            asked = self.ask(request)
            self.num_answered += asked.is_answered
            if asked.failed or not asked.is_answered:
                self.asked.append(asked)
            if asked.is_answered and asked.last.content != wanted:
                self.wrong.append((request.data[-200:], asked.last.content, wanted))
            self.is_over.wait(self.rng.expovariate(1 / PAUSE))

    def ask(self, request):
        failed = []
        while True:
            reply = ask(self.port, request, deadline=2 * SLOWEST)
            self.slowest = max(self.slowest, reply.end - reply.begin)
            if reply.what == OK or len(failed) == RETRIES:
                return Asked(failed, reply)
            time.sleep(retry_pause(reply, len(failed), self.rng))
            failed.append(reply)


@contextlib.contextmanager
def load(port, known, seed):
    is_over = threading.Event()
    clients = [Client(port, known, seed + i, is_over) for i in range(NUM_CLIENTS)]
    for client in clients:
        client.start()
    try:
        yield clients
    finally:
        is_over.set()
        for client in clients:
            client.join()


# ---- Faults

@dataclass
class Kill:
    name: str
    rank: int
    num_running: int  # requests in work on the server
    at: float     # time.monotonic()
    gone: float   # s, until no process of the server was left
    ready: float  # s, until the server was ready again
    life: object


class Killer:
    """Kills one process after the other, each of the four once before one comes again."""

    def __init__(self, setup, servers, rng):
        self.setup, self.servers, self.rng, self.kills, self.next = setup, servers, rng, [], []

    def one(self):
        if not self.next:
            self.next = [(server, rank) for server in self.servers for rank in range(NUM_RANKS)]
            self.rng.shuffle(self.next)
        server, rank = self.next.pop()
        assert serving.wait_until(server.is_ready, BACK_WITHIN, 0.01) is not None, f"{server.name} is not there, and was not killed just now"
        life = server.life
        num_running, at = len(life.state()["running"]), time.monotonic()
        os.kill(life.ranks[rank], signal.SIGKILL)
        gone = serving.wait_until(lambda: not any(map(is_alive, life.ranks)), BACK_WITHIN, 0.01)
        assert gone is not None, f"{server.name}: rank {rank} was killed, and of {life.ranks} there are still {list(filter(is_alive, life.ranks))}"
        ready = serving.wait_until(lambda: server.life is not life and server.is_ready(), BACK_WITHIN, 0.01)
        assert ready is not None, f"{server.name} is not there again {BACK_WITHIN} s after its rank {rank} was killed"
        self.kills.append(Kill(server.name, rank, num_running, at, gone, gone + ready, life))

    def check(self):
        names = Counter(f"{kill.name} rank {kill.rank}" for kill in self.kills)
        self.setup.say(f"{len(self.kills)} kills: " + ", ".join(f"{name} {count} times" for name, count in sorted(names.items())) +
                       f"; requests in work there: {[kill.num_running for kill in self.kills]}")
        assert any(kill.num_running for kill in self.kills), "nothing was in work: nothing is shown"
        self.setup.within("the last process of a killed server gone after", max(kill.gone for kill in self.kills), GONE_WITHIN)
        self.setup.within("ready again after", max(kill.ready for kill in self.kills), BACK_WITHIN)
        for kill in self.kills:
            code, log = kill.life.process.returncode, kill.life.log()
            assert code == (2 if kill.rank else -signal.SIGKILL), f"{kill.name}, whose rank {kill.rank} was killed: exit code {code}\n{log[-1000:]}"
            said = rf"(step \d+: )?rank {kill.rank} \(pid {kill.life.ranks[kill.rank]}\) was ended by signal 9 \(Killed\)"
            assert not kill.rank or re.search(said, log), log[-1000:]
        ended = sum(life.end is not None for server in self.servers for life in server.lives)
        assert ended == len(self.kills), f"{ended} servers ended, and {len(self.kills)} were killed"


def explained(reply, kills, time_factor):
    """Why a reply is no loss; None: nothing explains it. What was cut or refused was so because of a kill, and at once."""
    for kill in kills:
        until = kill.at + CUT_WITHIN * time_factor
        if reply.begin > kill.at + kill.ready + CUT_WITHIN or reply.end < kill.at:
            continue
        if reply.what == REFUSED and reply.status in (502, 503) and (reply.is_balancers or not reply.words.endswith("[no Retry-After]")):
            return f"{reply.status} {'of HAProxy' if reply.is_balancers else 'of the server'}"
        if reply.what == BROKEN and reply.request.is_stream and reply.begin <= kill.at and reply.end <= until:
            if reply.words.startswith("an error in the stream"):
                return "an error event in a stream"
            if kill.rank == 0:  # who would have sent the event is dead
                return "a stream that breaks off with the first rank"
    return None


def check_answers(setup, clients, kills):
    asked = [one for client in clients for one in client.asked]
    num_answered = sum(client.num_answered for client in clients)
    answered = [one for one in asked if one.is_answered]
    setup.say(f"{num_answered} requests answered: {num_answered - len(answered)} at once, "
              f"{sum(len(one.failed) == 1 for one in answered)} when asked once more, {sum(len(one.failed) > 1 for one in answered)} when asked twice more")
    replies = [reply for one in asked for reply in [*one.failed, *([] if one.is_answered else [one.last])]]
    whys = [(explained(reply, kills, setup.time_factor), reply) for reply in replies]
    setup.say("not answered at first: " + (", ".join(f"{why} {count} times" for why, count in sorted(Counter(
        why for why, _ in whys if why).items())) or "none"))
    wrong = [one for client in clients for one in client.wrong]
    lost = [one.last for one in asked if not one.is_answered]
    odd = [reply for why, reply in whys if why is None]
    setup.say(f"{len(wrong)} wrong, {len(lost)} lost, {len(odd)} without a reason")
    assert num_answered > 100, f"{num_answered} answers show nothing"
    assert not wrong, f"{len(wrong)} of {num_answered} answers are not those of one process, such as {wrong[0]}"
    assert not lost, f"{len(lost)} requests are lost: {counts(lost)}, such as {lost[0].words}"
    assert not odd, f"{len(odd)} replies that no kill explains: {counts(odd)}, such as {told(odd[0], kills)}"
    setup.within("the slowest request", max(client.slowest for client in clients), SLOWEST)


def told(reply, kills):
    """A reply beside the kill that was nearest."""
    kill = min(kills, key=lambda one: abs(one.at - reply.begin))
    return (f"{reply.what} {reply.status} {reply.words!r}: from {reply.begin - kill.at:+.2f} s to {reply.end - kill.at:+.2f} s of the kill of "
            f"{kill.name}'s rank {kill.rank}; {reply.request.data[-200:]}")


# ---- What is held

class Sampler(threading.Thread):
    """Resident bytes and descriptors of every process, every quarter of a second."""

    def __init__(self, servers, balancer, is_over):
        super().__init__()
        self.servers, self.balancer, self.is_over, self.samples = servers, balancer, is_over, []

    def run(self):
        while not self.is_over.wait(0.25):
            self.samples.append((resident_bytes(self.balancer), num_descriptors(self.balancer)))
            for server in self.servers:
                server.life.sample()


def check_flat(setup, servers, sampler, every):
    """Of processes that lived for long, the last quarter of their life against the second. All of them live under the same load; a new one is not held
    against an old one."""
    more = soak.MAX_MORE_DESCRIPTORS + NUM_CLIENTS  # all clients come to a server while the other one is dead
    soak.check_flat(setup, "HAProxy", sampler.samples, MAX_GROWTH, 2 * more)
    num_checked = 0
    for server in servers:
        for i, life in enumerate(server.lives):
            if len(life.samples) < 1.4 * every / 0.25 * 0.9:
                continue
            num_checked += 1
            for rank in range(NUM_RANKS):
                soak.check_flat(setup, f"{server.name}, life {i + 1} of {len(server.lives)}, rank {rank}, {len(life.samples) / 4:.0f} s",
                                [sample[rank] for sample in life.samples], MAX_GROWTH, more)
    assert num_checked, "no server lived for long"


def marked(mark):
    """pid -> command of the processes that have the mark in their environment, but this one."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(entry.name) != os.getpid() and f"{MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:200]
    return found


def check_nothing_is_left(setup, mark, ports, shared):
    gone = serving.wait_until(lambda: not marked(mark), GONE_WITHIN * setup.time_factor, 0.02)
    assert gone is not None, f"processes are left: {marked(mark)}"
    assert not (new := set(os.listdir("/dev/shm")) - shared), f"left in /dev/shm: {new}"
    assert not (open_ports := list(filter(listens, ports))), f"somebody listens at {open_ports}"
    setup.say("left in /proc 0, in /dev/shm 0, listening 0")


# ---- The soak

def known_requests(setup, seed):
    """Requests, and what one process that nobody disturbs answers to them."""
    source = Texts(seed, KINDS)
    requests = [source.next() for _ in range(NUM_REQUESTS)]
    with setup.serve(MODEL, *FLAGS) as server:
        known = list(zip(requests, asked_one_process(server, requests)))
    differing = len({repr(content) for _, content in known})
    assert differing > 0.9 * len(known), f"{differing} of {len(known)} answers differ: one could be taken for another"
    return known


def soak_for(setup, minutes, every, seed):
    mark, shared, rng = f"{os.getpid()}.{seed}", set(os.listdir("/dev/shm")), random.Random(seed)
    known = known_requests(setup, seed)
    os.environ[MARK] = mark
    try:
        with contextlib.ExitStack() as stack:
            servers = [stack.enter_context(Supervised(setup, name)) for name in ("a", "b")]
            ready = serving.wait_until(lambda: all(server.is_ready() for server in servers), serving.START_SECONDS, 0.02)
            assert ready is not None, [server.life and server.life.log()[-1000:] for server in servers]
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            with balancers.haproxy(folder, [server.port for server in servers]) as port:
                killer, sampler = disturb(setup, servers, port, mark, known, rng, 60 * minutes, every)
            for server in servers:
                becomes_quiet(setup, server)
            killer.check()
            for server in servers:
                server.stops_clean()
            check_nothing_is_left(setup, mark, [port, *(server.port for server in servers)], shared)
            check_flat(setup, servers, sampler, every)
    finally:
        del os.environ[MARK]


def disturb(setup, servers, port, mark, known, rng, seconds, every):
    """The load, with a kill in the middle of each `every` seconds."""
    took = serving.wait_until(lambda: wire.ask(port, wire.get("/health/ready")).status == 200, balancers.NOTICED_WITHIN, 0.1)
    assert took is not None, "HAProxy finds no server"
    processes = marked(mark)
    (balancer,) = (pid for pid, command in processes.items() if "haproxy" in command.split(" ")[0])
    assert sorted(processes) == sorted([balancer, *(pid for server in servers for pid in server.life.ranks)]), processes
    killer, is_over = Killer(setup, servers, rng), threading.Event()
    sampler = Sampler(servers, balancer, is_over)
    begin = time.monotonic()
    try:
        sampler.start()
        with load(port, known, rng.randrange(1 << 30)) as clients:
            for i in range(max(1, round(seconds / every))):
                time.sleep(max(0.0, begin + (i + 0.5) * every - time.monotonic()))
                killer.one()
            time.sleep(max(0.0, begin + seconds - time.monotonic()))
            for server in servers:
                assert server.life.metric("generation_tokens_total") > 0, f"{server.name} gets no requests"
    finally:
        is_over.set()
        sampler.join()
    check_answers(setup, clients, killer.kills)
    return killer, sampler


def becomes_quiet(setup, server):
    life = server.life
    setup.becomes_idle(life, 5.0, f"{server.name}: nothing runs, all blocks free after")
    gone = serving.wait_until(lambda: life.num_descriptors() <= life.idle_descriptors + 1, 5 * setup.time_factor)
    assert gone is not None, f"{server.name}: {life.num_descriptors()} descriptors, {life.idle_descriptors} at the start"


def main():
    parser = argparse.ArgumentParser(prog="tests/deploy/rank_soak.py")
    parser.add_argument("--transept", type=Path, default=serving.ROOT / "build" / "release" / "transept")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--every", type=float, default=60, metavar="SECONDS", help="of kills")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not options.transept.exists():
        sys.exit(f"no {options.transept}")
    setup = harness.Setup(options.transept.resolve(), 1.0, harness.sanitizer_of(options.transept))
    outcome = harness.Outcome()

    def ranks_die_behind_haproxy(setup):
        soak_for(setup, options.minutes, options.every, options.seed)

    harness.run_case(ranks_die_behind_haproxy, setup, outcome)
    print(f"{outcome.passed} passed, {outcome.failed} failed, {outcome.skipped} skipped")
    sys.exit(1 if outcome.failed or not (outcome.passed or outcome.skipped) else 0)


if __name__ == "__main__":
    main()
