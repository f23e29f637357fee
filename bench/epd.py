#!/usr/bin/env python3
"""The separated encoder beside one process with slices: the same binary, the same threads, one run, in turn.

    bench/epd.py [latency] [load] [memory] [peers] [recovery] [2E2D] [ratio] [bulk] [--transept PATH] [--seconds S] [--json FILE] [--table]

latency: what a request waits longer, over local: and Redis. load: streams under an encode-heavy load, a core each. memory: peaks. peers: streams beside a
stalled, a flooding and a slow peer. recovery: answers after a kill and a restart. 2E2D: a fleet of four instances beside tools/epd_sim.py. ratio: what
its ratios are made of. bulk: rows a second of one pair, by each transport. Results go to a JSON file, one member a part; --table prints its targets as a
table. Needs Linux, whisper-tiny (--speech) and a clip of 16 bits mono;
memory also random checkpoints (checkpoints.py, --shapes). Alone on the machine, please.
"""
import argparse
import itertools
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import epd_events
import epd_figures as figures
from epd_client import closed_loop, metrics, stream_body, timed
from epd_fleets import SMALL_CACHE, SMALL_POOL, WARM_UP, Clips, Fleet, One, RedisFleet, memory_mib, serving, wait_until_it_answers, wire
from machine import BUILD, ROOT

SHARED = ROOT.parent / "shared"
MEMORY_CLIENTS = (1, 4)  # a window's keys and values are as large in a decode instance as in one process
WHISPER_IDS = [50258, 50259, 50359, 50363]


def transcription(clips):
    return wire.form("/v1/audio/transcriptions", [("language", "en"), ("response_format", "json")], clips.noisy())


def window(options):
    """A window of 30 s, and 20 to 80 tokens."""
    return stream_body(options.clips.prompt(), options.clips.rng.randint(20, 80), language="en")


def last_processor():
    return os.cpu_count() - 1


def in_turn(ports, make, seconds, least=10):
    """{name: seconds of each request}: the same request to each, one after the other, in turns that go round."""
    found, end, names = {name: [] for name in ports}, time.monotonic() + seconds, list(ports)
    while time.monotonic() < end or len(found[names[0]]) < least:
        data, names = make(), names[1:] + names[:1]
        for name in names:
            found[name].append(timed(ports[name], data))
    return found


def encode_seconds(port, before):
    """Mean time of an encode instance's step for one input, since `before`."""
    now = metrics(port)
    return (now["engine_step_seconds_total"] - before["engine_step_seconds_total"]) / max(1, now["engine_steps_total"] - before["engine_steps_total"])


def measure_latency(options):
    """{"speech": {where: {"one": figures, "fleet": figures, "added": .., "encode_ms": ..}}, "text": ..}; where: local or redis. Each fleet takes turns
    with one process alone: a third system between them would leave both idle, and their caches to it."""
    found = {}
    one_thread = ("--threads", 1, "--cpu-affinity", last_processor())
    fleets = {"local": lambda model: Fleet(options.transept, model, "1E1D", "--epd-threads", "1,1", *SMALL_POOL, *SMALL_CACHE),
              "redis": lambda model: RedisFleet(options.transept, model, flags=(*SMALL_POOL, *SMALL_CACHE))}
    for name, model, make in (("speech", options.speech, lambda: transcription(options.clips)),
                              ("text", options.text, lambda: wire.post("/v1/completions", {"prompt": epd_events.word(options.clips.rng), "max_tokens": 40}))):
        found[name] = {}
        for where, new_fleet in fleets.items():
            with One(options.transept, model, *one_thread, *SMALL_POOL) as one, new_fleet(model) as fleet:
                ports = {"one": one.port, "fleet": fleet.port}
                for port in ports.values():
                    wait_until_it_answers(port, make)
                in_turn(ports, make, 0, WARM_UP)
                before, counts_before = metrics(fleet.port_of("e0")), redis_counts(fleet)
                seconds = in_turn(ports, make, options.seconds if name == "speech" else options.seconds / 4)
                counts = redis_counts(fleet)
                found[name][where] = {which: figures.latency_figures(values) for which, values in seconds.items()}
                found[name][where]["added"] = figures.added(seconds["fleet"], seconds["one"])
                found[name][where]["encode_ms"] = 1e3 * encode_seconds(fleet.port_of("e0"), before)
                if counts:
                    found[name][where]["per_request"] = {what: (counts[what] - counts_before[what]) / len(seconds["one"]) for what in counts}
        print(json.dumps({name: found[name]}, indent=1), flush=True)
    return found


