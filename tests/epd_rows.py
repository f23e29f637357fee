"""The rows of the table of faults, with processes under load: each is a function of a FaultSetup whose name says what it proves. Every answer is
that of one process for the same request, or one clear error where the row says so; afterwards nothing is in use, and no process holds more than
before. Standard library only."""
import asyncio
import os
import random
import resource
import signal
import threading
import time
from collections import Counter
from pathlib import Path

from epd_fleet import LAUNCHER, Fleet, is_alive, num_unused
from epd_load import BROKEN, LATE, OK, REFUSED, Load, Sounds, Texts, ask, asked_one_process, counts

import generator
import harness
import serving
import wire
from serving import SPEECH_MODEL, TEXT_MODEL, wait_until

REQUEST_TIMEOUT = 30  # s; less than a client's deadline
IDLE_WITHIN = 10      # s, after the last answer
MORE_DESCRIPTORS = 8
FETCHERS = 32         # threads of an encode instance, each with a connection to P that stays open
CLIENTS = 8           # at once, at most: a proxy keeps as many connections to each decode instance
MORE_MEMORY = 24 << 20
KV_MEMORY = "16MiB"   # so that a load fills it, and memory that is touched for the first time is no growth


class FaultSetup(harness.Setup):
    def __init__(self, binary, seed, minutes=1.0):
        super().__init__(binary, sanitizer=harness.sanitizer_of(binary))
        self.rng, self.minutes, self.seed = random.Random(seed), minutes, seed
        self.one_process = {}

    def close(self):
        for server in self.one_process.values():
            server.__exit__(None)

    def fleet(self, shape, model=TEXT_MODEL, *flags):
        return Fleet(self.binary, model, shape, "--request-timeout", REQUEST_TIMEOUT, "--kv-cache-memory", KV_MEMORY, *flags)

    def source(self, model):
        return (Texts if model == TEXT_MODEL else Sounds)(self.rng.random())

    def load(self, fleet, model=TEXT_MODEL, **options):
        return Load(fleet.port, self.source(model), **options)

    def check(self, replies, model=TEXT_MODEL, allowed=()):
        """Every reply is right or as allowed; some are answers."""
        allowed = {OK, *allowed}
        answered = [reply for reply in replies if reply.what == OK]
        self.say(f"{counts(replies)}; the slowest {max(reply.end - reply.begin for reply in replies):.1f} s")
        for words, count in Counter(reply.words for reply in replies if reply.what == REFUSED).items():
            self.say(f"    {count} times: {words}")
        bad = [reply for reply in replies if reply.what not in allowed]
        assert not bad, f"{len(bad)} of {len(replies)}: {[(one.what, one.status, one.words, round(one.end - one.begin, 1)) for one in bad[:4]]}"
        refused = [reply for reply in replies if reply.what == REFUSED and reply.words.endswith("[no Retry-After]")]
        assert not refused, refused[0].words
        assert answered, "not one answer: nothing is shown"
        if model not in self.one_process:
            self.one_process[model] = self.serve(model)
        expected = asked_one_process(self.one_process[model], [reply.request for reply in answered])
        wrong = [(reply.request.data[-300:], reply.content, want) for reply, want in zip(answered, expected) if reply.content != want]
        assert not wrong, f"{len(wrong)} of {len(answered)} answers are wrong, such as {wrong[0]}"
        differing = len({repr(want) for want in expected})
        assert differing > 0.9 * len(expected), f"{differing} of {len(expected)} answers differ: one could be taken for another"

    def becomes_free(self, fleet, bound=IDLE_WITHIN):
        took = wait_until(lambda: not fleet.busy(), bound * self.time_factor, 0.05)
        assert took is not None, f"in use after {bound} s: {fleet.busy()}\n{fleet.words()}"
        self.say(f"nothing in use after {took:.1f} s")

    def holds_no_more(self, fleet, before, bound=20):
        """`before`: Fleet.held() after the load has been there once. Of descriptors, what Fleet.at_start says and a connection a fetcher (a client)."""
        kinds = Counter(name[0] for name in fleet.names)
        fetchers = {name: FETCHERS * kinds["p"] if name[0] == "e" else FETCHERS * kinds["e"] + CLIENTS for name in fleet.names}
        fetchers["proxy"] = CLIENTS * kinds["p"]
        fetchers[LAUNCHER] = CLIENTS * kinds["p"] if kinds["p"] > 1 else 0  # which is a proxy then

        def more():
            now = fleet.held()
            found = {}
            for name, (memory, descriptors) in now.items():
                most = fleet.at_start[name][1] + fetchers.get(name, 0) + MORE_DESCRIPTORS
                if descriptors > most or (self.sanitizer == "none" and memory > before[name][0] + MORE_MEMORY):
                    found[name] = (memory, descriptors, f"at most {before[name][0] + MORE_MEMORY} and {most}")
            return found if len(now) == len(before) else {"those who run": list(now)}

        took = wait_until(lambda: not more(), bound, 0.2)
        after = fleet.held()
        self.say("MiB, descriptors: " + "; ".join(
            f"{name} {before[name][0] / 2**20:.0f}, {before[name][1]} -> {after[name][0] / 2**20:.0f}, {after[name][1]}" for name in before if name in after))
        assert took is not None, f"more than before: {more()}"

    def warm(self, fleet, model=TEXT_MODEL, seconds=2.0):
        """Answers before the fault. What the fleet holds then, idle."""
        with self.load(fleet, model, num_clients=CLIENTS) as load:
            assert wait_until(lambda: load.num_answered() >= 16, 60) is not None, counts(load.replies)
            time.sleep(seconds)
        self.check(load.replies, model)
        self.becomes_free(fleet)
        return fleet.held()

    def works(self, fleet, model=TEXT_MODEL, count=8):
        """A few requests, each answered."""
        source = self.source(model)
        self.check([ask(fleet.port, source.next()) for _ in range(count)], model)


