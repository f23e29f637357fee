#!/usr/bin/env python3
"""src/media/resize.h against Pillow 12, byte for byte: random sizes, filters, gaps and boxes, and the table of ../shared.

    tests/images/resize_differential.py --probe build/release/src/media/resize_probe [--count 10000] [--seed 1] [--isa auto]

Needs pillow<13 in the interpreter's environment (tests/images/run.py installs it). Closes with `N passed, N failed, 0 skipped`.
"""
import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import PIL
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent.parent
SHARED = Path(os.environ.get("TRANSEPT_SHARED", ROOT.parent / "shared"))
FILTERS = ["nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"]
MOST_SHOWN = 10


class Probe:
    def __init__(self, binary, isa):
        self.isa = isa
        self.process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, line, image):
        self.process.stdin.write(line.encode() + b"\n" + image.tobytes())
        self.process.stdin.flush()
        word, _, rest = self.process.stdout.readline().decode().rstrip("\n").partition(" ")
        return self.process.stdout.read(int(rest)) if word == "ok" else f"{word} {rest}"

    def resize(self, image, size, kind, gap, box):
        box = box or ["-"] * 4
        words = ["resize", *image.size, *size, kind, "-" if gap is None else repr(gap), *box, self.isa]
        return self.ask(" ".join(str(word) for word in words), image)

    def reduce(self, image, factors):
        return self.ask(" ".join(str(word) for word in ["reduce", *image.size, *factors]), image)


def picture(draw, width, height):
    """Noise, noise of the two extremes (overshoot is clipped), or an enlarged small picture (smooth)."""
    kind = draw.randrange(3)
    if kind == 2:
        small = Image.frombytes("RGB", (3, 3), draw.randbytes(27))
        return small.resize((width, height), Image.Resampling.BICUBIC)
    data = draw.randbytes(3 * width * height)
    if kind == 1:
        data = bytes(255 if byte & 1 else 0 for byte in data)
    return Image.frombytes("RGB", (width, height), data)


def side(draw):
    return draw.choice([draw.randint(1, 8), draw.randint(1, 80), draw.randint(1, 400)])


def box_of(draw, width, height):
    whole = draw.random() < 0.3
    left, right = sorted(draw.uniform(0, width) for _ in range(2))
    top, bottom = sorted(draw.uniform(0, height) for _ in range(2))
    if whole:
        left, right, top, bottom = int(left), int(right) + 1, int(top), int(bottom) + 1
    return [left, top, right, bottom]


def random_case(draw, probe):
    """(what was asked, whether the answer is Pillow's)"""
    width, height = side(draw), side(draw)
    if draw.random() < 0.03:
        width, height = draw.randint(1, 3), draw.randint(100, 1200)  # tall: another order of passes
    image = picture(draw, width, height)
    if draw.random() < 0.05:
        factors = [draw.randint(1, 9), draw.randint(1, 9)]
        return f"{image.size} reduced by {factors}", probe.reduce(image, factors) == image.reduce(tuple(factors)).tobytes()
    size = [side(draw), side(draw)]
    if draw.random() < 0.1:
        size[draw.randrange(2)] = image.size[draw.randrange(2)]
    kind = draw.randrange(len(FILTERS))
    gap = draw.choice([None, None, 1.0, 2.0, draw.uniform(1, 4)])
    box = box_of(draw, width, height) if draw.random() < 0.2 else None
    expected = image.resize(size, Image.Resampling(kind), box=box, reducing_gap=gap).tobytes()
    return f"{image.size} to {size}, {FILTERS[kind]}, gap {gap}, box {box}", probe.resize(image, size, kind, gap, box) == expected


def as_rgb(path):
    """What the table of ../shared resizes: orientation applied, on white."""
    from PIL import ImageOps
    image = ImageOps.exif_transpose(Image.open(path))
    if "A" in image.getbands() or image.info.get("transparency") is not None:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, (255, 255, 255, 255)), image)
    return image.convert("RGB")


def shared_cases(probe):
    table = SHARED / "golden" / "vision" / "resize.jsonl"
    for line in table.read_text().splitlines() if table.exists() else []:
        row = json.loads(line)
        if "grey16" in row["image"]:
            continue  # there the reader differs from Pillow on purpose
        rgb = probe.resize(as_rgb(SHARED / row["image"]), row["size"], FILTERS.index(row["filter"]), row["reducing_gap"], None)
        yield f"{row['id']} {row['image']}", isinstance(rgb, bytes) and hashlib.sha256(rgb).hexdigest() == row["expect"]["sha256"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--probe", type=Path, default=ROOT / "build" / "release" / "src" / "media" / "resize_probe")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--isa", default="auto")
    options = parser.parse_args()
    if not PIL.__version__.startswith("12."):
        sys.exit(f"Pillow {PIL.__version__}: 12 is the reference")
    probe, draw = Probe(options.probe, options.isa), random.Random(options.seed)
    passed, failed = 0, []
    for number in range(options.count):
        told, is_equal = random_case(draw, probe)
        passed += is_equal
        if not is_equal:
            failed.append(f"case {number} of seed {options.seed}: {told}")
    for told, is_equal in shared_cases(probe):
        passed += is_equal
        if not is_equal:
            failed.append(f"../shared: {told}")
    for told in failed[:MOST_SHOWN]:
        print(told)
    print(f"{passed} passed, {len(failed)} failed, 0 skipped")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
