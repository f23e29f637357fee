"""Rows of faults of the Redis server itself: killed, restarted, full, with another password; and of the network before it, which is cut."""
import signal
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from epd_by_hand import Redis
from epd_load import REFUSED, Texts, ask, counts
from epd_redis import FLAGS
from epd_redis_fleet import RedisFleet
from epd_rows import answers_go_on

import wire
from serving import SPEECH_MODEL, TEXT_MODEL, wait_until

BACK_WITHIN = 3  # s, from the server's return until requests are answered again
PASSWORD, OTHER = "one-that-nobody-may-read", "another-that-nobody-may-read"


def fleet_over_redis(setup, shape, model=TEXT_MODEL, *flags):
    return RedisFleet(setup.binary, model, shape, *FLAGS, *flags)


def answers_again(setup, load, bound=BACK_WITHIN):
    """Requests that come from now on are answered, the first within `bound`. Now."""
    now = time.monotonic()
    took = wait_until(lambda: any(reply.begin > now and reply.what == "answered" for reply in list(load.replies)), 60, 0.01)
    said = Counter(f"{reply.what} {reply.status} {reply.words}"[:300] for reply in list(load.replies) if reply.begin > now and reply.what != "answered")
    for words, count in said.most_common(4):
        setup.say(f"{count} x {words}")
    setup.within("back: the first answer to who came later, after", took, bound)
    return now


def is_not_ready(fleet, name):
    answer = fleet.servers[name].ask(wire.get("/health/ready"))
    assert answer.status == 503 and answer.json()["status"] == "broker", (name, answer)


def all_is_well(setup, fleet, load, before, model=TEXT_MODEL, allowed=(REFUSED,)):
    """Of the load nothing is wrong, lost, hung or late; afterwards everything is free and works, and nobody was started again."""
    setup.check(load.replies, model, allowed)
    setup.becomes_free(fleet)
    setup.works(fleet, model)
    setup.holds_no_more(fleet, before)
    assert all(fleet.num_starts(name) == 1 and fleet.servers[name].process.poll() is None for name in fleet.names), f"an instance ended:\n{fleet.words()}"
    setup.stops_clean(fleet)


def redis_killed(setup, model, rounds, *flags):
    """kill -9, and an empty one 2 s later: who is in flight ends with an answer or a refusal, and 3 s later all is as before."""
    with fleet_over_redis(setup, "2E2D", model, *flags) as fleet:
        before = setup.warm(fleet, model)
        with setup.load(fleet, model) as load:
            backs = []
            for _ in range(rounds):
                answers_go_on(load)
                time.sleep(setup.rng.uniform(0, 0.2))
                fleet.redis.kill()
                time.sleep(2)
                fleet.redis.start()
                fleet.redis.wait_until_it_listens()
                backs.append(answers_again(setup, load))
                answers_go_on(load)
        last = [max(reply.end for reply in load.replies if reply.begin < back) - back for back in backs]
        setup.say(f"the last of those in flight ended so long after the return: {', '.join(f'{seconds:.1f}' for seconds in last)} s")
        all_is_well(setup, fleet, load, before, model)


def redis_killed_and_started_again_empty(setup):
    redis_killed(setup, TEXT_MODEL, 3)


def redis_killed_and_started_again_empty_speech(setup):
    redis_killed(setup, SPEECH_MODEL, 2)


def redis_that_carries_the_rows_killed(setup):
    redis_killed(setup, TEXT_MODEL, 3, "--ec-bulk", "broker")


def redis_away_for_long(setup):
    """Longer than records live and than readiness forgives: instances are not ready and say why, and are again within 3 s."""
    with fleet_over_redis(setup, "1E1D") as fleet:
        before = setup.warm(fleet)
        with setup.load(fleet) as load:
            answers_go_on(load)
            fleet.redis.kill()
            time.sleep(8)
            for name in fleet.names:
                is_not_ready(fleet, name)
            fleet.redis.start()
            fleet.redis.wait_until_it_listens()
            answers_again(setup, load)
        all_is_well(setup, fleet, load, before)


def redis_restarted_while_requests_wait_and_decode(setup):
    """Whose rows are there needs no broker; whose encode waits in the broker is offered again. So all of them are answered."""
    with fleet_over_redis(setup, "1E1D") as fleet:
        setup.warm(fleet, TEXT_MODEL, 0)
        decoding, waiting = Texts(setup.rng.random(), Texts.LONG), setup.source(TEXT_MODEL)
        with ThreadPoolExecutor(12) as pool:
            asked = [pool.submit(ask, fleet.port, decoding.next()) for _ in range(4)]
            assert wait_until(lambda: len(fleet.state_of("p0")["running"]) > 0, 20) is not None, fleet.state_of("p0")
            fleet.send("e0", signal.SIGSTOP)
            try:
                asked += [pool.submit(ask, fleet.port, waiting.next()) for _ in range(8)]
                assert wait_until(lambda: int(fleet.redis.run("XLEN", fleet.redis.run("KEYS", "transept:*:encode:*").split()[0])) > 0, 10) is not None
                num_done = sum(one.done() for one in asked)
                fleet.redis.kill(signal.SIGTERM)
                fleet.redis.start()
                fleet.redis.wait_until_it_listens()
                time.sleep(0.5)
            finally:
                fleet.send("e0", signal.SIGCONT)
            replies = [one.result() for one in asked]
        setup.say(f"{len(replies) - num_done} were in work")
        assert num_done < len(replies), "nothing was in work: nothing is shown"
        setup.check(replies)
        setup.becomes_free(fleet)
        setup.works(fleet)
        setup.stops_clean(fleet)