def answers_go_on(load, more=4, seconds=60):
    """Some more answers come."""
    before = load.num_answered()
    assert wait_until(lambda: load.num_answered() >= before + more, seconds) is not None, f"no answers: {counts(load.replies[-20:])}"


# ---- An encode instance

def kills_encoders(setup, shape, model, rounds, allowed):
    with setup.fleet(shape, model) as fleet:
        before = setup.warm(fleet, model)
        encoders = [name for name in fleet.names if name != "p0"]
        with setup.load(fleet, model) as load:
            for i in range(rounds):
                answers_go_on(load)
                time.sleep(setup.rng.uniform(0, 0.2))
                again = fleet.kill(encoders[i % len(encoders)])
                answers_go_on(load)
                took = again()
                setup.say(f"{encoders[i % len(encoders)]} killed; there again after {took:.1f} s")
        setup.check(load.replies, model, allowed)
        setup.becomes_free(fleet)
        setup.works(fleet, model)
        setup.holds_no_more(fleet, before)
        setup.stops_clean(fleet)


def one_of_two_encoders_killed(setup):
    kills_encoders(setup, "2E1D", TEXT_MODEL, 6, ())


def one_of_two_encoders_killed_speech(setup):
    kills_encoders(setup, "2E1D", SPEECH_MODEL, 4, ())


def the_only_encoder_killed(setup):
    kills_encoders(setup, "1E1D", TEXT_MODEL, 3, (REFUSED,))


def the_only_encoder_killed_speech(setup):
    kills_encoders(setup, "1E1D", SPEECH_MODEL, 2, (REFUSED,))


def stops(setup, shape, name, seconds, model=TEXT_MODEL, allowed=(), rounds=1):
    with setup.fleet(shape, model) as fleet:
        before = setup.warm(fleet, model)
        with setup.load(fleet, model) as load:
            for _ in range(rounds):
                answers_go_on(load)
                time.sleep(setup.rng.uniform(0, 0.2))
                fleet.stop_for(name, seconds)
                answers_go_on(load)
        setup.check(load.replies, model, allowed)
        setup.becomes_free(fleet)
        setup.works(fleet, model)
        setup.holds_no_more(fleet, before)
        assert all(fleet.num_starts(one) == 1 for one in fleet.names), f"started again:\n{fleet.words()}"
        setup.stops_clean(fleet)


