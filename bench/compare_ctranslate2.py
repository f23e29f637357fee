#!/usr/bin/env python3
"""tokens/s and step time of published models' shapes in float32: transept beside CTranslate2, and beside what bounds both.

    .venv/bin/python bench/compare_ctranslate2.py [bart-large|opus-mt|t5-base ...] [--quick] [--threads 1 2]
        [--input-len 32] [--output-len 32] [--batch 1 8 32] [--beams 4] [--beam-batch 1 8]

Makes the random checkpoints on first use. Same machine, same threads, same run: rounds alternate between the two. Inputs
are random and all different, outputs have a forced length; decoding is greedy, then with beams. Each figure is the median
over the rounds. The step time is the slope between two output lengths, for both engines alike; `encode` is the rest of
the call. First both engines score one target, and their log-probabilities are compared: they run the same model.

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

from checkpoints import SHAPES, make, plain_ids, shape_of, special_id, token

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
# Lengths and loads of a shape's usual work: summaries of pages, translations of sentences.
DEFAULTS = {
    "bart-large": {"input_len": 256, "output_len": 64, "batch": [1, 8], "beam_batch": [1], "threads": [0]},
    "opus-mt": {"input_len": 32, "output_len": 32, "batch": [1, 8, 32], "beam_batch": [1, 8], "threads": [1, 0]},
    "t5-base": {"input_len": 32, "output_len": 32, "batch": [1, 8, 32], "beam_batch": [1, 8], "threads": [1, 0]},
}


# ---- the two engines: seconds of one call

class CTranslate2:
    name = f"CTranslate2 {ctranslate2.__version__} float32"

    def __init__(self, folder, shape, threads):
        self.shape = shape
        self.rng = random.Random(7)
        self.translator = ctranslate2.Translator(str(folder), device="cpu", compute_type="float32", inter_threads=1,
                                                 intra_threads=threads)

    def translate(self, sources, num_tokens, beams=1):
        results = self.translator.translate_batch([[token(self.shape, i) for i in ids] for ids in sources], beam_size=beams,
                                                  min_decoding_length=num_tokens, max_decoding_length=num_tokens)
        tokens = [result.hypotheses[0] for result in results]
        if any(len(row) != num_tokens for row in tokens):
            sys.exit(f"CTranslate2 gave {[len(row) for row in tokens]} tokens instead of {num_tokens}")
        return tokens

    def score(self, source, target):
        [result] = self.translator.score_batch([[token(self.shape, i) for i in source]], [[token(self.shape, i) for i in target]])
        return result.log_probs

    def calls(self, batch, beams, input_len, num_tokens, repeats):
        seconds = []
        for repeat in range(repeats + 1):  # the first one warms up
            sources = [[self.rng.choice(plain_ids(self.shape)) for _ in range(input_len)] for _ in range(batch)]
            start = time.perf_counter()
            self.translate(sources, num_tokens, beams)
            seconds.append(time.perf_counter() - start)
        return seconds[1:]


class Transept:
    name = "transept float32"

    def __init__(self, folder, shape, threads):
        self.folder, self.shape, self.threads, self.facts, self.seed, self.hits = folder, shape, threads, {}, 0, 0

    def calls(self, batch, beams, input_len, num_tokens, repeats):
        self.seed += 1  # other inputs every time
        command = [str(BUILD / "transept"), "bench", "latency", str(self.folder), "--input-len", str(input_len), "--output-len",
                   str(num_tokens), "--batch-size", str(batch), "--num-beams", str(beams), "--max-num-seqs", str(max(64, batch * beams)),
                   "--repeats", str(repeats), "--threads", str(self.threads), "--seed", str(self.seed), "--json"]
        self.facts = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        self.hits += self.facts["num_encoder_cache_hits"]
        return [self.facts["call_ms"] / 1e3]

    def score(self, source, target):
        """Log-probabilities of the target's tokens."""
        start = special_id(self.shape, "</s>" if self.shape["family"] == "bart" else "<pad>")
        request = {"prompt": {"prompt_token_ids": source}, "decoder_prompt": {"prompt_token_ids": [start, *target]}}
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write(json.dumps(request) + "\n")
            file.flush()
            done = subprocess.run([str(BUILD / "transept"), "generate", str(self.folder), "--score", "--input", file.name, "--threads",
                                   str(self.threads)], check=True, capture_output=True, text=True)
        entries = json.loads(done.stdout)["prompt_logprobs"][1:]
        return [entry[str(index)]["logprob"] for entry, index in zip(entries, target)]


