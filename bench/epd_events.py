"""Parts of bench/epd.py in which something happens to a fleet: bad peers, kills, restarts; and a fleet of four instances beside the simulation."""
import contextlib
import json
import os
import sys
import time

import epd_figures as figures
from epd_client import Clients, closed_loop, metrics, stream_body, timed
from epd_fleets import SMALL_CACHE, SMALL_POOL, Fleet, RedisFleet, cpu_seconds, epd_fleet, stopped, wait_until_it_answers, wire
from epd_load import LETTERS, Load, Texts, counts
from epd_peers import Flood, Slow
from machine import ROOT
from transept_side import run

sys.path.insert(0, str(ROOT / "tools"))
from epd_sim_fleet import Costs  # noqa: E402
from epd_sim_fleet import Fleet as PaperFleet  # noqa: E402
from epd_sim_fleet import summary  # noqa: E402

NUM_TOKENS = (20, 80)


def word(rng):
    """A prompt of the text model that no request had before."""
    return "".join(rng.choice(LETTERS) for _ in range(24))


PEER_STREAMS, PEER_TOKENS, PEER_ROUNDS, FLOOD = 4, 440, 3, 100_000


def measure_peers(options):
    """{peer: figures} of the gaps of 4 long streams, which run already when the peer begins, so that gaps are P's steps and nothing else."""
    bulk, rounds, told = epd_fleet.free_port(), {}, {}
    media = ("--allowed-local-media-path", options.clips.folder)
    make = lambda: stream_body(options.clips.prompt(), PEER_TOKENS, language="en")
    with RedisFleet(options.transept, options.speech, 2, media, bulk) as fleet:
        wait_until_it_answers(fleet.port, make)
        width = json.loads((options.speech / "config.json").read_text())["d_model"]
        peers = {"none": contextlib.nullcontext, "stalled": lambda: stopped(fleet, "e1"), "slow": lambda: Slow(bulk, fleet.port),
                 "flooding": lambda: Flood(fleet, FLOOD, width=width)}
        for name in ["none", "stalled", "slow"] * PEER_ROUNDS + ["none", "flooding"]:  # what it announced is given up after a lease: it is the last
            with contextlib.ExitStack() as stack:
                began, made = [], []

                def begin(name=name, stack=stack, began=began, made=made):
                    made.append(stack.enter_context(peers[name]()))
                    began.append(time.monotonic())

                streams = Clients(fleet.port, PEER_STREAMS, make).run(0, begin)
            rounds.setdefault(name, []).append(figures.gap_figures(streams, began[0]))
            told[name] = told.get(name, 0) + getattr(made[0], "sent", 0)
            print(name, json.dumps(rounds[name][-1]), flush=True)
        try:
            told["answered_after_s"] = timed(fleet.port, make(), timeout=15)
        except OSError:
            told["answered_after_s"] = None  # not within that
    found = {name: {**figures.median_of(values), "sent_by_peer": told[name]} for name, values in rounds.items()}
    found["flooding"]["first_answer_after_s"] = told["answered_after_s"]
    for one in found.values():
        one["itl_p99_over_none"] = one["itl_p99_ms"] / found["none"]["itl_p99_ms"]
        one["itl_p50_over_none"] = one["itl_p50_ms"] / found["none"]["itl_p50_ms"]
    print(json.dumps(found, indent=1), flush=True)
    return found


def answers(load):
    return [reply.end for reply in load.replies if reply.what == "answered"]


def measure_recovery(options):
    """Seconds until answers come as before: one of two encode instances killed (local: and Redis), the Redis server killed and back after 2 s."""
    found = {}
    with Fleet(options.transept, options.text, "2E1D") as fleet:
        with Load(fleet.port, Texts(1, ({},)), num_clients=6) as load:
            time.sleep(4)
            fleet.kill("e0")
            event = time.monotonic()
            time.sleep(9)
        found["encoder_killed"] = {"seconds": figures.recovery(answers(load), event), "replies": counts(load.replies)}
    with RedisFleet(options.transept, options.text, 2) as fleet:
        wait_until_it_answers(fleet.port, lambda: Texts(time.time(), ({},)).next().data)
        with Load(fleet.port, Texts(3, ({},)), num_clients=6) as load:
            time.sleep(4)
            before = time.monotonic()
            fleet.redis.kill()
            time.sleep(2)
            fleet.redis.start()
            event = time.monotonic()
            time.sleep(8)
        ends = [end if end >= event else end + (event - before) for end in answers(load) if not before <= end < event]
        found["redis_back"] = {"seconds": figures.recovery(ends, event), "replies": counts(load.replies)}
        with Load(fleet.port, Texts(4, ({},)), num_clients=6) as load:
            time.sleep(3)
            fleet.send("e0", 9)
            event = time.monotonic()
            time.sleep(9)
        found["encoder_killed_redis"] = {"seconds": figures.recovery(answers(load), event), "replies": counts(load.replies)}
    print(json.dumps(found, indent=1), flush=True)
    return found


# ---- Beside the simulation