def one_of_two_encoders_stopped(setup):
    stops(setup, "2E1D", "e0", 4, rounds=3)


def one_of_two_encoders_stopped_speech(setup):
    stops(setup, "2E1D", "e1", 4, SPEECH_MODEL, rounds=2)


def one_of_two_encoders_stopped_until_forgotten(setup):
    stops(setup, "2E1D", "e0", 12)


def the_only_encoder_stopped(setup):
    stops(setup, "1E1D", "e0", 4, rounds=2)


def the_only_encoder_stopped_until_forgotten(setup):
    stops(setup, "1E1D", "e0", 14, allowed=(REFUSED,))


def requests_end_in_time_while_the_only_encoder_is_stopped(setup):
    with setup.fleet("1E1D", TEXT_MODEL, "--request-timeout", 2) as fleet:
        setup.warm(fleet)
        with setup.load(fleet) as load:
            answers_go_on(load)
            fleet.stop_for("e0", 5)
            answers_go_on(load)
        assert any(reply.what == LATE for reply in load.replies), counts(load.replies)
        slowest = max(reply.end - reply.begin for reply in load.replies)
        assert slowest < 3.5 * setup.time_factor, f"a request of 2 s took {slowest:.1f} s"
        setup.check(load.replies, allowed=(LATE, REFUSED))
        setup.becomes_free(fleet)
        setup.works(fleet)
        setup.stops_clean(fleet)


# ---- The decode instance

def kills_decoder(setup, model, rounds):
    with setup.fleet("2E1D", model) as fleet:
        before = setup.warm(fleet, model)
        with setup.load(fleet, model) as load:
            for _ in range(rounds):
                answers_go_on(load)
                time.sleep(setup.rng.uniform(0, 0.2))
                took = fleet.kill("p0")()
                begin = time.monotonic()
                answers_go_on(load, 1)
                setup.say(f"p0 killed; there again after {took:.1f} s, answers {time.monotonic() - begin:.1f} s later")
        setup.check(load.replies, model, (BROKEN, REFUSED))
        setup.becomes_free(fleet)
        setup.works(fleet, model)
        setup.holds_no_more(fleet, before)
        setup.stops_clean(fleet)


def the_decoder_killed(setup):
    kills_decoder(setup, TEXT_MODEL, 4)


def the_decoder_killed_speech(setup):
    kills_decoder(setup, SPEECH_MODEL, 2)


def the_decoder_stopped(setup):
    stops(setup, "2E1D", "p0", 3, rounds=2)


def the_decoder_stopped_until_forgotten(setup):
    stops(setup, "2E1D", "p0", 12)


# ---- The launcher and its broker

def the_broker_stopped(setup):
    stops(setup, "2E1D", LAUNCHER, 3, rounds=2)


def the_broker_stopped_until_all_are_forgotten(setup):
    stops(setup, "2E1D", LAUNCHER, 12)


def the_launcher_killed_leaves_nobody(setup):
    for is_busy in (False, True):
        with setup.fleet("2E1D") as fleet:
            children = list(fleet.pids().values())
            assert len(children) == 3, children
            with setup.load(fleet, num_clients=6 if is_busy else 0) as load:
                if is_busy:
                    answers_go_on(load)
                fleet.send(LAUNCHER, signal.SIGKILL)
                took = wait_until(lambda: not any(map(is_alive, children)), 60)
                load.is_over.set()
            setup.within(f"{'busy' if is_busy else 'idle'}: all have ended after", took, 12)
            if is_busy:
                setup.check(load.replies, allowed=(BROKEN, REFUSED, LATE))