def redis_counts(fleet):
    """What its Redis has counted; {}: it has none."""
    if not hasattr(fleet, "redis"):
        return {}
    stats = fleet.redis.info("stats")
    return {"commands": int(stats["total_commands_processed"]), "bytes": int(stats["total_net_input_bytes"]) + int(stats["total_net_output_bytes"])}


def measure_load(options):
    """{clients: {"one": figures, "epd": figures}} of streams of windows."""
    media = ("--allowed-local-media-path", options.clips.folder)
    found = {}
    with One(options.transept, options.speech, "--threads", 2, "--cpu-affinity", f"0-{last_processor()}", *media) as one, \
            Fleet(options.transept, options.speech, "1E1D", "--epd-threads", "1,1", *media) as epd:
        ports = {"one": one.port, "epd": epd.port}
        for port in ports.values():
            closed_loop(port, 2, lambda: window(options), 0.5)
        rounds = {}
        for number in range(options.rounds):
            for count in options.clients:
                for name in ("one", "epd") if number % 2 == 0 else ("epd", "one"):
                    begin = time.monotonic()
                    replies = closed_loop(ports[name], count, lambda: window(options), options.seconds)
                    one_round = figures.load_figures(replies, begin, begin + options.seconds)
                    rounds.setdefault((count, name), []).append(one_round)
        for (count, name), values in rounds.items():
            found.setdefault(str(count), {})[name] = figures.median_of(values)
    held = figures.held_load({int(count): names["one"] for count, names in found.items()})
    found["held_by_one"] = held
    print(json.dumps(found, indent=1), flush=True)
    return found


def measure_memory(options):
    """{"model, 1 at once": {"one": MiB, "e0": .., "p0": ..}}: peaks after 4 windows, or inputs of 512 ids, of one client and of four."""
    found = {}
    media = ("--allowed-local-media-path", options.clips.folder)
    ids = lambda: [options.clips.rng.randrange(10, 50000) for _ in range(512)]
    cases = [("whisper-tiny", options.speech, lambda: options.clips.prompt(WHISPER_IDS)),
             ("whisper-small", options.shapes / "whisper-small-shape" / "hf", lambda: options.clips.prompt(WHISPER_IDS)),
             ("bart-large-cnn", options.shapes / "bart-large-cnn-shape" / "hf", ids)]
    for (name, model, prompt), num_clients in itertools.product(cases, MEMORY_CLIENTS):
        make = lambda prompt=prompt: wire.post("/v1/completions", {"prompt": prompt(), "max_tokens": 40, "ignore_eos": True})
        peaks = found[f"{name}, {num_clients} at once"] = {}
        for kind in ("one", "epd"):
            flags = (*media, "--max-num-seqs", 8, "--encoder-cache-memory", "off")  # it fills what the KV cache is given
            server = One(options.transept, model, "--threads", 2, *flags) if kind == "one" else Fleet(
                options.transept, model, "1E1D", "--epd-threads", "1,1", *flags)
            with server:
                serving_threads(server.port, make, num_clients, 4)
                for process, pid in server.pids().items():
                    peaks[process] = memory_mib(pid)
        print(name, num_clients, json.dumps(peaks), flush=True)
    return found


def serving_threads(port, make, num_clients, count):
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(num_clients) as pool:
        for _ in pool.map(lambda _: timed(port, make()), range(count)):
            pass


def measure_bulk(options):
    """{transport and outputs in flight: GB/s} of disagg_bench, which stands beside the binary; what is not installed is missing here."""
    program = options.transept.parent / "src" / "disagg" / "disagg_bench"
    done = subprocess.run([str(program), "--benchmark_filter=bulk_", "--benchmark_format=json"], capture_output=True, text=True, check=True)
    found = figures.rates(json.loads(done.stdout))
    print(json.dumps(found, indent=1), flush=True)
    return found


