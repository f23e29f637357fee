#!/usr/bin/env python3
"""What ranks and stages answer, beside one process: every digit of every result.

    tests/rank_products.py                     # tests/models, each two values of two axes met at least once by every shape
    tests/rank_products.py --full              # every combination in tiny pools
    tests/rank_products.py --quick             # each two values once over all models together, the shape being an axis, too
    tests/rank_products.py --root ../shared/golden/text --filter marian

A folder is a model with requests.jsonl, beams.jsonl, alignments.jsonl, batch.jsonl or score.jsonl. Its requests go through one process
of a roomy pool, and through each shape of ranks and stages in the same way: attention backend, instruction level, weights, KV type,
and a pool that is roomy or tiny with swaps; and so do random requests, whose seed is the folder's name, in tiny pools. A shape that the model
does not allow must be refused with the flag and the reason, and is named. Closes with `N passed, N failed`; one is a run of a model's requests.
"""
import argparse
import contextlib
import functools
import itertools
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import wide_model
from golden import HERE, pairwise, present_levels, read_jsonl, tiny_pool
from random_requests import random_requests
from ranks_test import answers

FILES = ("requests", "beams", "alignments", "batch")
SHAPES = {"TP 2": ["--tensor-parallel-size", "2"], "TP 4": ["--tensor-parallel-size", "4"], "PP 2": ["--pipeline-parallel-size", "2"],
          "PP 2 x TP 2": ["--pipeline-parallel-size", "2", "--tensor-parallel-size", "2"]}
WEIGHTS = {"float32": ["--dtype", "float32"], "float16": ["--dtype", "float16"], "bfloat16": ["--dtype", "bfloat16"],
           "int8": ["--quantization", "int8"], "int4": ["--quantization", "int4"]}
POOLS = {"roomy": [], "tiny": ["--preemption-mode", "swap", "--block-size", "4", "--watermark", "0"]}
REFUSAL = re.compile(r"(heads|leaves|layers?): --(tensor|pipeline)-parallel-size [0-9, or]+\n")
RUN_SECONDS = 300
NUM_RANDOM, NUM_OF_WIDE = 60, 24
MODELS, WIDE = HERE / "models", "made-bart-wide"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transept", default=str(HERE.parent / "build" / "release" / "transept"))
    parser.add_argument("--root", type=Path, default=MODELS)
    parser.add_argument("--filter", default="", help="only folders whose name contains this")
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--full", action="store_true")
    extent.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="models at a time (default: 1)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folders = sorted(path for path in options.root.iterdir() if options.filter in path.name and (path / "config.json").exists() and asked_in(path))
        if options.root.resolve() == MODELS.resolve() and options.filter in WIDE:
            folders.append(make_wide(Path(scratch) / WIDE))
        sys.exit(compare_all(options, folders))


def make_wide(folder):
    """A model that may be divided in every type, which tests/models' widths do not allow, and random requests of it."""
    requests = random_requests(folder.name, wide_model.make_model(folder), NUM_OF_WIDE)
    (folder / "requests.jsonl").write_text("".join(json.dumps(request) + "\n" for request in requests), encoding="utf-8")
    return folder


def compare_all(options, folders):
    """The exit code."""
    levels, absent = present_levels()
    notes = [f"skipped: instruction level {level}: this processor does not have it" for level in absent]
    passed, seconds, num_swaps = 0, Counter(), 0
    plans, refused, failures = quick_ways(options, folders, levels) if options.quick else (dict.fromkeys(folders), [], [])
    with ThreadPoolExecutor(options.jobs) as pool:
        for folder, found in zip(plans, pool.map(lambda folder: Model(options, folder).run(levels, plans[folder]), plans)):
            passed += found.passed
            failures += found.failures
            refused += found.refused
            num_swaps += found.num_swaps
            seconds[folder.name] = found.seconds
            print(f"{folder.name}: {found.passed} passed, {len(found.failures)} failed, {found.num_swaps} swaps, {found.seconds:.0f} s", flush=True)
    if passed and not num_swaps and not options.filter:
        failures.append("FAIL no pool was so tiny that a sequence was swapped")
    print("\n".join([*failures[:20], *([f"... and {len(failures) - 20} more"] if len(failures) > 20 else []), *refused, *notes]))
    if seconds:
        print("seconds: " + ", ".join(f"{name} {taken:.1f}" for name, taken in seconds.most_common()))
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures or not (passed or options.filter) else 0