def ends_by(setup, number, model):
    with setup.fleet("2E1D", model) as fleet:
        setup.warm(fleet, model, 0)
        children = list(fleet.pids().values())
        source = Texts(setup.rng.random(), Texts.LONG) if model == TEXT_MODEL else setup.source(model)
        with Load(fleet.port, source, num_clients=6) as load:
            answers_go_on(load, 2)
            time.sleep(setup.rng.uniform(0.2, 0.5))
            asked_to_end = time.monotonic()
            fleet.signal(number)
            code = fleet.wait(60)
            setup.say(f"ended {time.monotonic() - asked_to_end:.1f} s after {signal.Signals(number).name}")
        assert code == 0, f"exit code {code}:\n{fleet.words()}"
        assert not any(map(is_alive, children)), "instances are left"
        assert not list(fleet.folder.iterdir()), f"left behind: {list(fleet.folder.iterdir())}"
        taken = [reply for reply in load.replies if reply.begin < asked_to_end - 0.1]
        in_work = sum(reply.end > asked_to_end for reply in taken)
        setup.say(f"{in_work} were in work")
        assert in_work > 0, "nothing was in work: nothing is shown"
        setup.check(taken, model)
        setup.check(load.replies, model, (BROKEN, REFUSED))


def sigterm_answers_what_was_taken(setup):
    ends_by(setup, signal.SIGTERM, TEXT_MODEL)


def sigint_answers_what_was_taken(setup):
    ends_by(setup, signal.SIGINT, TEXT_MODEL)


def sigterm_answers_what_was_taken_speech(setup):
    ends_by(setup, signal.SIGTERM, SPEECH_MODEL)


def the_brokers_socket_removed(setup):
    """Who is connected goes on; who starts again finds no broker."""
    with setup.fleet("2E1D") as fleet:
        setup.warm(fleet)
        (path,) = fleet.folder.glob("*/broker")
        path.unlink()
        with setup.load(fleet) as load:
            answers_go_on(load, 20)
        setup.check(load.replies)
        setup.becomes_free(fleet)
        setup.stops_clean(fleet)


def an_instance_starts_without_the_brokers_socket(setup):
    """It waits for the broker in vain, and is started again later and later; the others go on meanwhile, and the fleet ends in order."""
    with setup.fleet("2E1D") as fleet:
        setup.warm(fleet, TEXT_MODEL, 0)
        (path,) = fleet.folder.glob("*/broker")
        path.unlink()
        fleet.send("e0", signal.SIGKILL)
        with setup.load(fleet) as load:
            time.sleep(15)
        setup.check(load.replies)
        words = fleet.words()
        assert "e0 | " in words and "the broker" in words, words
        code = fleet.stop()
        setup.say(f"exit code {code}")


# ---- Clients

def goes_away(port, data, rng):
    """In the head, the body, the queue, while rows come, in the decode or the stream."""
    with wire.Connection(port) as connection:
        connection.send(data[:rng.randrange(1, len(data))] if rng.random() < 0.2 else data)
        time.sleep(rng.choice((0, 0.002, 0.01, 0.05, 0.2)) * rng.random())
        if rng.random() < 0.5:
            connection.reset()


def clients_that_go(setup, model, count):
    with setup.fleet("2E1D", model) as fleet:
        before = setup.warm(fleet, model, 0)
        source = setup.source(model)
        for _ in range(2):
            with setup.load(fleet, model, num_clients=3) as load:
                for _ in range(count):
                    goes_away(fleet.port, source.next().data, setup.rng)
                answers_go_on(load, 1)
            setup.check(load.replies, model)
            setup.becomes_free(fleet)
        assert fleet.metric("num_requests_arriving") == 0 and fleet.metric("num_requests_running") == 0
        setup.holds_no_more(fleet, before)
        setup.stops_clean(fleet)


def clients_disconnect_in_any_state(setup):
    clients_that_go(setup, TEXT_MODEL, 150)


def clients_disconnect_in_any_state_speech(setup):
    clients_that_go(setup, SPEECH_MODEL, 40)


