#!/usr/bin/env python3
"""Runs one workload on one peer, in a process of its own, and prints one JSON line. bench/compare.py calls it.

    .venv/bin/python bench/peers/run.py WORKLOAD.json --peer ctranslate2 --threads 1 --dtype int8 [--model FOLDER]

WORKLOAD.json holds one workload. One call warms up; inputs differ from call to call; medians of --repeats calls. A peer says
what it can do by having the method: generate, encode and decode, or transcribe.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import checkpoints  # noqa: E402
import workloads  # noqa: E402
from shapes import plain_ids, shape_of  # noqa: E402

SAMPLING_RATE, WINDOW_SECONDS = 16000, 30


def module_of(peer):
    """The module of a peer; only it is imported, with what it needs."""
    if peer == "ctranslate2":
        import ctranslate2_peer as module
    elif peer == "faster-whisper":
        import faster_whisper_peer as module
    elif peer == "openvino":
        import openvino_peer as module
    elif peer == "whispercpp":
        import whispercpp_peer as module
    else:
        import transformers_peer as module
    return module


PEERS = ("ctranslate2", "faster-whisper", "openvino", "transformers", "whispercpp")


def timed(function):
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def peak_rss_mib():
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


class Sources:
    """Unique random inputs."""

    def __init__(self, work, shape, seed):
        self.rng, self.ids, self.length = random.Random(seed), plain_ids(shape), work["source_tokens"]

    def draw(self, count):
        return [[self.rng.choice(self.ids) for _ in range(self.length)] for _ in range(count)]


def expect_lengths(lengths, wanted):
    """A peer that ends early would look fast."""
    if list(lengths) != list(wanted):
        sys.exit(f"peers: outputs of {list(lengths)} tokens instead of {list(wanted)}")


def run_generate(peer, work, shape, options):
    """The slope between two output lengths is a step, the rest of the call the encode."""
    sources, batch, length = Sources(work, shape, options.seed), work["batch"], work["target_tokens"]
    short = max(2, length // 4)
    seconds = {length: [], short: []}
    for call in range(options.repeats + 1):
        for tokens, seen in seconds.items():
            inputs = sources.draw(batch)
            elapsed, lengths = timed(lambda: peer.generate(inputs, [tokens] * batch, work["beam"]))
            expect_lengths(lengths, [tokens] * batch)
            seen += [elapsed] if call else []
    whole, brief = statistics.median(seconds[length]), statistics.median(seconds[short])
    step = (whole - brief) / (length - short)
    return {"tokens_per_s": batch * length / whole, "call_ms": whole * 1e3, "step_ms": step * 1e3, "encode_ms": (whole - step * length) * 1e3}


def run_window(peer, work, shape, options):
    batch, length, beams = work["batch"], work["target_tokens"], work["beam"]
    short = max(2, length // 4)
    encodes, decodes = [], {length: [], short: []}
    for call in range(options.repeats + 1):
        elapsed, encoded = timed(lambda: peer.encode(batch, options.seed + call))
        encodes += [elapsed] if call else []
        for tokens, seen in decodes.items():
            elapsed, lengths = timed(lambda: peer.decode(encoded, batch, tokens, beams))
            expect_lengths(lengths, [tokens] * batch)
            seen += [elapsed] if call else []
    encode, whole, brief = (statistics.median(seen) for seen in (encodes, decodes[length], decodes[short]))
    both = whole if getattr(peer, "encodes_in_decode", False) else encode + whole
    return {"encode_ms": encode * 1e3, "step_ms": (whole - brief) / (length - short) * 1e3, "call_ms": both * 1e3, "tokens_per_s": batch * length / both}


def run_clients(peer, work, shape, options):
    from closed_loop import closed_loop, percentile
    low, high = work["target_tokens_range"]
    sources, figures = Sources(work, shape, options.seed), []
    for call in range(options.repeats + 1):
        rng = random.Random(options.seed * 1000 + call)
        lengths = [rng.randint(low, high) for _ in range(work["requests"])]
        jobs = list(zip(sources.draw(work["requests"]), lengths))
        def serve(batch):
            tokens = [length for _, length in batch]
            expect_lengths(peer.generate([ids for ids, _ in batch], tokens, work["beam"]), tokens)
        seconds, latencies = closed_loop(jobs, work["clients"], options.replicas, work["max_batch"], serve)
        latencies.sort()
        if call:
            # A static batch gives its tokens at its end: the first one comes with the last.
            figures.append({"tokens_per_s": sum(lengths) / seconds, "call_ms": seconds * 1e3,
                            "latency_ms_p50": percentile(latencies, 50) * 1e3, "latency_ms_p99": percentile(latencies, 99) * 1e3,
                            "ttft_ms_p99": percentile(latencies, 99) * 1e3})
    return {key: statistics.median(f[key] for f in figures) for key in figures[0]}


def run_transcribe(peer, work, shape, options):
    seconds, text = [], ""
    for call in range(options.repeats + 1):
        elapsed, text = timed(lambda: peer.transcribe(options.audio))
        seconds += [elapsed] if call else []
    return {"seconds": statistics.median(seconds), "call_ms": statistics.median(seconds) * 1e3, "text": text}


RUN = {"generate": run_generate, "whisper-window": run_window, "clients": run_clients, "transcribe": run_transcribe}


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", type=Path)
    parser.add_argument("--peer", required=True, choices=PEERS)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--replicas", type=int, default=1, help="models of one thread each, for clients")
    parser.add_argument("--flash-attention", choices=["on", "off"], default="on", help="of whispercpp")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--cache", type=Path, default=checkpoints.CACHE)
    parser.add_argument("--model", type=Path, help="Hugging Face folder, instead of random numbers of the workload's shape")
    parser.add_argument("--audio", type=Path)
    parser.add_argument("--prepare-only", action="store_true", help="converts the checkpoint and stops")
    parser.add_argument("--score", type=json.loads, metavar="[IDS, IDS]", help="log-probabilities of a source's target, and nothing else")
    return parser.parse_args()


def main():
    options = parse_options()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # before the peer is imported
    [work] = workloads.load([options.workload])
    shape = shape_of(work["shape"], options.tiny)
    module = module_of(options.peer)
    if not options.prepare_only:  # in a process of its own: what converting takes must not count
        prepared = subprocess.run([sys.executable, *sys.argv, "--prepare-only"], capture_output=True, text=True)
        if prepared.returncode != 0:
            sys.exit((prepared.stderr.strip().splitlines() or ["converting the checkpoint failed"])[-1])
    folder = module.prepare(work, shape, options)
    if options.prepare_only:
        return
    if options.score:
        print(json.dumps(list(module.load(folder, work, shape, options).score(*options.score))))
        return
    load_s, peer = timed(lambda: module.load(folder, work, shape, options))
    figures = RUN[work["task"]](peer, work, shape, options)
    print(json.dumps({**figures, "load_s": load_s, "peak_rss_mib": peak_rss_mib(), "version": module.version(), "dtype": module.dtype(options)}))


if __name__ == "__main__":
    main()