def axes_of(levels):
    return {"backend": ["reference", "cpu"], "isa": levels, "weights": list(WEIGHTS), "kv": ["float32", "float16", "bfloat16", "int8"], "pool": list(POOLS)}


def product(axes):
    return [dict(zip(axes, values)) for values in itertools.product(*axes.values())]


def quick_ways(options, folders, levels):
    """({folder: its ways}, what no model allows, failures): of all ways that a model allows every two values of two axes meet at least once. Each way is the next
    model's that allows its shape."""
    models = deque(Model(options, folder) for folder in folders)
    allows = functools.cache(lambda model, shape, weights: model.may_be(shape, weights))
    never = {pair for pair in itertools.product(SHAPES, WEIGHTS) if not any(allows(model, *pair) for model in models)}
    every = product({**axes_of(levels), "shape": list(SHAPES)})
    found = {}
    for way in pairwise([way for way in every if (way["shape"], way["weights"]) not in never]):
        models.rotate(next(-place for place, model in enumerate(models, 1) if allows(model, way["shape"], way["weights"])))
        found.setdefault(models[-1].folder, []).append(way)
    failures = [failure for model in models for failure in model.failures]
    return found, [f"refused: every model: {weights}, {shape}" for shape, weights in sorted(never)], failures


def asked_in(folder):
    return [name for name in FILES if (folder / f"{name}.jsonl").exists()]