def clients_that_go_hold_nobody_up(setup):
    """What they had asked for takes no room once they have gone, also when its rows are on their way."""
    with setup.fleet("1E1D") as fleet:
        setup.warm(fleet, TEXT_MODEL, 0)
        source, is_over, num_gone = setup.source(TEXT_MODEL), threading.Event(), Counter()

        def go(seed):
            rng = random.Random(seed)
            while not is_over.is_set():
                with wire.Connection(fleet.port) as connection:
                    connection.send(source.next().data)
                    time.sleep(rng.choice((0, 0.001, 0.003)))
                    connection.reset()
                num_gone[seed] += 1
                time.sleep(0.03)

        with setup.load(fleet, num_clients=2) as load:
            going = [threading.Thread(target=go, args=(setup.rng.random(),)) for _ in range(6)]
            for thread in going:
                thread.start()
            time.sleep(8)
            is_over.set()
            for thread in going:
                thread.join()
        setup.say(f"{sum(num_gone.values())} clients went within 8 s")
        slowest = max(reply.end - reply.begin for reply in load.replies)
        setup.check(load.replies)
        assert slowest < 3 * setup.time_factor, f"one who stayed waited {slowest:.1f} s"
        setup.becomes_free(fleet)
        setup.stops_clean(fleet)


def clients_disconnect_while_the_only_encoder_is_stopped(setup):
    """What waits for rows goes at once: no encode instance is needed for that."""
    with setup.fleet("1E1D") as fleet:
        setup.warm(fleet, TEXT_MODEL, 0)
        source = setup.source(TEXT_MODEL)
        fleet.send("e0", signal.SIGSTOP)
        going = [wire.Connection(fleet.port).send(source.next().data) for _ in range(40)]
        assert wait_until(lambda: fleet.state_of("p0")["queue"]["requests"] + len(fleet.state_of("p0")["waiting"]) > 0, 10) is not None
        time.sleep(0.3)
        for connection in going:
            connection.reset()

        def is_free():
            state = fleet.state_of("p0")
            return not state["waiting"] and state["queue"]["requests"] == 0 and num_unused(state["blocks"]) == state["blocks"]["total"]

        took = wait_until(is_free, 5, 0.01)
        fleet.send("e0", signal.SIGCONT)
        setup.within("all places and blocks are free after", took, 1)
        setup.becomes_free(fleet)
        setup.works(fleet)
        setup.stops_clean(fleet)


def all_at_once(port, requests):
    """Each on a connection of its own; the replies."""
    data = [request.data for request in requests]

    async def gather():
        clients = [generator.Client(port) for _ in data]
        replies = await asyncio.wait_for(asyncio.gather(*(generator.ask_once(client, data, i) for i, client in enumerate(clients))), 240)
        for client in clients:
            client.close()
        return replies

    return asyncio.run(gather())