def check_same_model(ours, peer, shape):
    """How far the engines' log-probabilities of a common target are apart, at most."""
    rng = random.Random(3)
    source, target = rng.choices(plain_ids(shape), k=24), rng.choices(plain_ids(shape), k=16)
    difference = max(abs(a - b) for a, b in zip(ours.score(source, target), peer.score(source, target)))
    if not difference < 1e-2:
        sys.exit(f"the engines run different models: log-probabilities are {difference} apart")
    return difference


# ---- bounds

def measure_machine(threads):
    """{"read": bytes/s from memory, "multiply": float32 operations/s} of so many threads."""
    command = [str(BUILD / "bench" / "machine_bench"), "--benchmark_format=json"]
    some = sorted(os.sched_getaffinity(0))[:threads]  # it uses all processors that it may run on
    done = subprocess.run(command, check=True, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, some))
    report = json.loads(done.stdout)
    found = {}
    for case in report["benchmarks"]:
        if case["name"].startswith("BM_Read/MiB:1024"):
            found["read"] = case["GB/s"] * 1e9
        if case["name"].startswith("BM_Multiply") and "GFLOP/s" in case:
            found["multiply"] = case["GFLOP/s"] * 1e9
    return found


def bounds(shape, batch, beams, options, machine):
    """Seconds at least: of an encode, and of a step by the bytes that it reads and by the operations that it does."""
    d, layers, input_len, output_len = shape["d_model"], shape["layers"], options["input_len"], options["output_len"]
    decoder = layers * (6 * d * d + 2 * d * shape["ffn"]) + shape["vocab"] * d  # weights that a step reads
    # Beams read the cross keys of their group once, and their own self keys.
    self_keys = output_len / 2
    step_bytes = 4 * (decoder + batch * (input_len + beams * self_keys) * 2 * d * layers)
    step_flop = batch * beams * (2 * decoder + 4 * (input_len + self_keys) * d * layers)
    encoder = layers * (4 * d * d + 2 * d * shape["ffn"]) + layers * 2 * d * d  # and cross K, V
    encode_flop = batch * input_len * (2 * encoder + 4 * input_len * d * layers)
    encode = max(encode_flop / machine["multiply"], 4 * encoder / machine["read"])
    return {"encode": encode, "bytes": step_bytes / machine["read"], "operations": step_flop / machine["multiply"]}


# ---- measuring

