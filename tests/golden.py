#!/usr/bin/env python3
"""Runs the transept binary over folders of the reference's answers and compares.

    tests/golden.py                          # tests/models, each way of running at least in pairs (see below)
    tests/golden.py --full                   # every combination
    tests/golden.py --quick                  # three combinations
    tests/golden.py --root ../shared/golden --filter text/bart

A folder is a model with X.jsonl and X_expected.jsonl for X in beams, alignments, score, batch, errors, tokenize, detokenize, and
requests.jsonl with expected.jsonl. Ids, texts and reasons are compared exactly, log-probabilities within 1e-3. The ways of
running are combinations of attention backend, instruction level, block size, pool size, preemption, sharing, plans that go through
bytes, random drafts, and a separated encoder; blocks are poisoned throughout. Closes with `N passed, N failed`.
"""
import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from golden_compare import compare

HERE = Path(__file__).resolve().parent
FILES = {"requests": "expected", "beams": "beams_expected", "alignments": "alignments_expected",
         "batch": "batch_expected", "score": "score_expected", "errors": "errors_expected",
         "tokenize": "tokenize_expected", "detokenize": "detokenize_expected"}
ONCE = ("errors", "tokenize", "detokenize")  # what no way of running changes
AXES = {"--attention-backend": ["reference", "cpu"], "--isa": [], "--block-size": ["16", "1", "4", "32"],
        "pool": ["roomy", "tiny"], "--preemption-mode": ["recompute", "swap"], "--share-identical-inputs": ["on", "off"],
        "plans": ["as they are", "as bytes"], "drafts": ["none", "random"], "encoder": ["here", "in another process"]}
