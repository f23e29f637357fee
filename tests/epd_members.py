"""Rows of who belongs to a fleet: decode instances beside each other, instances of another model, two proxies, and `transept epd status`."""
import json
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from epd_by_hand import Proxy, Redis, instance
from epd_fleet import free_port, metric_of
from epd_load import BROKEN, ODD, REFUSED, Request, ask
from epd_redis import FLAGS
from epd_redis_fleet import RedisFleet
from epd_rows import IDLE_WITHIN, answers_go_on
from serving import ROOT, SPEECH_MODEL, TEXT_MODEL, wait_until


# ---- Two decode instances

def both_are_ready(setup, fleet):
    """The proxy forwards to both."""
    took = wait_until(lambda: metric_of(fleet.port, "proxy_instances", state="ready") == 2, 15, 0.02)
    setup.within("the proxy has both after", took, 10)


def a_fleet_that_says_it_is_ready_answers(setup):
    """The launcher's line is no promise of later: who asks at once is answered."""
    with setup.fleet("1E2D") as fleet, ThreadPoolExecutor(8) as pool:
        source = setup.source(TEXT_MODEL)
        setup.check(list(pool.map(lambda _: ask(fleet.port, source.next()), range(24))))
        setup.stops_clean(fleet)


def kills_a_decoder(setup, fleet, model, rounds):
    """The other one goes on. A stream that had begun breaks off; what had not is asked of the other one, so that nobody else notices."""
    both_are_ready(setup, fleet)
    before = setup.warm(fleet, model)
    with setup.load(fleet, model) as load:
        for i in range(rounds):
            answers_go_on(load)
            time.sleep(setup.rng.uniform(0, 0.2))
            again = fleet.kill(f"p{i % 2}")
            begin = time.monotonic()
            answers_go_on(load, 1)
            setup.say(f"p{i % 2} killed; answers {time.monotonic() - begin:.1f} s later")
            answers_go_on(load)
            again()
            both_are_ready(setup, fleet)
    broken = [reply for reply in load.replies if reply.what == BROKEN and not reply.request.is_stream]
    assert not broken, f"{len(broken)} that were no streams broke off: {broken[0].words}"
    setup.check(load.replies, model, (BROKEN,))
    setup.becomes_free(fleet)
    setup.works(fleet, model)
    setup.holds_no_more(fleet, before)
    setup.stops_clean(fleet)


def one_of_two_decoders_killed(setup):
    with setup.fleet("1E2D") as fleet:
        kills_a_decoder(setup, fleet, TEXT_MODEL, 4)


def one_of_two_decoders_killed_speech(setup):
    with setup.fleet("1E2D", SPEECH_MODEL) as fleet:
        kills_a_decoder(setup, fleet, SPEECH_MODEL, 2)


def one_of_two_decoders_over_redis_killed(setup):
    with RedisFleet(setup.binary, TEXT_MODEL, "1E2D", *FLAGS) as fleet:
        kills_a_decoder(setup, fleet, TEXT_MODEL, 4)


def a_proxy_lets_go_of_the_dead(setup):
    """Its descriptors do not grow with the decode instances that it has seen die."""
    with RedisFleet(setup.binary, TEXT_MODEL, "1E2D", *FLAGS) as fleet:
        setup.warm(fleet)
        counts = []
        with setup.load(fleet) as load:
            for _ in range(2):
                for i in range(8):
                    fleet.kill(f"p{i % 2}")()
                    both_are_ready(setup, fleet)
                    answers_go_on(load, 40)
                counts.append(fleet.held()["proxy"][1])
        setup.check(load.replies, allowed=(BROKEN,))
        setup.say(f"{fleet.at_start['proxy'][1]} descriptors at the start, {counts[0]} after 8 deaths, {counts[1]} after 16")
        assert counts[1] <= counts[0] + 8, f"{counts[1] - counts[0]} descriptors more after 8 deaths more"
        setup.stops_clean(fleet)


# ---- Instances of another model

def joins(setup, model, flags, words):
    """An encode instance that differs: it is counted, gets nothing, and nobody notices. Once it is the only one, a decode instance refuses with `words`;
    when one of the fleet's own is back, all is as before."""
    with RedisFleet(setup.binary, TEXT_MODEL, "1E1D", *FLAGS) as fleet:
        setup.warm(fleet, TEXT_MODEL, 0)
        decoder, source = fleet.servers["p0"].port, setup.source(TEXT_MODEL)
        with instance(setup.binary, model, "encode", fleet.redis.url, "--instance-name", "odd", *flags) as odd:
            with setup.load(fleet) as load:
                took = wait_until(lambda: metric_of(decoder, "ec_peers", role="encode", state="other_model") == 1, 10, 0.05)
                assert took is not None, "the decode instance does not count it as another model's"
                answers_go_on(load, 20)
            own = fleet.servers["e0"]
            own.signal()
            assert own.wait(30) == 0, own.log()[-1000:]
            alone = [ask(decoder, source.next()) for _ in range(3)]
            fleet.start("e0")
            own.__exit__(None)
            fleet.servers["e0"].wait_until_ready()
            assert odd.metric("encoder_tokens_total") == 0, "it has encoded for the fleet"
            assert metric_of(odd.port, "ec_transfers_total") == 0 and metric_of(decoder, "ec_transfers_total", verdict="incompatible") == 0
            setup.becomes_free(fleet)
            setup.works(fleet)
        setup.check(load.replies)
        assert {reply.what for reply in alone} == {REFUSED} and all(re.search(words, reply.words) for reply in alone), alone
        setup.say(alone[-1].words)
        setup.stops_clean(fleet)