def ten_thousand_at_once(setup):
    """The queue is bounded: who is not taken is told at once, and who is taken is answered. Twice: the first time makes room for connections."""
    count = 10_000
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < count + 500:
        raise harness.Skip(f"{count} connections need as many descriptors, the limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with setup.fleet("1E1D", TEXT_MODEL, "--max-connections", count + 500, "--request-timeout", 240) as fleet:
        setup.warm(fleet)
        source, held = Texts(setup.rng.random()), []
        for _ in range(2):
            requests, begin = [source.next() for _ in range(count)], time.monotonic()
            replies = all_at_once(fleet.port, requests)
            statuses = Counter(reply.status for reply in replies)
            setup.say(f"{count} requests in {time.monotonic() - begin:.1f} s: {dict(statuses)}")
            for body, times in Counter(reply.body for reply in replies if reply.status == 503).items():
                setup.say(f"    {times} times: {body[:120].decode()}")
            lost = [(reply.status, reply.body[:200], reply.error) for reply in replies if reply.status not in (200, 429, 503)]
            assert not lost, f"{len(lost)} had no answer: {lost[:3]}"
            assert statuses[200] >= 100 and len(statuses) > 1, statuses
            assert all(1 <= int(reply.retry_after) <= 60 for reply in replies if reply.status != 200)
            answered = [reply for reply in replies if reply.status == 200]
            expected = asked_one_process(setup.one_process[TEXT_MODEL], [requests[reply.index] for reply in answered])
            wrong = [requests[reply.index].data for reply, want in zip(answered, expected) if requests[reply.index].content(reply.body) != want]
            assert not wrong, f"{len(wrong)} of {len(answered)} answers are wrong, such as that to {wrong[0]}"
            setup.becomes_free(fleet)
            setup.works(fleet)
            held.append(fleet.held())
        setup.holds_no_more(fleet, held[0])
        setup.stops_clean(fleet)


# ---- Strangers, and the machine

def strangers_are_refused(setup):
    with setup.fleet("1E1D") as fleet:
        encoder = fleet.port_of("e0")
        code = [("X-Transept-Instance-Code", "0" * 64)]
        asked = [(fleet.port, wire.get("/v1/inputs/p0.1.1/0", headers)) for headers in ([], code)]
        asked += [(fleet.port, wire.post("/v1/inputs/p0.1.1/0", {"error": "no"}, headers)) for headers in ([], code)]
        asked += [(encoder, wire.post("/v1/encode", body, headers)) for headers in ([], code)
                  for body in ({"prompt": "word", "consumer": "p0"}, b"{", b"\0" * 1000)]
        assert [wire.ask(port, data).status for port, data in asked] == [401] * len(asked)
        assert wire.ask(encoder, wire.get("/v1/inputs/p0.1.1/0")).status == 404
        assert wire.ask(fleet.port, wire.post("/v1/encode", {"prompt": "word"})).status == 404
        assert wire.ask(encoder, wire.post("/v1/completions", {"prompt": "word"})).status == 404
        setup.becomes_free(fleet)
        setup.works(fleet)
        setup.stops_clean(fleet)


def nothing_lies_in_shared_memory(setup):
    """Of /dev/shm, which containers make small."""
    with setup.fleet("2E1D") as fleet:
        setup.works(fleet)
        for name, pid in {**fleet.pids(), LAUNCHER: fleet.process.pid}.items():
            assert "/dev/shm" not in Path(f"/proc/{pid}/maps").read_text(), name
            names = [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()]
            assert not any(one.startswith("/dev/shm") for one in names), f"{name}: {names}"
        setup.stops_clean(fleet)


def an_encoder_without_descriptors(setup):
    """The other one answers; and it itself, once it has some."""
    with setup.fleet("2E1D") as fleet:
        before = setup.warm(fleet)
        pid = fleet.pids()["e0"]
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        with setup.load(fleet) as load:
            answers_go_on(load)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))
            time.sleep(4)
            answers_go_on(load)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
            answers_go_on(load)
        setup.check(load.replies)
        setup.becomes_free(fleet)
        setup.holds_no_more(fleet, before)
        setup.stops_clean(fleet)


QUICK = [strangers_are_refused, nothing_lies_in_shared_memory, the_launcher_killed_leaves_nobody, sigterm_answers_what_was_taken,
         clients_disconnect_while_the_only_encoder_is_stopped, the_brokers_socket_removed]
SLOW = [one_of_two_encoders_killed, one_of_two_encoders_killed_speech, the_only_encoder_killed, the_only_encoder_killed_speech,
        one_of_two_encoders_stopped, one_of_two_encoders_stopped_speech, one_of_two_encoders_stopped_until_forgotten, the_only_encoder_stopped,
        the_only_encoder_stopped_until_forgotten, requests_end_in_time_while_the_only_encoder_is_stopped, the_decoder_killed,
        the_decoder_killed_speech, the_decoder_stopped, the_decoder_stopped_until_forgotten, the_broker_stopped,
        the_broker_stopped_until_all_are_forgotten, an_instance_starts_without_the_brokers_socket, sigint_answers_what_was_taken,
        sigterm_answers_what_was_taken_speech,
        clients_disconnect_in_any_state, clients_disconnect_in_any_state_speech, clients_that_go_hold_nobody_up, ten_thousand_at_once,
        an_encoder_without_descriptors]