# What the kernel says of this processor -> our level.
ISA_FLAGS = {"generic": set(), "avx2": {"avx2", "fma", "f16c"}, "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
             "avx512_vnni": {"avx512_vnni"}, "avx512_bf16": {"avx512_bf16"}, "avx512_fp16": {"avx512_fp16"}, "amx": {"amx_tile", "amx_int8", "amx_bf16"}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transept", default=str(HERE.parent / "build" / "release" / "transept"))
    parser.add_argument("--root", type=Path, default=HERE / "models")
    parser.add_argument("--filter", default="", help="only folders and cases whose folder/file/id contains this")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--plain", action="append", default=[], metavar="AXIS", help="only the first value of this axis (plans, drafts, encoder, ..)")
    parser.add_argument("--device", default="", help="run on this device (vulkan:lavapipe) whatever it has of these ways")
    parser.add_argument("--jobs", type=int, default=1, help="runs of the binary at a time (default: 1)")
    parser.add_argument("--show", type=int, default=20, help="failing cases printed in full (default: %(default)s)")
    options = parser.parse_args()
    ways, notes = choose_ways(options)
    folders = sorted({path.parent for path in options.root.rglob("*expected.jsonl")})
    if options.device:
        notes += [f"skipped: {folder.name}: shortlists are the processor's alone" for folder in folders if list(folder.glob("lex*"))]
        folders = [folder for folder in folders if not list(folder.glob("lex*"))]
    jobs = [(options, folder, file, way)
            for folder in folders
            for file in FILES if (folder / f"{file}.jsonl").exists() and (folder / "config.json").exists()
            for way in (ways[:1] if file in ONCE else ways)]
    passed, failures, seconds = 0, [], Counter()
    with ThreadPoolExecutor(options.jobs) as pool:
        for (_, folder, *_), (good, bad, taken) in zip(jobs, pool.map(timed, jobs)):
            passed += good
            failures += bad
            seconds[str(folder.relative_to(options.root))] += taken
    print("\n".join(failures[:options.show]))
    if len(failures) > options.show:
        print(f"... and {len(failures) - options.show} more")
    print("\n".join(notes))
    if seconds:
        print("seconds: " + ", ".join(f"{name} {taken:.1f}" for name, taken in seconds.most_common()))
    print(f"{passed} passed, {len(failures)} failed")
    sys.exit(1 if failures or not (passed or options.filter) else 0)


# ---- ways of running

def choose_ways(options):
    """(list of {axis: value}, notes about what this machine lacks)."""
    levels, absent = present_levels()
    axes = {**AXES, "--isa": levels}
    axes |= {axis: axes[axis][:1] for axis in options.plain}
    if options.device:  # what is the processor's alone: its backends and levels, a separated encoder
        axes |= {"--attention-backend": ["auto"], "--isa": levels[-1:], "encoder": ["here"], "--device": [options.device]}
    notes = [f"skipped: instruction level {level}: this processor does not have it" for level in absent]
    everything = [dict(zip(axes, values)) for values in itertools.product(*axes.values())]
    if options.full:
        return everything, notes
    chosen = pairwise(everything)
    return (chosen[:3] if options.quick else chosen), notes


def present_levels():
    """(levels of this processor, levels that it lacks), lowest first; each level includes the ones before it."""
    try:
        flags = next(line for line in open("/proc/cpuinfo", encoding="ascii") if line.startswith("flags")).split()
    except (OSError, StopIteration):
        flags = []
    names = list(ISA_FLAGS)
    present = list(itertools.takewhile(lambda name: ISA_FLAGS[name] <= set(flags), names))
    return present, names[len(present):]


def pairwise(everything):
    """A choice of combinations in which every two values of two axes meet at least once: greedy, in order."""
    pairs = lambda way: set(itertools.combinations(sorted(way.items()), 2))
    wanted, chosen = set().union(*map(pairs, everything)), []
    while wanted:
        best = max(everything, key=lambda way: len(pairs(way) & wanted))
        chosen.append(best)
        wanted -= pairs(best)
    return chosen


def flags_of(way, config, defaults, requests):
    """Command-line flags of a way of running one model."""
    widest = max((num_seqs(request, defaults) for request in requests), default=1)
    flags = ["--debug-poison", "--max-num-seqs", str(max(8, widest))]
    for axis, value in way.items():
        if axis.startswith("--"):
            flags += [axis, value]
    if way["plans"] == "as bytes":
        flags.append("--debug-loopback-plans")
    if way["drafts"] == "random":
        flags += ["--speculative-config", json.dumps({"method": "random", "truth": 0.8, "num_speculative_tokens": 5})]
    is_separated = way["encoder"] == "in another process"
    if is_separated:
        flags += ["--epd", "1E1D"]
    if way["pool"] == "tiny":
        flags += ["--kv-cache-memory", str(tiny_pool(config, defaults, requests, int(way["--block-size"]), is_separated))]
    return flags


def tiny_pool(config, defaults, requests, block_size, takes_rows=False):
    """Bytes of a pool that holds little more than the longest request: cross and self tables, where the encoder is separated
    the rows of an input on their way, and two blocks to spare."""
    if config.get("model_type") == "mllama":
        return tiny_pool_of_tiles(config, block_size, takes_rows)
    positions = config.get("max_position_embeddings") or most_asked(defaults, requests)  # T5 has no limit
    width = config["d_kv"] * config["num_heads"] if "d_kv" in config else config.get("d_model")
    if width is None:  # Qwen2-VL: rows of pictures are in the place of cross KV
        width = config["hidden_size"] // config["num_attention_heads"] * config.get("num_key_value_heads", config["num_attention_heads"])
    layers = next(config[key] for key in ("decoder_layers", "num_decoder_layers", "num_layers", "num_hidden_layers") if config.get(key))
    block_bytes = layers * 64 * blocks_of(2 * 4 * width * block_size, 64)  # a layer of a block begins at a line of the cache
    blocks = max(2 * blocks_of(positions, block_size), *(needed_blocks(r, defaults, positions, block_size) for r in requests)) + 2
    if takes_rows:
        # A quarter of the pool is for them. Of a model without a limit it is also the limit of an input.
        blocks += blocks // 3 + 1 if "max_position_embeddings" in config else blocks
    return int(1.15 * blocks * block_bytes)


def tiny_pool_of_tiles(config, block_size, takes_rows):
    """Of Mllama: the rows of eight pictures in some layers, the longest prompt in the others, and beams."""
    text, tower = config["text_config"], config["vision_config"]
    rows = 8 * tower["max_num_tiles"] * ((tower["image_size"] // tower["patch_size"]) ** 2 + 1)
    width = text["hidden_size"] // text["num_attention_heads"] * text["num_key_value_heads"]
    crossing = len(text["cross_attention_layers"])
    layers = max(crossing, text["num_hidden_layers"] - crossing)
    block_bytes = layers * 64 * blocks_of(2 * 4 * width * block_size, 64)
    blocks = blocks_of(rows, block_size) + 2 * blocks_of(text["max_position_embeddings"], block_size) + 6
    if takes_rows:
        blocks += blocks // 2
    return int(1.15 * blocks * block_bytes)


def most_asked(defaults, requests):
    """Tokens that the longest request may come to: what it gives (a byte of text may be a token) and what it wants."""
    def given(value):
        if isinstance(value, str):
            return len(value.encode()) + 8
        if isinstance(value, dict):
            return sum(given(part) for part in value.values())
        return len(value) if isinstance(value, list) else 0
    fields = ("prompt", "prompt_token_ids", "encoder_prompt", "decoder_prompt")
    return max(sum(given(request.get(name)) for name in fields) + request.get("max_tokens", defaults.get("max_length", 150))
               for request in requests)


def needed_blocks(request, defaults, positions, block_size):
    """KV blocks that a request may come to, roughly upwards: its encoder input and its sequences."""
    prompt = request.get("decoder_prompt")
    ids = prompt.get("prompt_token_ids", "") if isinstance(prompt, dict) else prompt or ""
    length = positions if "max_tokens" not in request else min(positions, request["max_tokens"] + len(ids) + 8)
    return blocks_of(positions, block_size) + num_seqs(request, defaults) * blocks_of(length, block_size)


def blocks_of(num_tokens, block_size):
    return -(-num_tokens // block_size)


def num_seqs(request, defaults):
    """Beams or samples; beams of the request's own, or inherited and not switched off by a field that samples."""
    wanted = [request.get(name) for name in ("num_beams", "n", "num_return_sequences", "best_of")]
    samples = request.get("temperature", 0) or any(name in request for name in ("top_p", "top_k", "min_p"))
    inherited = 1 if samples or "num_beams" in request or "use_beam_search" in request else defaults.get("num_beams", 1)
    return max([inherited, *(number for number in wanted if isinstance(number, int))])


# ---- running

def timed(job):
    """run_file's answer and its seconds."""
    start = time.monotonic()
    passed, failing = run_file(*job)
    return passed, failing, time.monotonic() - start


def run_file(options, folder, file, way):
    """One file through the binary: (passed, failing blocks)."""
    requests, expected = read_jsonl(folder / f"{file}.jsonl"), read_jsonl(folder / f"{FILES[file]}.jsonl")
    config, defaults = (json.loads(p.read_text()) if p.exists() else {} for p in (folder / "config.json", folder / "generation_config.json"))
    place = f"{folder.relative_to(options.root)}/{file}"
    chosen = [i for i, r in enumerate(requests) if options.filter in f"{place}/{r['id']}"]
    if not chosen:
        return 0, []
    requests, expected = [requests[i] for i in chosen], [expected[i] for i in chosen]
    flags = flags_of(way, config, defaults, requests) if file not in ("tokenize", "detokenize") else []
    lines, problem, code = run_binary(options.transept, folder, file, requests, flags)
    label = f"{place} {' '.join(flags)}"
    if problem:
        return 0, [f"FAIL {label}\n  {problem}"] * len(requests)
    passed, failures = 0, []
    for i, wanted in enumerate(expected):
        mismatch = next(compare(file, wanted, lines[i] if i < len(lines) else None), None)
        if mismatch:
            failures.append(f"FAIL {label}: {wanted['id']}: {mismatch[0]}\n  expected {short(mismatch[1])}\n  got      {short(mismatch[2])}")
        passed += not mismatch
    wanted_code = int(any("error" in wanted for wanted in expected))
    if not failures and (code != wanted_code or len(lines) != len(expected)):
        failures.append(f"FAIL {label}: exit code {code} (expected {wanted_code}), {len(lines)} lines (expected {len(expected)})")
    return passed, failures


def run_binary(binary, folder, file, requests, flags):
    """(output lines as JSON, what went wrong or None, exit code)."""
    with tempfile.TemporaryDirectory() as scratch:
        source, output = Path(scratch) / "input.jsonl", Path(scratch) / "output.jsonl"
        source.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in requests), encoding="utf-8")
        verb = file if file in ("tokenize", "detokenize") else "generate"
        command = [binary, verb, str(folder), "--input", str(source), *flags]
        command += ["--output", str(output)] if verb == "generate" else []
        command += ["--score"] if file == "score" else []
        try:
            done = subprocess.run(command, capture_output=True, timeout=300, stdin=subprocess.DEVNULL)
        except (OSError, subprocess.TimeoutExpired) as why:
            return [], str(why), None
        said = done.stderr.decode("utf-8", "replace").strip()
        if done.returncode not in (0, 1):
            return [], f"exit code {done.returncode}: {said[-600:]}", done.returncode
        text = output.read_text(encoding="utf-8") if verb == "generate" and output.exists() else done.stdout.decode("utf-8")
        try:
            return [json.loads(line) for line in text.split("\n") if line.strip()], None, done.returncode
        except ValueError as why:
            return [], f"an output line is no JSON: {why}", done.returncode


def read_jsonl(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def short(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 400 else text[:400] + "..."


if __name__ == "__main__":
    main()