def an_encoder_of_another_dtype_joins(setup):
    joins(setup, TEXT_MODEL, ("--dtype", "bfloat16"), "an encode instance has weights in bfloat16, and this one in the checkpoint's types")


def an_encoder_of_another_transfer_dtype_joins(setup):
    joins(setup, TEXT_MODEL, ("--ec-transfer-dtype", "bfloat16"), "--ec-transfer-dtype bfloat16, and this one float32")


def an_encoder_of_another_checkpoint_joins(setup):
    joins(setup, ROOT / "tests" / "models" / "bart-float32", (), "no encode instance of this model.* another checkpoint, --dtype")


def a_proxy_says_why_nobody_is_ready(setup):
    """However long it lasts that all encode instances differ: its clients read what differs, as those of a decode instance do."""
    with RedisFleet(setup.binary, TEXT_MODEL, "1E1D", *FLAGS) as fleet, \
            instance(setup.binary, TEXT_MODEL, "encode", fleet.redis.url, "--instance-name", "odd", "--ec-transfer-dtype", "bfloat16"):
        setup.warm(fleet, TEXT_MODEL, 0)
        assert fleet.servers["e0"].stop() == 0, fleet.words()
        source = setup.source(TEXT_MODEL)
        replies = [ask(fleet.port, source.next()) for _ in range(8)]
        assert {reply.what for reply in replies} == {REFUSED}, replies
        unclear = [reply.words for reply in replies if "--ec-transfer-dtype bfloat16" not in reply.words]
        assert not unclear, f"{len(unclear)} of {len(replies)} do not name what differs: {unclear[0]}"


# ---- Two proxies

def named(request, request_id):
    head, rest = request.data.split(b"\r\n", 1)
    return Request(head + b"\r\nX-Request-Id: " + request_id.encode() + b"\r\n" + rest, request.is_stream)


def same_request_ids(setup, *flags, bound=IDLE_WITHIN):
    """Different requests of one id at two proxies at once: each is answered with its own text, or told that the id is in work; nobody waits in vain."""
    with RedisFleet(setup.binary, TEXT_MODEL, "2E1D", *FLAGS) as fleet, Proxy(setup.binary, fleet.redis.url, *flags) as first, \
            Proxy(setup.binary, fleet.redis.url, *flags) as second, ThreadPoolExecutor(4) as pool:
        setup.warm(fleet, TEXT_MODEL, 0)
        source, replies = setup.source(TEXT_MODEL), []
        for i in range(60):
            ports = (first.port, second.port, first.port, second.port)
            replies += pool.map(lambda port, i=i: ask(port, named(source.next(), f"the-same-{i}")), ports)
        told = [reply for reply in replies if reply.what == ODD]
        assert all(reply.status == 409 and "request" in reply.words.lower() for reply in told), [(one.status, one.words) for one in told][:3]
        setup.say(f"{len(told)} of {len(replies)} were told: {told[0].words if told else '-'}")
        assert max(reply.end - reply.begin for reply in replies) < 10 * setup.time_factor, "somebody waited"
        setup.check([reply for reply in replies if reply not in told])
        setup.becomes_free(fleet, bound)
        setup.works(fleet)
        setup.stops_clean(fleet)


def the_same_request_id_at_two_proxies(setup):
    same_request_ids(setup)


def the_same_request_id_at_two_proxies_that_hold(setup):
    """Rows that a proxy had sent ahead of a request that is refused then wait for it for a minute (EcTimes::unclaimed)."""
    same_request_ids(setup, "--hold", "always", bound=70)


# ---- transept epd status

def status_of(setup, broker, *flags):
    return subprocess.run([str(setup.binary), "epd", "status", "--broker", broker, *flags], capture_output=True, text=True, timeout=30)


