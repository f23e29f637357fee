#!/usr/bin/env python3
"""Workloads through transept, beside its peers in the same run, and beside what this machine allows.

    bench/compare.py [--workloads FILE...] [--filter NAME] [--beside none|ctranslate2,transformers] [--rounds 3] [--repeats 3]
        [--dtype T] [--quantization int8] [--kv-cache-dtype int8] [--threads N] [--peer-dtype T] [--json FILE]

./dev bench calls it. Rounds alternate: transept, each peer, transept, ... Every engine runs in a process of its own, loads,
warms up by one call, and gives the median of --repeats calls; the table has the median of the rounds, and their range. A peer is
tried with one thread and with all, whisper.cpp also with flash attention and without; the best counts. Inputs are all different. Alone on the machine, please.

Tasks of audio files want a real Whisper folder (--model) and the clip (--audio); both are looked for in ../shared.
"""
import argparse
import difflib
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bounds
import machine
import transept_side
import workloads
from machine import ROOT
from neighbours import Neighbours, kept
from shapes import plain_ids, shape_of, special_id

SHARED = ROOT.parent / "shared"
CACHE = ROOT / ".cache" / "bench"
HERE = Path(__file__).resolve().parent
DEFAULT_PEERS = {"generate": "ctranslate2", "clients": "ctranslate2", "whisper-window": "ctranslate2", "transcribe": "faster-whisper"}
# Peers that run clips, and whether those run windows, too.
OF_CLIPS = {"faster-whisper": False, "whispercpp": True}
# What counts, and whether more of it is better.
HEADLINE = {"generate": ("tokens_per_s", True), "clients": ("tokens_per_s", True), "whisper-window": ("call_ms", False),
            "transcribe": ("x_real_time", True)}
RATIOS = {"tokens_per_s": True, "step_ms": False, "encode_ms": False, "call_ms": False, "x_real_time": True, "latency_ms_p50": False,
          "latency_ms_p99": False, "ttft_ms_p99": False, "peak_rss_mib": False, "load_s": False}
UNITS = {"tokens_per_s": "tokens/s", "call_ms": "ms a call", "x_real_time": "x real time"}


# ---- arithmetic

def summary(rounds):
    """{figure: {median, min, max}} of a list of {figure: value}; only what every round has."""
    names = [name for name in rounds[0] if all(isinstance(r.get(name), (int, float)) for r in rounds)]
    return {name: {"median": statistics.median(r[name] for r in rounds), "min": min(r[name] for r in rounds),
                   "max": max(r[name] for r in rounds)} for name in names}


def ratio(ours, theirs, more_is_better):
    """Above 1: ours is better."""
    if not ours or not theirs or ours < 0 or theirs < 0:
        return None
    return ours / theirs if more_is_better else theirs / ours


def best_of(engines, task):
    """Name of the peer's variant with the best headline."""
    name, more_is_better = HEADLINE[task]
    found = {label: engine["figures"][name]["median"] for label, engine in engines.items() if label != "transept"}
    return (max if more_is_better else min)(found, key=found.get) if found else None


def share_of_bound(figures, limit):
    """Share of the machine's bound that each figure reaches: 1 is the bound."""
    names = [name for name in ("tokens_per_s", "x_real_time", "step_ms", "encode_ms", "call_ms") if name in limit and name in figures]
    return {name: ratio(figures[name]["median"], limit[name], name in ("tokens_per_s", "x_real_time")) for name in names}


def hopeless(theirs, task):
    """Variants of a peer that are not run again: by their first round less than half as fast as the best."""
    name, more_is_better = HEADLINE[task]
    first = {label: rounds[0][name] for label, rounds in theirs.items() if rounds}
    best = (max if more_is_better else min)(first.values(), default=None)
    return {label for label, value in first.items() if (value < best / 2 if more_is_better else value > best * 2)}


def words(text):
    return "".join(c if c.isalnum() or c == "'" else " " for c in text.lower()).split()


def apart(a, b):
    """Share of words that are not the same."""
    return 1 - difflib.SequenceMatcher(None, words(a), words(b), autojunk=False).ratio()


def without_folders(text):
    """Results name no path of this machine."""
    return re.sub(r"(?<![\w.])(?:/[\w.@+-]+)+/(?=[\w.@+-])", "", text)


# ---- peers

def can_run(peer, task):
    return peer in OF_CLIPS if task == "transcribe" else OF_CLIPS.get(peer, True)