def costs_of_steps(options):
    """Of one thread that has a processor: seconds of a decode step by batch, and of an encode with its projection."""
    step, encode = [], 0.0
    for batch in (1, 4, 8):
        report = json.loads(run([options.transept, "bench", "latency", options.speech, "--batch-size", batch, "--output-len", 40, "--threads", 1,
                                 "--repeats", 1, "--json"]))
        step.append((batch, report["step_ms_mean"] / 1e3))
        encode = encode or report["encode_ms"] / 1e3
    return step, encode


def measured_costs(options, fleet, step, encode_and_projection):
    """Costs of a fleet in which nothing waits: one client, answers of two lengths, processors' time of every process and of the client."""
    pids = fleet.all_pids()
    encoders = [name for name in pids if name.startswith("e")]
    spent, count = {}, 8

    def now():
        own = os.times()
        return {**{name: cpu_seconds(pid) for name, pid in pids.items()}, "client": own.user + own.system}

    encode_before = [metrics(fleet.port_of(name)) for name in encoders]
    for length in NUM_TOKENS:
        left, before = [count], now()

        def make(length=length, left=left):
            left[0] -= 1
            return stream_body(options.clips.prompt(), length, language="en")

        while left[0] > 0:
            closed_loop(fleet.port, 1, make, 0)
        spent[length] = {name: (after - before[name]) / count for name, after in now().items()}
    encode_after = [metrics(fleet.port_of(name)) for name in encoders]
    more = lambda name: sum(after[name] - before[name] for before, after in zip(encode_before, encode_after))
    encode = more("engine_step_seconds_total") / (2 * count)
    of = lambda length, encodes: sum(seconds for name, seconds in spent[length].items() if name.startswith("e") == encodes)
    short, long = NUM_TOKENS
    token = (of(long, False) - of(short, False)) / (long - short) - step[0][1]
    encode_cpu = (of(short, True) + of(long, True)) / 2
    projection = max(0.0, encode_and_projection - encode)
    before = of(short, False) - short * (token + step[0][1]) - projection
    return Costs(encode=encode, fetch=max(0.0, encode_cpu - encode), projection=projection, step=step, token=max(0.0, token), before=max(0.0, before))


def measure_2e2d(options):
    """{"costs", clients: {"measured", "simulated", "ratio"}}"""
    step, encode = costs_of_steps(options)
    media = ("--allowed-local-media-path", options.clips.folder)
    processors, found = os.cpu_count(), {}
    with Fleet(options.transept, options.speech, "2E2D", "--epd-threads", "1,1", "--cpu-affinity", "none", *SMALL_POOL, *SMALL_CACHE, *media) as fleet:
        wait_until_it_answers(fleet.port, lambda: stream_body(options.clips.prompt(), 20, language="en"))
        make = lambda: stream_body(options.clips.prompt(), options.clips.rng.randint(*NUM_TOKENS), language="en")
        closed_loop(fleet.port, 4, make, 9)  # some 50 requests: the pools of both are written
        costs = measured_costs(options, fleet, step, encode)
        found["costs"] = vars(costs)
        for clients in options.clients:
            taken = lambda: [metrics(fleet.port_of(name))["encoder_tokens_total"] for name in ("e0", "e1")]
            begin, before = time.monotonic(), taken()
            replies = closed_loop(fleet.port, clients, make, options.seconds)
            warm = options.seconds / 3
            seen = [reply for reply in replies if begin + warm <= reply.times[-1] <= begin + options.seconds]
            real = {"requests_per_s": len(seen) / (options.seconds - warm), "tokens_per_s": sum(reply.num_tokens for reply in seen) / (options.seconds - warm),
                    "first_token_s": sum(reply.times[0] - reply.sent for reply in seen) / len(seen),
                    "latency_s": sum(reply.times[-1] - reply.sent for reply in seen) / len(seen)}
            paper = summary(PaperFleet(costs, 2, 2, clients, processors, NUM_TOKENS).run(200), 200)
            found[str(clients)] = {"measured": real, "simulated": paper, "ratio": {name: paper[name] / value for name, value in real.items()},
                                   "positions_encoded": [after - then for then, after in zip(before, taken())]}
    print(json.dumps(found, indent=1), flush=True)
    return found


def measure_ratio(options):
    """{model: seconds with one thread}: what tools/epd_sim.py's ratios are made of. Random weights of published shapes."""
    found, batch = {}, 8
    for name, tokens in (("whisper-tiny", 50), ("whisper-base", 50), ("whisper-small", 50), ("opus-mt", 30), ("t5-base", 60), ("bart-large-cnn", 60)):
        model = options.shapes / f"{name}-shape" / "hf"
        if not model.exists():
            continue
        source = [] if name.startswith("whisper") else ["--input-len", 32 if name == "opus-mt" else 512]
        report = json.loads(run([options.transept, "bench", "latency", model, "--batch-size", batch, "--output-len", 16, "--threads", 1, "--repeats", 1,
                                 *source, "--json"]))
        found[name] = {"encode": report["encode_ms"] / 1e3 / batch, "projection": 0.0, "step": report["step_ms_mean"] / 1e3, "tokens": tokens}
        print(name, found[name], flush=True)
    return found