def shows_who_is_there(setup, broker, fleet):
    """Every instance of the fleet: its role, its model, its load; and the encodes that wait."""
    text, body = status_of(setup, broker), status_of(setup, broker, "--json")
    assert (text.returncode, body.returncode, text.stderr, body.stderr) == (0, 0, "", ""), (text, body)
    lines = text.stdout.splitlines()
    names = {}
    for line in lines[:-1]:
        found = re.fullmatch(r"(\w+): (encode|decode), (http://\S+:\d+), model (\d+), (\d+) running, (\d+) queued, (\d+) transfers in work", line)
        assert found, line
        names[found[1]] = found
    roles = {name: "encode" if name[0] == "e" else "decode" for name in fleet.names}
    assert {name: found[2] for name, found in names.items()} == roles, text.stdout
    assert {found[4] for found in names.values()} == {"1"}, text.stdout
    assert lines[-1] == f"{len(roles)} instances, 1 models, 0 encodes wait", text.stdout
    parsed = json.loads(body.stdout)
    assert {one["name"]: one["role"] for one in parsed["instances"]} == roles and parsed["num_tickets"] == 0, body.stdout
    for one in parsed["instances"]:
        assert one["url"] == names[one["name"]][3] and re.fullmatch("[0-9a-f]{64}", one["model"]) and one["is_draining"] is False, one
        assert all(one[field] >= 0 for field in ("num_running", "num_queued", "num_transfers")), one
    assert len({one["model"] for one in parsed["instances"]}) == 1, body.stdout


def status_lists_every_instance(setup):
    """Over the launcher's broker, and over Redis."""
    with setup.fleet("1E1D") as fleet:
        (path,) = fleet.folder.glob("*/broker")
        shows_who_is_there(setup, f"local:{path}", fleet)
    with RedisFleet(setup.binary, TEXT_MODEL, "1E2D", *FLAGS) as fleet:
        shows_who_is_there(setup, fleet.redis.url, fleet)


def status_shows_load_and_other_models(setup):
    """Requests that run while an encode instance stands still wait, and are counted; an instance of another model has another number; one that drains
    says so, and one that is killed is shown no longer."""
    with RedisFleet(setup.binary, TEXT_MODEL, "1E1D", *FLAGS) as fleet, \
            instance(setup.binary, TEXT_MODEL, "encode", fleet.redis.url, "--instance-name", "odd", "--dtype", "float16") as odd:
        def seen():
            return json.loads(status_of(setup, fleet.redis.url, "--json").stdout)

        def of(name):
            return next((one for one in seen()["instances"] if one["name"] == name), None)

        assert of("odd")["model"] != of("e0")["model"] == of("p0")["model"], seen()
        assert "3 instances, 2 models" in status_of(setup, fleet.redis.url).stdout
        source = setup.source(TEXT_MODEL)
        with ThreadPoolExecutor(6) as pool:
            fleet.send("e0", signal.SIGSTOP)
            try:
                asked = [pool.submit(ask, fleet.port, source.next()) for _ in range(6)]
                assert wait_until(lambda: seen()["num_tickets"] >= 6, 5, 0.1) is not None, f"the encodes that wait are not shown: {seen()}"
                took = wait_until(lambda: of("p0")["num_running"] + of("p0")["num_queued"] >= 6, 5, 0.1)
                assert took is not None, f"six requests wait for their encodes, and the decode instance's load is {of('p0')}"
            finally:
                fleet.send("e0", signal.SIGCONT)
            setup.check([one.result() for one in asked])
        odd.process.kill()
        setup.within("an instance that was killed is shown no longer after", wait_until(lambda: of("odd") is None, 30, 0.1), 15)
        setup.stops_clean(fleet)
        assert of("p0") is None, "one that ended is shown"


def status_says(setup, broker, words):
    """A clear error within seconds, exit code 2, and nothing on standard output."""
    begin = time.monotonic()
    done = status_of(setup, broker, "--json")
    assert done.returncode == 2 and done.stdout == "" and words in done.stderr and "--broker" in done.stderr, (broker, done)
    assert time.monotonic() - begin < 5 * setup.time_factor, f"{broker} took {time.monotonic() - begin:.1f} s"


def status_without_a_broker(setup):
    """One that is not there, and what is no URL of one. Where nobody is, there is nobody."""
    status_says(setup, f"redis://127.0.0.1:{free_port()}", "Connection refused")
    status_says(setup, "http://127.0.0.1", "--broker")
    status_says(setup, "rediss://127.0.0.1", "rediss")
    with Redis() as redis:
        done = status_of(setup, redis.url)
        assert done.returncode == 0 and done.stdout == "0 instances, 0 models, 0 encodes wait\n", done


def status_without_a_broker_of_that_name(setup):
    status_says(setup, "local:/nowhere/broker", "/nowhere/broker")
    status_says(setup, "redis://no.such.host.invalid", "no.such.host.invalid")


QUICK = [status_lists_every_instance, status_without_a_broker]
SLOW = [a_fleet_that_says_it_is_ready_answers, one_of_two_decoders_killed, one_of_two_decoders_killed_speech, one_of_two_decoders_over_redis_killed,
        a_proxy_lets_go_of_the_dead, an_encoder_of_another_dtype_joins, an_encoder_of_another_transfer_dtype_joins, an_encoder_of_another_checkpoint_joins,
        a_proxy_says_why_nobody_is_ready, the_same_request_id_at_two_proxies, the_same_request_id_at_two_proxies_that_hold,
        status_shows_load_and_other_models, status_without_a_broker_of_that_name]