def variants(task, peers, processors):
    """[(label, peer, threads, replicas, more arguments of run.py)] to try."""
    found = []
    for peer in [DEFAULT_PEERS[task]] if peers == ["auto"] else peers:
        if peer == "none" or not can_run(peer, task):
            continue
        if task == "clients" and peer == "ctranslate2" and processors > 1:
            found.append((f"{peer}, {processors} replicas", peer, processors, processors, ()))
        for count in sorted({1, processors}):
            label = f"{peer}, {count} thread{'s' if count > 1 else ''}"
            found.append((label, peer, count, 1, ()))
            if peer == "whispercpp":
                found.append((f"{label}, no flash attention", peer, count, 1, ("--flash-attention", "off")))
    return found


def run_peer(options, work, peer, threads, replicas, seed, extra=()):
    """What bench/peers/run.py prints; None where the peer is not installed."""
    plain = {key: value for key, value in work.items() if key != "folder"}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(plain, file)
        file.flush()
        command = [options.python, HERE / "peers" / "run.py", file.name, "--peer", peer, "--dtype", options.peer_dtype, "--threads", threads,
                   "--replicas", replicas, "--repeats", options.repeats, "--seed", seed, "--cache", options.cache,
                   *(["--tiny"] if options.tiny else []), *extra]
        if work["task"] == "transcribe":
            command += ["--model", options.model, "--audio", audio_of(work, options)]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        return {"error": without_folders((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])}
    return json.loads(done.stdout.strip().splitlines()[-1])


def audio_of(work, options):
    """The clip's path, or None."""
    folders = [options.audio] if options.audio else [work["folder"].parent.parent / work["audio"], SHARED / work["audio"]]
    return next((path for path in folders if path.exists()), None)


def model_of(work, options):
    """The folder that transept runs, or None."""
    if work["task"] == "transcribe":
        return options.model if (options.model / "config.json").exists() and audio_of(work, options) else None
    kind = "tiny" if options.tiny else "shape"
    folder = options.cache / f"{work['shape']}-{kind}" / "hf"
    if not (folder / "config.json").exists():
        made = subprocess.run([options.python, str(HERE / "checkpoints.py"), work["shape"], "--cache", str(options.cache),
                               *(["--tiny"] if options.tiny else [])], capture_output=True, text=True)
        if made.returncode != 0:
            sys.exit(f"bench: no checkpoint of {work['shape']}: {made.stderr.strip().splitlines()[-1]} (./dev bench --peers installs what makes it)")
    return folder


def check_same_model(options, work, model):
    """How far transept's log-probabilities of a target are from CTranslate2's, both in float32."""
    shape = shape_of(work["shape"], options.tiny)
    rng = random.Random(3)
    source, target = rng.choices(plain_ids(shape), k=24), rng.choices(plain_ids(shape), k=16)
    float32 = argparse.Namespace(**{**vars(options), "peer_dtype": "float32"})
    theirs = run_peer(float32, work, "ctranslate2", 1, 1, 1, ["--score", json.dumps([source, target])])
    if isinstance(theirs, dict):
        return None
    start = special_id(shape, "</s>" if shape["family"] == "bart" else "<pad>")
    request = {"prompt": {"prompt_token_ids": source}, "decoder_prompt": {"prompt_token_ids": [start, *target]}}
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write(json.dumps(request) + "\n")
        file.flush()
        answer = transept_side.run([transept_side.BINARY, "generate", model, "--score", "--input", file.name, "--dtype", "float32"])
    ours = [entry[str(index)]["logprob"] for entry, index in zip(json.loads(answer)["prompt_logprobs"][1:], target)]
    difference = max(abs(a - b) for a, b in zip(ours, theirs))
    if not difference < 1e-2:
        sys.exit(f"bench: the engines run different models of {work['shape']}: log-probabilities are {difference} apart")
    return difference


# ---- measuring

def commit():
    """Of the tree that was measured, and whether files differ from it."""
    done = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def run_transept(options, work, model, seed, binary=transept_side.BINARY):
    flags = ["--threads", options.threads, "--dtype", options.dtype, "--quantization", options.quantization, "--kv-cache-dtype",
             options.kv_cache_dtype, *options.flag]
    if work["task"] == "transcribe":
        return transept_side.run_transcribe(work, model, flags, options.repeats, audio_of(work, options), binary)
    return transept_side.run_bench(work, model, flags, options.repeats, seed, binary)


def limit_of(options, work, facts, peaks):
    shape = shape_of(work["shape"], options.tiny)
    weights = bounds.weights_dtype(facts.get("dtype", options.dtype), facts.get("quantization", options.quantization), facts["weight_bytes"])
    cache = bounds.cache_dtype(facts.get("kv_cache_dtype", options.kv_cache_dtype), weights)
    if work["task"] != "transcribe":
        return bounds.bound(work, shape, weights, cache, peaks)
    seconds = bounds.clip_bound(shape, facts["windows"], max(0, facts["steps"] - facts["windows"]), work["beam"], weights, cache, peaks)
    return {"call_ms": seconds * 1e3, "x_real_time": facts["audio_seconds"] / seconds}


