#!/usr/bin/env python3
"""What ranks and stages should cost and bring, from one process's step and what a message takes. A prediction, wherever it was not measured.

    tools/parallel_model.py SHAPE --step-ms T [--ranks N] [--stages S] [--batch M] [--float] [--latency-us A] [--us-per-kib C] [--hop-us H] [--hop-us-per-kib G]

T is a step of one process with as many threads as all ranks have together. Ranks: each of L decoder layers ends three products (self-attention, cross-
attention, the second of the feed-forward) with an exchange of m rows of d float32, and in int8 asks three times what range the rows have, in 16 bytes a
row. x(s) = A + C s. So a step takes

    T + L (3 x(4 m d) + 3 x(16 m))

on one memory, whose bytes/s the ranks share. Where each has a memory of its own (--own-memory), T is divided by N first. Stages: a token takes
T + S h(4 m d), and tokens come S times as often while 2 S groups run, on processors of their own; on those of the one process T is divided by
nothing. h(s) = H + G s. A and C as bench/parallel.py's exchange has them.
"""
import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))
from shapes import SHAPES  # noqa: E402

EXCHANGES = 3  # of a decoder layer
FLOAT_BYTES, RANGE_BYTES = 4, 16  # of a value; of a row's range
KIB = 1024


@dataclass(frozen=True)
class Wire:
    """us of a message: `latency` and `per_kib` for each KiB."""
    latency: float
    per_kib: float

    def us(self, num_bytes):
        return self.latency + self.per_kib * num_bytes / KIB


# Of one host with a thread a rank, as first measured; bench/parallel.py measures them anew.
SHARED_MEMORY = Wire(0.3, 0.55)


def exchanges_ms(shape, rows, is_int8, wire):
    """Of a step over ranks, on top of one process's."""
    us = EXCHANGES * wire.us(FLOAT_BYTES * rows * shape["d_model"]) + (EXCHANGES * wire.us(RANGE_BYTES * rows) if is_int8 else 0)
    return shape["layers"] * us / 1000


def ranks_step_ms(shape, one_ms, ranks, rows, is_int8, wire, own_memory=False):
    if ranks == 1:
        return one_ms
    return one_ms / (ranks if own_memory else 1) + exchanges_ms(shape, rows, is_int8, wire)


def stages_latency_ms(shape, one_ms, stages, rows, hop):
    """Of a token of one sequence."""
    return one_ms if stages == 1 else one_ms + stages * hop.us(FLOAT_BYTES * rows * shape["d_model"]) / 1000


def main():
    parser = argparse.ArgumentParser(prog="tools/parallel_model.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=sorted(SHAPES))
    parser.add_argument("--step-ms", type=float, required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--stages", type=int, default=1)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--float", action="store_true", help="weights are not int8")
    parser.add_argument("--own-memory", action="store_true")
    parser.add_argument("--latency-us", type=float, default=SHARED_MEMORY.latency)
    parser.add_argument("--us-per-kib", type=float, default=SHARED_MEMORY.per_kib)
    parser.add_argument("--hop-us", type=float, default=SHARED_MEMORY.latency)
    parser.add_argument("--hop-us-per-kib", type=float, default=SHARED_MEMORY.per_kib)
    options = parser.parse_args()
    for name in ("ranks", "stages", "batch"):
        if getattr(options, name) < 1:
            parser.error(f"--{name}: at least 1")
    shape = SHAPES[options.shape]
    step = ranks_step_ms(shape, options.step_ms, options.ranks, options.batch, not options.float, Wire(options.latency_us, options.us_per_kib), options.own_memory)
    latency = stages_latency_ms(shape, step, options.stages, options.batch, Wire(options.hop_us, options.hop_us_per_kib))
    print(f"{options.shape}, batch {options.batch}: {options.step_ms:.2f} ms with one process; predicted {step:.2f} ms over {options.ranks} ranks "
          f"({options.step_ms / step:.2f} x), {latency:.2f} ms a token over {options.stages} stages of these")


if __name__ == "__main__":
    main()
