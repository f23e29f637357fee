#!/usr/bin/env python3
"""Writes src/media/testdata/resize.jsonl: what Pillow 12 makes of small pictures.

    tools/make_resize_fixtures.py     # needs pillow<13 in the interpreter's environment; tests do not

A line is {"picture": [width, height, seed], "size": [width, height], "filter", "gap" or null, "box" or null, "rgb": hex}, or
{"picture", "reduce": [x, y], "rgb"}. The pictures are those of src/media/resize_testing.h, make_picture.
"""
import json
import pathlib
import random

import PIL
from PIL import Image

OUT = pathlib.Path(__file__).resolve().parent.parent / "src" / "media" / "testdata" / "resize.jsonl"
FILTERS = ["nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"]


def make_picture(width, height, seed):
    state, out = seed, bytearray()
    for y in range(height):
        for x in range(width):
            for c in range(3):
                state = (state * 1664525 + 1013904223) % 2**32
                noise = (x // 4 + y // 4) % 2 == 1
                out.append(state >> 24 if noise else 255 * (x * (c + 1) + y * (3 - c)) // (width * (c + 1) + height * (3 - c)))
    return Image.frombytes("RGB", (width, height), bytes(out))


def case(picture, size, kind, gap=None, box=None):
    resized = make_picture(*picture).resize(size, Image.Resampling(FILTERS.index(kind)), box=box, reducing_gap=gap)
    return {"picture": picture, "size": size, "filter": kind, "gap": gap, "box": box, "rgb": resized.tobytes().hex()}


def cases():
    draw = random.Random(29)
    for kind in FILTERS:
        yield case([17, 13, 1], [9, 8], kind)                              # both smaller
        yield case([5, 7, 2], [13, 11], kind)                              # both larger
        yield case([40, 9, 3], [11, 9], kind)                              # one pass
        yield case([9, 40, 4], [9, 11], kind)
        yield case([64, 48, 5], [7, 5], kind, gap=1.5)
        yield case([64, 48, 5], [10, 6], kind, gap=2.0, box=[3.25, 0.5, 60.75, 47.0])
        yield case([20, 20, 6], [6, 9], kind, box=[2.5, 3, 17.125, 19])
        yield case([20, 20, 6], [8, 6], kind, box=[3, 5, 11, 11])          # a crop
        yield case([2, 301, 7], [5, 7], kind)                              # tall: the vertical pass first
        yield case([1, 150, 8], [3, 6], kind, box=[0.25, 10, 0.75, 140.5])
        yield case([1, 1, 9], [4, 3], kind)
    for _ in range(40):
        gap = draw.choice([None, None, 1.0, draw.uniform(1, 4)])
        yield case([draw.randint(1, 70), draw.randint(1, 70), draw.randint(0, 99)], [draw.randint(1, 16), draw.randint(1, 12)],
                   draw.choice(FILTERS), gap)
    for factors in ([1, 3], [3, 1], [2, 2], [3, 3], [4, 4], [5, 5], [6, 5], [7, 7], [50, 50]):
        reduced = make_picture(23, 17, 10).reduce(tuple(factors))
        yield {"picture": [23, 17, 10], "reduce": factors, "rgb": reduced.tobytes().hex()}


def main():
    if not PIL.__version__.startswith("12."):
        raise SystemExit(f"Pillow {PIL.__version__}: 12 is the reference")
    OUT.write_text("".join(json.dumps(line) + "\n" for line in cases()))


if __name__ == "__main__":
    main()