def measure(options, work, model, peaks):
    """One row of the results."""
    ours, texts, hits, facts = [], {}, 0, {}
    theirs = {label: [] for label, *_ in variants(work["task"], options.beside, machine.num_processors())}
    notes, versions, given_up = [], {}, set()
    for number in range(options.rounds):
        seed = work["seed"] * 1000 + number  # other inputs in every round
        figures, facts = run_transept(options, work, model, seed)
        ours.append(figures)
        hits += facts["encoder_cache_hits"]
        texts["transept"] = facts.pop("text", "")
        for label, peer, threads, replicas, more in variants(work["task"], options.beside, machine.num_processors()):
            if label not in theirs or label in given_up:
                continue
            answer = run_peer(options, work, peer, threads, replicas, seed, more)
            if "error" in answer:
                notes.append(f"{label}: {answer['error']}")
                del theirs[label]
                continue
            versions[label] = f"{answer.pop('version')} {answer.pop('dtype')}"
            texts[label] = answer.pop("text", "")
            if "seconds" in answer:
                answer["x_real_time"] = facts["audio_seconds"] / answer["seconds"]
            theirs[label].append(answer)
        if number == 0:
            given_up = hopeless(theirs, work["task"])
    engines = {"transept": {"figures": summary(ours)}}
    engines.update({label: {"figures": summary(rounds), "version": versions[label]} for label, rounds in theirs.items()})
    if options.rounds > 1:
        notes += [f"{label}: one round only, less than half as fast as the best" for label in sorted(given_up)]
    best = best_of(engines, work["task"])
    plain = {key: value for key, value in work.items() if key != "folder"}
    limit = limit_of(options, work, facts, peaks)
    row = {"workload": plain, "facts": {**facts, "seed": work["seed"] * 1000, "encoder_cache_hits": hits}, "engines": engines,
           "best_peer": best, "bound": limit, "share_of_bound": share_of_bound(engines["transept"]["figures"], limit), "notes": notes}
    if best:
        row["ratios"] = ratios(engines, best)
        if work["task"] == "transcribe":
            row["words_apart"] = apart(texts["transept"], texts[best])
    return row


def measure_beside(options, work, model, labels):
    """{number of busy processes: {engine: {quiet, busy: summaries of the headline; kept}}}; rounds alternate."""
    name, more_is_better = HEADLINE[work["task"]]
    runs = {"transept": lambda seed: run_transept(options, work, model, seed)[0]}
    for label, peer, threads, replicas, more in variants(work["task"], options.beside, machine.num_processors()):
        if label in labels:
            runs[label] = lambda seed, p=(peer, threads, replicas, more): run_peer(options, work, *p[:3], seed, p[3])
    found = {}
    for count in options.neighbours:
        taken = {label: {"quiet": [], "busy": []} for label in runs}
        for number in range(options.rounds):
            for state, beside in (("quiet", 0), ("busy", count)):
                for label, run in runs.items():
                    with Neighbours(beside):
                        taken[label][state].append({name: run(work["seed"] * 1000 + number)[name]})
        found[count] = {label: {state: summary(rounds)[name] for state, rounds in states.items()} for label, states in taken.items()}
        for engine in found[count].values():
            engine["kept"] = kept(engine["quiet"]["median"], engine["busy"]["median"], more_is_better)
    return found


def ratios(engines, best):
    """{figure: {of medians, the least and the most of the ranges}} against the best peer."""
    mine, other, found = engines["transept"]["figures"], engines[best]["figures"], {}
    for name, more in RATIOS.items():
        if name in mine and name in other:
            worst, top = ("min", "max") if more else ("max", "min")
            found[name] = {"median": ratio(mine[name]["median"], other[name]["median"], more),
                           "least": ratio(mine[name][worst], other[name][top], more), "most": ratio(mine[name][top], other[name][worst], more)}
    return found


# ---- printing

def show(figures, names):
    parts = []
    for name in names:
        if name in figures:
            f = figures[name]
            parts.append(f"{name} {f['median']:.4g} ({f['min']:.4g} to {f['max']:.4g})")
    return ", ".join(parts)


def report(row):
    work, headline = row["workload"], HEADLINE[row["workload"]["task"]]
    names = [headline[0], *(n for n in ("step_ms", "encode_ms", "latency_ms_p50", "latency_ms_p99", "ttft_ms_p99", "peak_rss_mib", "load_s")
                            if n != headline[0])]
    print(f"\n{work['name']}  (cache hits {row['facts']['encoder_cache_hits']})")
    for label, engine in row["engines"].items():
        print(f"  {label:<26} {show(engine['figures'], names)}")
    shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in row["share_of_bound"].items() if share)
    print(f"  {'of the bound':<26} {shares or '-'}")
    if row["best_peer"]:
        parts = [f"{name} {r['median']:.2f}x" for name, r in row["ratios"].items() if r["median"]]
        print(f"  {'against ' + row['best_peer']:<26} {', '.join(parts)}" + (f", {100 * row['words_apart']:.1f} % of the words differ" if "words_apart" in row else ""))
    for count, engines in row.get("neighbours", {}).items():
        print(f"  {f'beside {count} busy':<26} " + ", ".join(f"{label} keeps {engine['kept']:.2f}" for label, engine in engines.items()))
    for note in dict.fromkeys(row["notes"]):
        print(f"  note: {note}")
    sys.stdout.flush()


