#!/usr/bin/env python3
"""src/multimodal/picture_header.h against Pillow 12, byte for byte: random questions above random pictures, and lines against textwrap.

    tests/images/header_differential.py --probe build/release/src/multimodal/header_probe [--count 300] [--font FILE] [--isa auto]

Needs pillow<13 in the interpreter's environment. Closes with `N passed, N failed, 0 skipped`; without the font all is skipped.
"""
import argparse
import os
import random
import subprocess
import sys
from pathlib import Path

import PIL
from PIL import Image

import headers

ROOT = Path(__file__).resolve().parent.parent.parent
LINES_PER_PICTURE = 20  # texts that are broken into lines, for each that is drawn
MOST_SHOWN = 10
WORDS = ["What", "is", "the", "value", "of", "2010?", "AVATAR", "To.", "LT", "fi", "office", "naïve", "café", "Größe", "Łódź", "well-known",
         "mother-in-law", "e-mail", "a--b", "--", "-", "---x", "a-b-c-d", "1-2", "x--", "(yes)", "“quoted”", "50%", "αβγ", "Ж", "日本", "مرحبا",
         "שלום", "e\u0301", "\u200b", "\u200f", "\u202e", "\u00ad", "\ufeff", "👍🏽", "_a-_b", "½-½", "don't", "\"q\"--z", "\x00", "\x07",
         "\u2028", "\u0085", "\xa0", "\u3000"]
SPACES = [" "] * 12 + ["  ", "\t", "\n", "\r\n", " \t", "\x0b", "\x0c", "\n\n", "         "]


class Probe:
    def __init__(self, binary, font, isa):
        self.isa = isa
        self.process = subprocess.Popen([binary, font], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, line, *contents):
        self.process.stdin.write(line.encode() + b"\n" + b"".join(contents))
        self.process.stdin.flush()
        word, _, rest = self.process.stdout.readline().decode().rstrip("\n").partition(" ")
        return self.process.stdout.read(int(rest)) if word == "ok" else f"{word} {rest}"

    def wrap(self, text):
        return self.ask(f"wrap {len(text.encode())}", text.encode())

    def below(self, text, image):
        line = f"below {len(text.encode())} {image.width} {image.height} {self.isa}"
        return self.ask(line, text.encode(), image.tobytes())


def word(draw):
    kind = draw.randrange(12)
    if kind < 8:
        return draw.choice(WORDS)
    if kind == 8:
        return "".join(draw.choice("abcXYZ--09_.,!é") for _ in range(draw.choice([3, 12, 100, 200])))
    if kind == 9:
        return "".join(chr(draw.choice([draw.randrange(0x20, 0x250), draw.randrange(0x250, 0xD800), draw.randrange(0xE000, 0x20000)]))
                       for _ in range(draw.randint(1, 8)))
    return "".join(draw.choice("etaoinshrdluTAVWLY") for _ in range(draw.randint(1, 12)))


def question(draw):
    out = draw.choice(["", "", " ", "\t"])
    for _ in range(draw.choice([1, 4, 10, 40])):
        out += word(draw) + draw.choice(SPACES)
    return out


def picture(draw):
    width, height = (draw.choice([draw.randint(1, 60), draw.randint(1, 500), draw.randint(500, 2500)]) for _ in range(2))
    height = min(height, 20 * width, 300)
    small = Image.frombytes("RGB", (5, 4), draw.randbytes(60))
    return small.resize((width, height), Image.Resampling.BICUBIC)


def picture_case(draw, probe, font):
    text, image = question(draw), picture(draw)
    expected = headers.below(text, image, font)
    got = probe.below(text, image)
    return f"{image.size} below {text!r}", got == f"{expected.width} {expected.height}\n".encode() + expected.tobytes()


def wrap_case(draw, probe):
    text = question(draw)
    expected = "".join(line + "\n" for line in headers.wrapped(text)).encode()
    return f"lines of {text!r}", probe.wrap(text) == expected


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--probe", type=Path, default=ROOT / "build" / "release" / "src" / "multimodal" / "header_probe")
    parser.add_argument("--font", default=headers.FONT)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--isa", default="auto")
    options = parser.parse_args()
    if not PIL.__version__.startswith("12."):
        sys.exit(f"Pillow {PIL.__version__}: 12 is the reference")
    if not os.path.exists(options.font):
        print(f"skipped: no font {options.font}", "0 passed, 0 failed, 1 skipped", sep="\n")
        return
    probe, draw = Probe(options.probe, options.font, options.isa), random.Random(options.seed)
    passed, failed = 0, []
    for number in range(options.count * (LINES_PER_PICTURE + 1)):
        is_picture = number % (LINES_PER_PICTURE + 1) == 0
        told, is_equal = picture_case(draw, probe, options.font) if is_picture else wrap_case(draw, probe)
        passed += is_equal
        if not is_equal:
            failed.append(f"case {number} of seed {options.seed}: {told}")
    for told in failed[:MOST_SHOWN]:
        print(told)
    print(f"{passed} passed, {len(failed)} failed, 0 skipped")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
