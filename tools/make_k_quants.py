#!/usr/bin/env python3
"""Writes src/weights/testdata/k_quants.bin: blocks of ggml's k-quants, and what the gguf package makes of them.

    tools/make_k_quants.py        # needs PyPI's gguf (0.17 made the file) and numpy

For q2_K to q6_K in this order: 4 blocks of random bytes with small float16 scales, then their 4 * 256 weights in float32. src/weights/k_blocks_test.cc
reads it; tests/k_quants_test.py compares it with what gguf says today.
"""
import random
import struct
import sys
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "src/weights/testdata/k_quants.bin"
BLOCKS = 4
# Bytes of a block, and where its float16 numbers are.
LAYOUTS = {"Q2_K": (84, (80, 82)), "Q3_K": (110, (108,)), "Q4_K": (144, (0, 2)), "Q5_K": (176, (0, 2)), "Q6_K": (210, (208,))}


def blocks_of(name, rng):
    size, halves = LAYOUTS[name]
    out = bytearray()
    for _ in range(BLOCKS):
        block = bytearray(rng.randrange(256) for _ in range(size))
        for at in halves:
            block[at:at + 2] = struct.pack("<e", rng.uniform(-0.05, 0.05))
        out += block
    return bytes(out)


def fixture():
    import gguf
    import numpy
    rng = random.Random(20)
    out = b""
    for name in LAYOUTS:
        data = blocks_of(name, rng)
        kind = getattr(gguf.GGMLQuantizationType, name)
        weights = gguf.dequantize(numpy.frombuffer(data, dtype=numpy.uint8).reshape(BLOCKS, -1), kind)
        out += data + weights.astype("<f4").tobytes()
    return out


if __name__ == "__main__":
    OUT.write_bytes(fixture())
    print(f"{OUT}: {OUT.stat().st_size} bytes", file=sys.stderr)