def add_options(parser):
    parser.add_argument("--workloads", nargs="+", type=Path, metavar="FILE", help="default: bench/workloads")
    parser.add_argument("--filter", default="", help="only workloads whose name contains one of these, separated by commas")
    parser.add_argument("--beside", default="auto", help="auto, none, or of ctranslate2, transformers, openvino, faster-whisper, whispercpp")
    parser.add_argument("--peer-dtype", help="default: float32, or int8 where transept runs in int8")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=machine.num_processors(), help="of transept")
    parser.add_argument("--neighbours", type=int, nargs="+", default=[], metavar="N",
                        help="also beside so many busy processes: what transept and its best peer keep of their quiet figures")
    bounds.add_dtype_flags(parser)
    parser.add_argument("--flag", action="append", default=[], help="one more argument of transept: --flag=--isa=avx2")
    parser.add_argument("--model", type=Path, default=SHARED / "models" / "whisper-tiny")
    parser.add_argument("--audio", type=Path)
    parser.add_argument("--quick", action="store_true", help="1 round of 1 call")
    parser.add_argument("--tiny", action="store_true", help="tiny shapes: tries this out, measures nothing")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--python", default=sys.executable, help="one that has the peers")
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "bench" / "results.json")


def settle(options):
    if options.quick:
        options.rounds = options.repeats = 1
    options.beside = options.beside.split(",")
    options.peer_dtype = options.peer_dtype or ("int8" if options.quantization == "int8" else "float32")
    for name in ("cache", "json", "model"):
        setattr(options, name, getattr(options, name).absolute())


def is_wanted(work, options):
    return any(part in work["name"] for part in options.filter.split(","))


def fit_tiny(work):
    """Lengths that a tiny shape has."""
    small = {key: min(work[key], 24) for key in ("source_tokens", "target_tokens", "requests") if key in work}
    if "target_tokens_range" in work:
        small["target_tokens_range"] = [min(n, 24) for n in work["target_tokens_range"]]
    return {**work, **small}


def better(first, second):
    """The higher of two measurements of the machine: neither can be above what it can do."""
    top = lambda key: {name: max(first[key][name], second[key][name]) for name in first[key]}
    return {**first, "read": top("read"), "operations": top("operations")}


def compare(options):
    """The whole result, which is also printed as it comes and written to --json."""
    settle(options)
    works = [work for work in workloads.load(options.workloads) if is_wanted(work, options)]
    if not works:
        sys.exit("bench: no workload of that name")
    peaks = better(machine.measure(options.threads), machine.measure(options.threads))
    print(f"{peaks['cpu']}, {peaks['threads']} threads; peaks: " + ", ".join(f"{k} {v / 1e9:.0f} GOP/s" for k, v in peaks["operations"].items())
          + "; reads: " + ", ".join(f"{k} MiB {v / 1e9:.0f} GB/s" for k, v in peaks["read"].items()))
    rows, skipped, checked = [], [], {}
    result = {"started": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "commit": commit(), "machine": peaks, "threads": options.threads,
              "dtype": options.dtype, "quantization": options.quantization, "kv_cache_dtype": options.kv_cache_dtype,
              "peer_dtype": options.peer_dtype, "rounds": options.rounds, "repeats": options.repeats, "tiny": options.tiny,
              "same_model_within": checked, "skipped": skipped, "rows": rows}
    for work in works:
        model = model_of(work, options)
        if model is None:
            skipped.append(f"{work['name']}: needs a real Whisper folder (--model) and the clip (--audio)")
            continue
        work = fit_tiny(work) if options.tiny else work
        if work["task"] == "generate" and work["shape"] not in checked and "none" not in options.beside:
            checked[work["shape"]] = check_same_model(options, work, model)
        rows.append(measure(options, work, model, peaks))
        if options.neighbours:
            rows[-1]["neighbours"] = measure_beside(options, work, model, [rows[-1]["best_peer"]])
        report(rows[-1])
        options.json.parent.mkdir(parents=True, exist_ok=True)  # after every row: what was measured is not lost
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    print("".join(f"skipped: {line}\n" for line in skipped), end="")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    compare(parser.parse_args())


if __name__ == "__main__":
    main()
