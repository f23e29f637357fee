#!/usr/bin/env python3
"""tokens/s and step time of a bart-large shape in float32: transept beside CTranslate2, and beside what bounds both.

    .venv/bin/python bench/compare_ctranslate2.py [--quick] [--input-len 256] [--output-len 64] [--batch 1 8] [--beams 4]

Same machine, same threads, same run: rounds alternate between the two. Inputs are random and all different, outputs have a
forced length; decoding is greedy, then with beams (one request). Each figure is the median over the rounds. The step time is the slope between two output
lengths, for both engines alike; `encode` is the rest of the call. First both engines answer one request, and their tokens
are compared: they run the same model.

Bound of a step: bytes of the weights that a step reads, and of the KV caches, over the read bandwidth that machine_bench
measured in this run; or operations over its peak, if that is more. Alone on the machine, please.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ctranslate2

from bart_large import LARGE, SMALL, make, token

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"


# ---- the two engines: seconds of one call

class CTranslate2:
    name = f"CTranslate2 {ctranslate2.__version__} float32"

    def __init__(self, folder, shape, threads):
        self.shape = shape
        self.rng = random.Random(7)
        self.translator = ctranslate2.Translator(str(folder), device="cpu", compute_type="float32", inter_threads=1,
                                                 intra_threads=threads)

    def translate(self, sources, num_tokens, beams=1):
        results = self.translator.translate_batch([[token(i) for i in ids] for ids in sources], beam_size=beams,
                                                  min_decoding_length=num_tokens, max_decoding_length=num_tokens)
        tokens = [result.hypotheses[0] for result in results]
        if any(len(row) != num_tokens for row in tokens):
            sys.exit(f"CTranslate2 gave {[len(row) for row in tokens]} tokens instead of {num_tokens}")
        return tokens

    def calls(self, batch, beams, input_len, num_tokens, repeats):
        seconds = []
        for repeat in range(repeats + 1):  # the first one warms up
            sources = [[self.rng.randrange(4, self.shape["vocab"]) for _ in range(input_len)] for _ in range(batch)]
            start = time.perf_counter()
            self.translate(sources, num_tokens, beams)
            seconds.append(time.perf_counter() - start)
        return seconds[1:]


class Transept:
    def __init__(self, folder, threads):
        self.folder, self.threads, self.facts, self.seed, self.hits = folder, threads, {}, 0, 0
        self.name = "transept float32"

    def calls(self, batch, beams, input_len, num_tokens, repeats):
        self.seed += 1  # other inputs every time
        command = [str(BUILD / "transept"), "bench", "latency", str(self.folder), "--input-len", str(input_len), "--output-len",
                   str(num_tokens), "--batch-size", str(batch), "--num-beams", str(beams), "--repeats", str(repeats), "--threads", str(self.threads),
                   "--seed", str(self.seed), "--json"]
        self.facts = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        self.hits += self.facts["num_encoder_cache_hits"]
        return [self.facts["call_ms"] / 1e3]

    def translate(self, source, num_tokens):
        """Ids for one input; the end token forbidden, as CTranslate2's minimum length does."""
        request = {"prompt": {"prompt_token_ids": source}, "decoder_prompt": {"prompt_token_ids": [2]}, "max_tokens": num_tokens,
                   "min_tokens": num_tokens, "temperature": 0}
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write(json.dumps(request) + "\n")
            file.flush()
            done = subprocess.run([str(BUILD / "transept"), "generate", str(self.folder), "--input", file.name, "--threads",
                                   str(self.threads)], check=True, capture_output=True, text=True)
        return json.loads(done.stdout)["outputs"][0]["token_ids"]


def check_same_model(ours, peer, shape):
    """Both engines' answers to one request; random weights make near ties, so only the beginning must agree."""
    source = [random.Random(3).randrange(4, shape["vocab"]) for _ in range(24)]
    mine, theirs = ours.translate(source, 12), peer.translate([source], 12)[0]
    agreed = next((i for i, (a, b) in enumerate(zip(mine, theirs)) if token(a) != b), len(mine))
    if agreed < 4:
        sys.exit(f"the engines run different models: {[token(i) for i in mine]} and {theirs}")
    return agreed, len(mine)


# ---- bounds

