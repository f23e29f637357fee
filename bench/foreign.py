#!/usr/bin/env python3
"""Files of whisper.cpp and of CTranslate2, each run by its own engine and by ours, in alternating rounds. `./dev bench foreign` runs all rows.

    bench/foreign.py [--filter NAME,...] [--rounds N] [--json FILE]

Checkpoints are random, of published shapes, made once below .cache/bench; their files are made by the engines' own converter or by
peers/whispercpp_folders.py. Ours runs with --quantization int8. Each figure is of a process of its own. whisper.cpp runs with two threads, with and without
flash attention; CTranslate2 with one thread and with two: the better figure of each round counts. A step is the median
of ours, and the slope between two lengths of a peer's. Alone on the machine, please. The Python that runs this has
what bench/requirements.txt and bench/requirements-whispercpp.txt name.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from machine import ROOT, cpu_model, num_processors
from transept_side import BINARY

CACHE = ROOT / ".cache" / "bench"
THREADS = 2
OUTPUT = 64


@dataclass
class Row:
    """A file of a shape, and how much faster at least ours is: {"step_ms" or "encode_ms": ratio}."""
    peer: str
    shape: str
    kind: str
    batch: int
    least: dict

    @property
    def name(self):
        return f"{self.shape}, {'q8_0' if self.peer == 'whispercpp' and self.kind == 'int8' else self.kind}, {self.peer}, batch {self.batch}"


# ../shared/design/QUANT.md's for whisper.cpp; for CTranslate2 those that TARGETS.md has for int8.
ROWS = [
    *(Row("whispercpp", "whisper-base", kind, 1, {"step_ms": 3, "encode_ms": 4}) for kind in ("int8", "q5_1")),
    Row("ctranslate2", "opus-mt", "int8", 1, {"step_ms": 3.5}), Row("ctranslate2", "opus-mt", "int8", 8, {"step_ms": 5}),
    Row("ctranslate2", "t5-base", "int8", 1, {"step_ms": 2.5}), Row("ctranslate2", "t5-base", "int8", 8, {"step_ms": 4}),
    Row("ctranslate2", "bart-large-cnn", "int8", 1, {"step_ms": 2.4}),
    Row("ctranslate2", "whisper-base", "int8", 1, {"step_ms": 2, "encode_ms": 4}),
]


def workload(row):
    is_speech = row.shape.startswith("whisper")
    source = {} if is_speech else {"source_tokens": 512 if row.shape == "bart-large-cnn" else 32}
    return {"task": "whisper-window" if is_speech else "generate", "shape": row.shape, "beam": 1, "seed": 23, "target_tokens": OUTPUT, "batch": row.batch, **source}


def file_of(row):
    """Made by the peer's side (run.py) before the first round."""
    folder = CACHE / f"{row.shape}-shape"
    return folder / (f"whispercpp-{row.kind}.bin" if row.peer == "whispercpp" else f"ctranslate2-{row.kind}")


def ours(row):
    work = workload(row)
    flags = ["--input-len", str(work["source_tokens"])] if "source_tokens" in work else []
    command = [str(BINARY), "bench", "latency", str(file_of(row)), "--json", "--quantization", "int8", "--threads", str(THREADS), "--batch-size", str(row.batch),
               "--output-len", str(OUTPUT), "--repeats", "3", *flags]
    return figures(command)


def theirs(row, path):
    """The better of two ways."""
    ways = ([["--threads", str(THREADS), "--flash-attention", way] for way in ("on", "off")] if row.peer == "whispercpp"
            else [["--threads", "1"], ["--threads", str(THREADS)]])
    runs = [figures([sys.executable, "bench/peers/run.py", str(path), "--peer", row.peer, "--dtype", row.kind, "--repeats", "3", *way]) for way in ways]
    return {**{key: min(run[key] for run in runs) for key in row.least}, "version": runs[0]["version"]}


def figures(command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(row, num_rounds):
    """[(ours, theirs)]"""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "workload.json"
        path.write_text(json.dumps(workload(row)))
        subprocess.run([sys.executable, "bench/peers/run.py", str(path), "--peer", row.peer, "--dtype", row.kind, "--prepare-only"], cwd=ROOT, check=True)
        return [(ours(row), theirs(row, path)) for _ in range(num_rounds)]


def lines(row, rounds):
    for key, least in row.least.items():
        ratio = sorted(their[key] / our[key] for our, their in rounds)
        middle = statistics.median(ratio)
        sides = [statistics.median(side[key] for side in sides) for sides in zip(*rounds)]
        yield (f"| {row.name}: {'a step' if key == 'step_ms' else 'encode'} | {sides[0]:.3g} ms | {sides[1]:.3g} ms | "
               f"{middle:.2f} ({ratio[0]:.2f} to {ratio[-1]:.2f}) | {least} | {'met' if middle >= least else 'missed'} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--filter", default="", help="rows whose names have one of these in them, separated by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    wanted = [name for name in args.filter.split(",") if name]
    print(f"{cpu_model()}, {num_processors()} processors, medians (ranges) of {args.rounds} alternating rounds\n")
    print("| file | ours | its engine | ratio | at least | |\n|---|---|---|---|---|---|")
    results, versions = {}, set()
    for row in ROWS:
        if wanted and not any(name in row.name for name in wanted):
            continue
        rounds = measure(row, args.rounds)
        results[row.name] = [{side: {key: report[key] for key in row.least} for side, report in zip(("ours", "theirs"), pair)} for pair in rounds]
        versions |= {their["version"] for _, their in rounds}
        for line in lines(row, rounds):
            print(line, flush=True)
    print("\n" + "\n".join(sorted(versions)))
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