class Model:
    """A folder's runs, one after the other."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.requests = [request for name in asked_in(folder) for request in read_jsonl(folder / f"{name}.jsonl")]
        self.config, self.defaults = (json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
                                      for path in (folder / "config.json", folder / "generation_config.json"))
        self.passed, self.failures, self.refused, self.num_swaps, self.seconds = 0, [], [], 0, 0.0

    def run(self, levels, chosen=None):
        """All of the model; or these ways, and no scores and random requests."""
        start = time.monotonic()
        with self.scratch():
            if chosen:
                for way in chosen:
                    self.compare(way, [(way["shape"], way["pool"])])
            else:
                self.run_all(levels)
        self.seconds = time.monotonic() - start
        return self

    def run_all(self, levels):
        shapes = {weights: [shape for shape in SHAPES if self.allows(shape, weights)] for weights in WEIGHTS}
        for way, of_way in itertools.groupby(self.ways(levels, shapes), key=lambda way: {**way, "shape": "", "pool": ""}):
            self.compare(way, [(one["shape"], one["pool"]) for one in of_way])
        self.compare_scores(shapes)
        if "vision_config" not in self.config:
            self.compare_random(shapes)

    @contextlib.contextmanager
    def scratch(self):
        """The files of a run."""
        with tempfile.TemporaryDirectory() as folder:
            self.input, self.stats = Path(folder) / "requests.jsonl", Path(folder) / "stats.json"
            self.input.write_text("".join(json.dumps(request, ensure_ascii=False) + "\n" for request in self.requests), encoding="utf-8")
            yield

    def may_be(self, shape, weights):
        """allows(), of the first request alone."""
        requests, self.requests = self.requests, self.requests[:1]
        try:
            with self.scratch():
                return self.allows(shape, weights)
        finally:
            self.requests = requests

    def ways(self, levels, shapes):
        """{axis: value}s; those that differ in their shape and pool alone stand together."""
        axes = axes_of(levels)
        every = product(axes)
        chosen = pairwise(every)
        if self.options.full:
            chosen += [way for way in every if way["pool"] == "tiny" and way not in chosen]
        return sorted(({**way, "shape": shape} for way in chosen for shape in shapes[way["weights"]]), key=lambda way: [way[axis] for axis in axes if axis != "pool"])

    def flags(self, way):
        return ["--attention-backend", way["backend"], "--isa", way["isa"], *WEIGHTS[way["weights"]], "--kv-cache-dtype", way["kv"]]

    def pool(self, name, shape):
        if name != "tiny":
            return POOLS[name]
        # Rows of pictures that decoders read are the first stage's alone, whose blocks are larger for it.
        has_rows = "PP" in shape and "vision_config" in self.config
        num_bytes = int((1.3 if has_rows else 1) * tiny_pool(self.config, self.defaults, self.requests, 4, has_rows))
        return [*POOLS[name], "--kv-cache-memory", str(num_bytes), "--stats-json", self.stats]

    def transept(self, flags):
        """(exit code, answers, standard error)"""
        done = subprocess.run([self.options.transept, "generate", str(self.folder), *flags], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=RUN_SECONDS)
        return done.returncode, answers(done.stdout), done.stderr

    def allows(self, shape, weights):
        """Whether the model can be divided so, with weights of this kind. A refusal has exit code 2, no answer, and says what would do."""
        code, said, errors = self.transept(["--input", self.input, *WEIGHTS[weights], *SHAPES[shape]])
        if code in (0, 1):
            return True
        if code == 2 and not said and REFUSAL.search(errors):
            [why] = [line for line in errors.splitlines() if REFUSAL.search(line + "\n")]
            self.refused.append(f"refused: {self.folder.name}: {weights}, {shape}: {why.rsplit(self.folder.name, 1)[-1].lstrip('/')}")
        else:
            self.failures.append(f"FAIL {self.folder.name} {weights} {shape}: exit code {code}: {errors[-600:]}")
        return False

    def compare(self, way, shapes):
        """Answers of these (shape, pool)s, beside those of one process."""
        flags = ["--input", self.input, *self.flags(way)]
        code, wanted, errors = self.transept(flags)
        if code not in (0, 1) or len(wanted) != len(self.requests):
            self.failures.append(f"FAIL {self.folder.name} {flags}: exit code {code}, {len(wanted)} answers: {errors[-600:]}")
            return
        for shape, pool in shapes:
            found = self.transept([*flags, *self.pool(pool, shape), *SHAPES[shape]])
            self.check(f"{shape} {pool} {' '.join(self.flags(way))}", found, (code, wanted))
            if pool == "tiny" and found[0] == code:
                self.num_swaps += json.loads(self.stats.read_text(encoding="utf-8"))["num_swaps_in"]

    def compare_scores(self, shapes):
        if not (self.folder / "score.jsonl").exists():
            return
        for weights, allowed in shapes.items():
            flags = ["--input", self.folder / "score.jsonl", "--score", *WEIGHTS[weights]]
            wanted = self.transept(flags)
            for shape in allowed:
                self.check(f"{shape} --score {weights}", self.transept([*flags, *SHAPES[shape]]), wanted[:2])

    def compare_random(self, shapes):
        self.requests = random_requests(self.folder.name, self.config, NUM_RANDOM)
        self.input.write_text("".join(json.dumps(request) + "\n" for request in self.requests), encoding="utf-8")
        for weights in ("float32", "int8"):
            self.compare({"backend": "cpu", "isa": "auto", "weights": weights, "kv": "float32"}, [(shape, "tiny") for shape in shapes[weights]])

    def check(self, label, found, wanted):
        if found[:2] == wanted and wanted[1]:
            self.passed += 1
            return
        different = [(one["id"], other["id"]) for one, other in zip(wanted[1], found[1]) if one != other]
        self.failures.append(f"FAIL {self.folder.name} {label}: exit code {found[0]} ({wanted[0]}), {len(found[1])} answers ({len(wanted[1])}), "
                             f"different: {different[:3]} {found[2][-300:]}")


if __name__ == "__main__":
    main()