def measure_machine():
    """{"read": bytes/s from memory, "multiply": float32 operations/s}."""
    command = [str(BUILD / "bench" / "machine_bench"), "--benchmark_format=json"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    found = {}
    for case in report["benchmarks"]:
        if case["name"].startswith("BM_Read/MiB:1024"):
            found["read"] = case["GB/s"] * 1e9
        if case["name"].startswith("BM_Multiply") and "GFLOP/s" in case:
            found["multiply"] = case["GFLOP/s"] * 1e9
    return found


def bounds(shape, batch, beams, input_len, output_len, machine):
    """(seconds of an encode, seconds of a step, what bounds the step)."""
    d, layers = shape["d_model"], shape["layers"]
    decoder = layers * (6 * d * d + 2 * d * shape["ffn"]) + shape["vocab"] * d  # weights that a step reads
    keys = input_len + output_len / 2
    # Beams read the cross keys of their group once, and their own self keys.
    self_keys = output_len / 2
    step_bytes = 4 * (decoder + batch * (input_len + beams * self_keys) * 2 * d * layers)
    step_flop = batch * beams * (2 * decoder + 4 * keys * d * layers)
    encoder = layers * (4 * d * d + 2 * d * shape["ffn"]) + layers * 2 * d * d  # and cross K, V
    encode_flop = batch * input_len * (2 * encoder + 4 * input_len * d * layers)
    by_bytes, by_flop = step_bytes / machine["read"], step_flop / machine["multiply"]
    return encode_flop / machine["multiply"], max(by_bytes, by_flop), "bytes" if by_bytes > by_flop else "operations"


# ---- measuring

def measure(engines, batch, beams, options):
    """{engine: {call, step, encode, tokens_per_s}} in seconds, medians over alternating rounds."""
    short = max(2, options.output_len // 4)
    calls = {engine: {length: [] for length in (options.output_len, short)} for engine in engines}
    for _ in range(options.rounds):
        for engine in engines:
            for length, seconds in calls[engine].items():
                seconds += engine.calls(batch, beams, options.input_len, length, options.repeats)
    figures = {}
    for engine, by_length in calls.items():
        call, brief = (statistics.median(by_length[length]) for length in (options.output_len, short))
        step = (call - brief) / (options.output_len - short)
        figures[engine] = {"call": call, "step": step, "encode": call - step * options.output_len,
                           "tokens_per_s": batch * options.output_len / call,
                           "range": (min(by_length[options.output_len]), max(by_length[options.output_len]))}
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input-len", type=int, default=256)
    parser.add_argument("--output-len", type=int, default=64)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--beams", type=int, nargs="+", default=[4], help="beam searches of one request, after the greedy batches")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3, help="calls a round (transept reports their median)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--quick", action="store_true", help="2 rounds of 1 call, 16 tokens")
    parser.add_argument("--small", action="store_true", help="a tiny shape: tries this script out, measures nothing")
    parser.add_argument("--cache", type=Path, default=ROOT / ".cache" / "bench")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.repeats, options.output_len = 2, 1, 16
    if options.small:
        options.input_len, options.output_len = min(options.input_len, 48), min(options.output_len, 48)
    shape = SMALL if options.small else LARGE
    hugging_face, converted = make(options.cache, "bart-small-shape" if options.small else "bart-large-shape", shape)
    ours, peer = Transept(hugging_face, options.threads), CTranslate2(converted, shape, options.threads)
    agreed = check_same_model(ours, peer, shape)
    machine = measure_machine()
    rows = []
    for batch, beams in [(batch, 1) for batch in options.batch] + [(1, beams) for beams in options.beams]:
        figures = measure([ours, peer], batch, beams, options)
        encode, step, why = bounds(shape, batch, beams, options.input_len, options.output_len, machine)
        rows.append((batch, beams, figures[ours], figures[peer], encode, step, why))
    report(options, ours, peer, machine, agreed, rows)
    report_beams(ours, options)


def report_beams(ours, options):
    """What more beams of one group cost: the median over alternating rounds of a step's own time."""
    steps = {1: [], 8: []}
    for _ in range(options.rounds):
        for beams, seen in steps.items():
            ours.calls(1, beams, options.input_len, options.output_len, options.repeats)
            seen.append(ours.facts["step_ms"])
    one, eight = (statistics.median(seen) for seen in steps.values())
    print(f"a step with 8 beams of one group: {eight:.2f} ms, {eight / one:.2f} times a step with one ({one:.2f} ms)")


def report(options, ours, peer, machine, agreed, rows):
    facts = ours.facts
    print(f"bart-large shape, float32, {options.threads} threads, input {options.input_len}, output {options.output_len} tokens, "
          f"{options.rounds} alternating rounds of {options.repeats} calls")
    print(f"transept {facts['version']} ({facts['commit']}), {facts['isa']} kernels, seeds 1 to {ours.seed}; {peer.name}, seed 7; "
          f"the first {agreed[0]} of {agreed[1]} tokens of a common request are equal; {ours.hits} inputs shared an encode")
    print(f"this machine, now: {machine['read'] / 1e9:.1f} GB/s read from memory, {machine['multiply'] / 1e9:.0f} GFLOP/s in float32\n")
    print(f"{'batch':>5}{'beams':>6}  {'engine':<28}{'tokens/s':>10}{'step ms':>10}{'encode ms':>11}{'call ms (range)':>26}{'of bound':>10}")
    for batch, beams, mine, theirs, encode, step, why in rows:
        for name, f in ((ours.name, mine), (peer.name, theirs)):
            low, high = (1e3 * value for value in f["range"])
            call = f"{1e3 * f['call']:.0f} ({low:.0f} to {high:.0f})"
            print(f"{batch:>5}{beams:>6}  {name:<28}{f['tokens_per_s']:>10.1f}{1e3 * f['step']:>10.2f}{1e3 * f['encode']:>11.1f}{call:>26}"
                  f"{100 * step / f['step']:>8.0f} %")
        print(f"{batch:>5}{beams:>6}  {'bound (step by ' + why + ')':<28}{'':>10}{1e3 * step:>10.2f}{1e3 * encode:>11.1f}")
        print(f"       ratio {mine['tokens_per_s'] / theirs['tokens_per_s']:.2f}x tokens/s, step {theirs['step'] / mine['step']:.2f}x\n")
    if options.json:
        keys = ("version", "commit", "isa", "threads", "dtype")
        options.json.write_text(json.dumps({**{k: facts[k] for k in keys}, "encoder_cache_hits": ours.hits, "peer": peer.name, "machine": machine,
                                            "input_len": options.input_len, "output_len": options.output_len, "seeds": [1, ours.seed],
                                            "rows": [dict(zip(("batch", "beams", "transept", "peer", "encode_bound", "step_bound", "bound_by"), row))
                                                     for row in rows]}, indent=2) + "\n")


if __name__ == "__main__":
    main()