def measure(engines, batch, beams, options):
    """{engine: {call, step, encode, tokens_per_s, range}} in seconds, medians over alternating rounds."""
    input_len, output_len = options["input_len"], options["output_len"]
    short = max(2, output_len // 4)
    calls = {engine: {length: [] for length in (output_len, short)} for engine in engines}
    for _ in range(options["rounds"]):
        for engine in engines:
            for length, seconds in calls[engine].items():
                seconds += engine.calls(batch, beams, input_len, length, options["repeats"])
    figures = {}
    for engine, by_length in calls.items():
        call, brief = (statistics.median(by_length[length]) for length in (output_len, short))
        step = (call - brief) / (output_len - short)
        figures[engine] = {"call": call, "step": step, "encode": call - step * output_len, "tokens_per_s": batch * output_len / call,
                           "range": (min(by_length[output_len]), max(by_length[output_len]))}
    return figures


def beam_cost(ours, options):
    """Seconds of a step with 1 and with 8 beams of one group: medians over alternating rounds of the step's own time."""
    steps = {1: [], 8: []}
    for _ in range(options["rounds"]):
        for beams, seen in steps.items():
            ours.calls(1, beams, options["input_len"], options["output_len"], options["repeats"])
            seen.append(ours.facts["step_ms"] / 1e3)
    return [statistics.median(seen) for seen in steps.values()]


def compare(name, shape, folders, threads, options):
    """Everything about one shape on so many threads, as it is printed and written."""
    ours, peer = Transept(folders[0], shape, threads), CTranslate2(folders[1], shape, threads)
    difference = check_same_model(ours, peer, shape)
    machine = measure_machine(threads)
    rows = []
    loads = [(batch, 1) for batch in options["batch"]] + [(batch, beams) for beams in options["beams"] for batch in options["beam_batch"]]
    for batch, beams in loads:
        figures = measure([ours, peer], batch, beams, options)
        rows.append({"batch": batch, "beams": beams, "transept": figures[ours], "peer": figures[peer],
                     "bound": bounds(shape, batch, beams, options, machine)})
    one, eight = beam_cost(ours, options)
    facts = {key: ours.facts[key] for key in ("version", "commit", "isa", "dtype")}
    return {"shape": name, "threads": threads, **options, **facts, "peer": peer.name, "machine": machine, "largest_difference": difference,
            "seeds": [1, ours.seed], "encoder_cache_hits": ours.hits, "rows": rows, "step_of_1_beam": one, "step_of_8_beams": eight}


def report(result):
    machine = result["machine"]
    print(f"{result['shape']} shape, float32, threads {result['threads']}, input {result['input_len']}, output {result['output_len']} tokens, "
          f"{result['rounds']} alternating rounds of {result['repeats']} calls")
    print(f"transept {result['version']} ({result['commit']}), {result['isa']} kernels, seeds 1 to {result['seeds'][1]}; {result['peer']}, seed 7; "
          f"log-probabilities of a common target are {result['largest_difference']:.1e} apart at most; {result['encoder_cache_hits']} inputs shared an encode")
    print(f"this machine, now, on so many threads: {machine['read'] / 1e9:.1f} GB/s read from memory, "
          f"{machine['multiply'] / 1e9:.0f} GFLOP/s in float32\n")
    print(f"{'batch':>5}{'beams':>6}  {'engine':<28}{'tokens/s':>10}{'step ms':>10}{'encode ms':>11}{'call ms (range)':>26}{'of bound':>10}{'of bytes':>10}")
    for row in result["rows"]:
        mine, theirs, bound = row["transept"], row["peer"], row["bound"]
        place = f"{row['batch']:>5}{row['beams']:>6}  "
        step = max(bound["bytes"], bound["operations"])
        for name, f in ((Transept.name, mine), (result["peer"], theirs)):
            low, high = (1e3 * value for value in f["range"])
            call = f"{1e3 * f['call']:.0f} ({low:.0f} to {high:.0f})"
            print(f"{place}{name:<28}{f['tokens_per_s']:>10.1f}{1e3 * f['step']:>10.2f}{1e3 * f['encode']:>11.1f}{call:>26}"
                  f"{100 * step / f['step']:>8.0f} %{100 * bound['bytes'] / f['step']:>8.0f} %")
        why = "bytes" if bound["bytes"] >= bound["operations"] else "operations"
        print(f"{place}{f'bound (step by {why})':<28}{'':>10}{1e3 * step:>10.2f}{1e3 * bound['encode']:>11.1f}")
        print(f"       ratio {mine['tokens_per_s'] / theirs['tokens_per_s']:.2f}x tokens/s, step {theirs['step'] / mine['step']:.2f}x\n")
    one, eight = result["step_of_1_beam"], result["step_of_8_beams"]
    print(f"a step with 8 beams of one group: {1e3 * eight:.2f} ms, {eight / one:.2f} times a step with one ({1e3 * one:.2f} ms)\n", flush=True)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=f"of {', '.join(SHAPES)} (default: all)")
    parser.add_argument("--input-len", type=int)
    parser.add_argument("--output-len", type=int)
    parser.add_argument("--batch", type=int, nargs="+", help="requests at once, greedy")
    parser.add_argument("--beams", type=int, nargs="+", default=[4], help="beams of a search, after the greedy batches")
    parser.add_argument("--beam-batch", type=int, nargs="+", help="requests at once, with beams")
    parser.add_argument("--threads", type=int, nargs="+", help="one after the other; 0: all processors")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3, help="calls a round (transept reports their median)")
    parser.add_argument("--quick", action="store_true", help="2 rounds of 1 call, 16 tokens")
    parser.add_argument("--tiny", action="store_true", help="tiny shapes: tries this script out, measures nothing")
    parser.add_argument("--cache", type=Path, default=ROOT / ".cache" / "bench")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    unknown = sorted(set(options.shapes) - set(SHAPES))
    if unknown:
        parser.error(f"unknown shape {', '.join(unknown)}; known: {', '.join(SHAPES)}")
    if options.quick:
        options.rounds, options.repeats, options.output_len = 2, 1, options.output_len or 16
    return options


def main():
    options = parse_options()
    results = []
    for name in options.shapes or SHAPES:
        given = {key: value for key, value in vars(options).items() if key in DEFAULTS[name] and value is not None}
        loads = {**DEFAULTS[name], **given, "beams": options.beams, "rounds": options.rounds, "repeats": options.repeats}
        if options.tiny:
            loads.update(input_len=min(loads["input_len"], 48), output_len=min(loads["output_len"], 48))
        shape = shape_of(name, options.tiny)
        folders = make(options.cache, f"{name}-tiny" if options.tiny else f"{name}-shape", shape)
        for threads in dict.fromkeys(count or len(os.sched_getaffinity(0)) for count in loads.pop("threads")):
            results.append(compare(name, shape, folders, threads, loads))
            report(results[-1])
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