def targets(results):
    """Rows of figures.target_rows(), of what was measured."""
    rows = []
    for part, found in results.items():
        kind, note = part.split(" ")[0], " ".join(part.split(" ")[1:] and [",", part.split(" ")[1]])
        if kind == "latency":
            for model in found:
                for where, limit in (("local", 5), ("redis", 8)):
                    one, count = found[model][where]["added"], found[model][where]["fleet"]["requests"]
                    enough = count >= figures.LEAST_REQUESTS
                    rows += [(f"{model}, {where}{note}: added latency, p50 of {count}", f"<= {limit} ms", one["p50_ms"], limit if enough else None, False),
                             (f"{model}, {where}{note}: added latency, p99 of {count}", "<= 20 ms", one["p99_ms"], 20 if enough else None, False)]
        elif kind == "load":
            held, most = found.get(str(found["held_by_one"])), found[max((name for name in found if name.isdigit()), key=int)]
            # Where one process holds no load there is nothing to compare, whatever the fleet does.
            good = held and held["epd"]["goodput_per_s"] / held["one"]["goodput_per_s"]
            rows += [(f"most clients{note}: inter-token p99 / p50", "<= 1.3", most["epd"]["itl_p99_over_p50"], 1.3, False),
                     (f"most clients{note}: tokens/s", ">= 0.9 x", most["epd"]["tokens_per_s"] / most["one"]["tokens_per_s"], 0.9, True),
                     (f"goodput{note}, at the load that one process just holds", ">= 1.2 x", good, 1.2, True)]
        elif kind == "memory":
            for model, peaks in found.items():
                rows += [(f"{model}: peak of {name}", f"<= {limit} x", peaks[process][0] / peaks["one"][0], limit, False)
                         for name, process, limit in (("E", "e0", 0.45), ("P", "p0", 0.75))]
        elif kind == "peers":
            rows += [(f"{name} peer{note} ({one['sent_by_peer']} sent): step p99", "<= 1.1 x", one["itl_p99_over_none"], 1.1, False)
                     for name, one in found.items() if "itl_p99_over_none" in one and name != "none"]
        elif kind == "recovery":
            rows += [(name.replace("_", " "), f"<= {limit} s", math.inf if found[name]["seconds"] is None else found[name]["seconds"], limit, False)
                     for name, limit in (("encoder_killed", 5), ("encoder_killed_redis", 5), ("redis_back", 3))]
        elif kind == "bulk":
            rows += [(f"rows of one pair over {name}, {figures.BULK_IN_FLIGHT} outputs in flight", f">= {limit} GB/s", found.get(f"{name} {figures.BULK_IN_FLIGHT}"),
                      limit, True) for name, limit in (("zmq_ipc", 1.5), ("zmq_tcp", 1.5), ("redis", 0.4))]
        elif kind == "2E2D":
            rows += [(f"2E2D, {clients} clients{note}: simulated / measured, {name}", "0.8 to 1.2", value, 1.2 if value >= 1 else 0.8, value < 1)
                     for clients, one in found.items() if clients != "costs" for name, value in one["ratio"].items()]
    return rows


PARTS = {"latency": measure_latency, "load": measure_load, "memory": measure_memory, "peers": epd_events.measure_peers,
         "recovery": epd_events.measure_recovery, "2E2D": epd_events.measure_2e2d, "ratio": epd_events.measure_ratio, "bulk": measure_bulk}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--transept", type=Path, default=BUILD / "transept")
    parser.add_argument("--speech", type=Path, default=SHARED / "models" / "whisper-tiny")
    parser.add_argument("--text", type=Path, default=ROOT / "models" / "g2p")
    parser.add_argument("--audio", type=Path, default=SHARED / "audio" / "jfk.wav")
    parser.add_argument("--shapes", type=Path, default=ROOT / ".cache" / "bench", help="folder of random checkpoints")
    parser.add_argument("--seconds", type=float, default=20, help="of a measurement")
    parser.add_argument("--table", action="store_true", help="measures nothing: prints the targets and what the JSON file has of them")
    parser.add_argument("--quantization", default="none", help="of every process: int8, which has its own member in the results")
    parser.add_argument("--rounds", type=int, default=2, help="of the load")
    parser.add_argument("--clients", type=lambda text: [int(part) for part in text.split(",")], default=[1, 2, 4, 8], help="of the load")
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "bench" / "epd.json")
    options = parser.parse_args()
    if options.table:
        return print("\n".join(figures.target_rows(targets(json.loads(options.json.read_text())))))
    unknown = set(options.parts) - set(PARTS)
    if unknown or not options.transept.exists():
        sys.exit(f"bench: {', '.join(unknown) if unknown else options.transept}: there is no such {'part' if unknown else 'file'}")
    options.transept = options.transept.resolve()
    os.environ["TRANSEPT_QUANTIZATION"] = options.quantization  # for all that is started
    suffix = "" if options.quantization == "none" else f" {options.quantization}"
    options.clips = Clips(options.audio, 200)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    results = json.loads(options.json.read_text()) if options.json.exists() else {}
    try:
        for part in options.parts or PARTS:
            results[part + suffix] = PARTS[part](options)
            options.json.write_text(json.dumps(results, indent=1) + "\n")
    finally:
        options.clips.close()


if __name__ == "__main__":
    main()