def connections_cut(setup, *flags):
    """Of each instance alone and of all at once, with whatever is on its way, for a moment and for longer: nobody is lost or taken for dead."""
    with fleet_over_redis(setup, "2E2D", TEXT_MODEL, *flags) as fleet:
        before = setup.warm(fleet)
        with setup.load(fleet) as load:
            for names in (*([name] for name in fleet.networks), list(fleet.networks)):
                for seconds in (0, 1.5):
                    answers_go_on(load)
                    time.sleep(setup.rng.uniform(0, 0.2))
                    fleet.cut(names, seconds)
                    answers_again(setup, load)
        num_cut = sum(network.num_cut for network in fleet.networks.values())
        setup.say(f"{num_cut} connections were cut")
        assert num_cut >= 4 * len(fleet.networks), "too few: nothing is shown"
        all_is_well(setup, fleet, load, before)


def connections_to_redis_cut(setup):
    connections_cut(setup)


def connections_that_carry_the_rows_cut(setup):
    connections_cut(setup, "--ec-bulk", "broker")


def redis_full(setup, *flags):
    """At `maxmemory`, of which nothing is evicted: requests are answered or refused; when there is room again, all of them are answered."""
    with fleet_over_redis(setup, "2E2D", TEXT_MODEL, *flags) as fleet:
        before = setup.warm(fleet)
        with setup.load(fleet) as load:
            for seconds in (1, 6):  # 6: longer than readiness forgives
                answers_go_on(load)
                assert fleet.redis.run("CONFIG", "SET", "maxmemory", "1").strip() == "OK"
                time.sleep(seconds)
                refused = int(dict(line.split(":", 1) for line in fleet.redis.run("INFO", "errorstats").split() if ":" in line)
                              .get("errorstat_OOM", "count=0").split("=")[1])
                fleet.redis.run("CONFIG", "SET", "maxmemory", "0")
                answers_again(setup, load)
                assert refused > 0, "the server refused nothing: nothing is shown"
        setup.say(f"the server refused {refused} commands")
        assert any(reply.what == REFUSED for reply in load.replies), f"nobody was refused: nothing is shown: {counts(load.replies)}"
        all_is_well(setup, fleet, load, before)


def redis_whose_memory_is_full(setup):
    redis_full(setup)


def redis_that_carries_the_rows_whose_memory_is_full(setup):
    redis_full(setup, "--ec-bulk", "broker")


def a_wrong_password(setup):
    """An error of the start, of every verb, that names the URL without what is secret; with the right one all works, and no log has it."""
    verbs = [["serve", str(TEXT_MODEL), "--role", "encode", "--port", "0"], ["serve", str(TEXT_MODEL), "--role", "decode", "--port", "0"],
             ["serve", str(TEXT_MODEL), "--epd", "1E1D", "--port", "0"], ["proxy", "--port", "0"], ["epd", "status"]]
    with Redis("--requirepass", PASSWORD) as redis:
        for verb in verbs:
            flag = "--epd-broker" if "--epd" in verb else "--broker"
            for secret in (f":{OTHER}@", f"default:{OTHER}@", ""):
                url, begin = f"redis://{secret}127.0.0.1:{redis.port}/0", time.monotonic()
                done = subprocess.run([str(setup.binary), *verb, flag, url], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
                said, took = done.stdout + done.stderr, time.monotonic() - begin
                assert done.returncode == 2, (verb, secret, done.returncode, said)
                assert took < 15 * setup.time_factor, f"{verb} took {took:.1f} s"
                assert OTHER not in said and PASSWORD not in said, f"a password is said: {said}"
                shown = url.replace(OTHER, "***").split("/0")[0]
                assert shown in said and flag in said, f"{shown}, of {flag}, is not named: {said}"
    setup.say(said.strip())


def a_password_that_changes(setup):
    """A running fleet that is let in no more is not ready, and loses nobody; let in again it goes on. No log has a password."""
    with RedisFleet(setup.binary, TEXT_MODEL, "1E1D", *FLAGS, password=PASSWORD) as fleet:
        before = setup.warm(fleet)
        with setup.load(fleet) as load:
            answers_go_on(load)
            fleet.redis.run("CONFIG", "SET", "requirepass", OTHER)
            fleet.redis.password = OTHER
            fleet.redis.run("CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal")
            time.sleep(7)
            for name in fleet.names:
                is_not_ready(fleet, name)
            fleet.redis.run("CONFIG", "SET", "requirepass", PASSWORD)
            answers_again(setup, load)
        for server in fleet.servers.values():
            assert PASSWORD not in server.log() and OTHER not in server.log(), "a log has the password"
        all_is_well(setup, fleet, load, before)


QUICK = [a_wrong_password]
SLOW = [redis_killed_and_started_again_empty, redis_killed_and_started_again_empty_speech, redis_that_carries_the_rows_killed, redis_away_for_long,
        redis_restarted_while_requests_wait_and_decode, connections_to_redis_cut, connections_that_carry_the_rows_cut, redis_whose_memory_is_full,
        redis_that_carries_the_rows_whose_memory_is_full, a_password_that_changes]
