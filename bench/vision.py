#!/usr/bin/env python3
"""Models that read pictures beside torch, transformers and Pillow: the same threads, in turn. `./dev bench vision` runs all of it.

    bench/vision.py [pixels] [tower] [lines] [page] [caption] [flight] [--threads N] [--rounds N] [--json FILE]

pixels: a JPEG of 12 Mpx to 384 x 384, one thread. tower: TrOCR-base's, 1 and 8 lines. lines: TrOCR-base, 32 lines of 20 tokens. page: Donut-base's
tower at 1280 x 960, and the memory it takes. caption: Florence-2-base, three beams. flight: what a server's memory
grows by with 64 photographs of 11 Mpx in flight, beside what admission counts. Checkpoints are random, of the published shapes, made once
below .cache/bench; the peers come from PyPI (--peers). Alone on the machine, please.
"""
import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

import pictures_in_flight
from machine import BUILD, ROOT, cpu_model, num_processors
from transept_side import BINARY, run

CACHE = ROOT / ".cache" / "bench" / "vision"
PEER = ROOT / "bench" / "peers" / "vision_peer.py"
REQUIREMENTS = ROOT / "bench" / "requirements-vision.txt"
TARGETS = {"pixels": 1.0, "tower float32": 1.2, "tower int8": 3.0, "lines int8": 4.0, "page float32": 1.2, "caption int8": 2.0}
MAX_GROWTH = 1.05  # of what admission counts


class Bench:
    def __init__(self, options):
        self.options, self.rows, self.growth = options, [], None

    def folder(self, shape):
        folder = CACHE / shape
        if not (folder / "config.json").exists():
            folder.mkdir(parents=True, exist_ok=True)
            print(f"making {shape}", file=sys.stderr)
            run([self.options.python, PEER, "make", shape, folder])
        return folder

    def peer(self, what, kind, **more):
        flags = [text for name, value in more.items() for text in (f"--{name}", value)]
        return json.loads(run([self.options.python, PEER, "measure", what, "--kind", kind, "--rounds", 2, *flags]).splitlines()[-1])

    def ours(self, mode, shape, quantization, *flags):
        weights = ["--quantization", quantization] if quantization == "int8" else ["--dtype", "float32"]
        return json.loads(run([self.options.transept, "bench", mode, self.folder(shape), "--threads", self.options.threads, "--json", *weights, *flags]))

    def compare(self, name, target, ours, peer, unit="ms", scale=1e3, note=""):
        """`ours` and `peer` are called in turn; each gives (seconds, MiB)."""
        pairs = [(ours(), peer()) for _ in range(self.options.rounds)]
        mine, theirs = (statistics.median(pair[side][0] for pair in pairs) for side in (0, 1))
        ratios = [their[0] / our[0] for our, their in pairs]
        row = {"name": name, "ours": mine * scale, "peer": theirs * scale, "unit": unit, "ratio": statistics.median(ratios), "ratios": ratios,
               "target": TARGETS.get(target), "ours_mib": max(pair[0][1] for pair in pairs), "peer_mib": max(pair[1][1] for pair in pairs), "note": note}
        self.rows.append(row)
        print(f"{name:34} {row['ours']:9.1f} {unit}  peer {row['peer']:9.1f}  {row['ratio']:5.2f} x"
              + (f"  (target {row['target']})" if row["target"] else "") + f"  {row['ours_mib']:.0f} / {row['peer_mib']:.0f} MiB", flush=True)

    # ---- parts

    def photo(self):
        picture = CACHE / "photo.jpg"
        if not picture.exists():
            picture.parent.mkdir(parents=True, exist_ok=True)
            run([self.options.python, "-c", PHOTO, picture])
        return picture

    def pixels(self):
        picture = self.photo()

        def ours():
            done = subprocess.run([BUILD / "src" / "media" / "image_probe", "time", "7"], input=f"{picture}\n", capture_output=True, text=True, check=True)
            return float(done.stdout) / 1e3, 0
        self.compare("12 Mpx JPEG to 384 x 384", "pixels", ours, lambda: (min(self.peer(picture, "pixels", rounds=7)["seconds"]), 0))

    def tower(self):
        for batch in (1, 8):
            for quantization in ("float32", "int8"):
                self.encode(f"TrOCR-base tower, {batch} x, {quantization}", f"tower {quantization}", "trocr-base-tower", quantization, batch, (384, 384))

    def encode(self, name, target, shape, quantization, batch, size):
        height, width = size

        def ours():
            report = self.ours("latency", shape, quantization, "--batch-size", batch, "--output-len", 2, "--repeats", 3, "--image-size", f"{width}x{height}")
            return report["encode_ms"] / 1e3, report["peak_rss_bytes"] / 2**20

        def peer():
            found = self.peer(self.folder(shape), "tower", threads=self.options.threads, batch=batch, size=f"{height},{width}")
            return statistics.median(found["seconds"]), found["peak_rss_mib"]
        self.compare(name, target, ours, peer)

    def whole(self, name, target, shape, quantization, size, requests, batch, tokens, beams, *flags):
        height, width = size

        def ours():
            report = self.ours("throughput", shape, quantization, "--num-prompts", requests, "--output-len", tokens, "--num-beams", beams, "--repeats", 2,
                               "--image-size", f"{width}x{height}", *flags)
            return report["call_ms"] / 1e3, report["peak_rss_bytes"] / 2**20

        def peer():
            found = self.peer(self.folder(shape), "generate", threads=self.options.threads, batch=batch, requests=requests, tokens=tokens, beams=beams,
                              size=f"{height},{width}", rounds=1)
            return statistics.median(found["seconds"]), found["peak_rss_mib"]
        self.compare(name, target, ours, peer, "s", 1)

    def lines(self):
        for quantization in ("float32", "int8"):
            self.whole(f"TrOCR-base, 32 lines, {quantization}", f"lines {quantization}", "trocr-base", quantization, (384, 384), 32, 8, 20, 1)

    def page(self):
        for quantization in ("float32", "int8"):
            self.encode(f"Donut-base tower 1280x960, {quantization}", f"page {quantization}", "donut-base-tower", quantization, 1, (1280, 960))

    def caption(self):
        for quantization in ("float32", "int8"):
            self.whole(f"Florence-2-base caption, {quantization}", f"caption {quantization}", "florence-2-base", quantization, (768, 768), 4, 4, 20, 3)

    def flight(self):
        photos = CACHE / "photos"
        if len(list(photos.glob("*.jpg"))) != NUM_PHOTOS:
            photos.mkdir(parents=True, exist_ok=True)
            run([self.options.python, "-c", CROPS, self.photo(), photos, NUM_PHOTOS])
        found = [pictures_in_flight.measure(self.options.transept, self.folder("donut-base-tower"), sorted(photos.iterdir()), self.options.threads)
                 for _ in range(self.options.rounds)]
        ratios = [grown / counted for grown, counted in found]
        grown, counted = (statistics.median(pair[side] for pair in found) / 2**20 for side in (0, 1))
        self.growth = {"ratios": ratios, "grown_mib": grown, "counted_mib": counted, "target": MAX_GROWTH}
        print(f"64 pictures in flight: memory grows by {grown:.0f} MiB, {counted:.0f} MiB are counted: {statistics.median(ratios):.3f} x  (target at most {MAX_GROWTH})",
              flush=True)


# Slopes, waves and some noise: about as many bits as a photograph.
PHOTO = """
import sys, numpy as np
from PIL import Image
y, x = np.mgrid[0:3000, 0:4000]
noise = np.random.default_rng(1).integers(0, 16, (3000, 4000))
light = 90 + (x & 127) / 2 + 60 * np.sin(0.013 * y) + noise
Image.fromarray(np.stack([light, light * 0.8, 255 - light], axis=2).clip(0, 255).astype(np.uint8)).save(sys.argv[1], quality=90, subsampling="4:2:0")
"""
NUM_PHOTOS = pictures_in_flight.WARM_UP + 64
# So many of it that differ.
CROPS = """
import sys
from PIL import Image
image = Image.open(sys.argv[1])
image.load()
for i in range(int(sys.argv[3])):
    image.crop((i, i, i + 3900, i + 2900)).save(f"{sys.argv[2]}/{i:02}.jpg", quality=88)
"""


def table(report):
    lines = [f"| {report['cpu']}, {report['threads']} threads | Transept | peer | ratio | target | MiB, peer's |", "|---|---|---|---|---|---|"]
    for row in report["rows"]:
        memory = f"{row['ours_mib']:.0f}, {row['peer_mib']:.0f}" if row["peer_mib"] else ""
        lines.append(f"| {row['name']} | {row['ours']:.1f} {row['unit']} | {row['peer']:.1f} {row['unit']} | {row['ratio']:.2f} | {row['target'] or ''} | {memory} |")
    return "\n".join(lines)


PARTS = ("pixels", "tower", "lines", "page", "caption", "flight")


def add_options(parser):
    parser.add_argument("--transept", type=Path, default=BINARY)
    parser.add_argument("--python", default=str(ROOT / ".cache" / "bench" / "vision-peers" / "bin" / "python"), help="has what bench/requirements-vision.txt names")
    parser.add_argument("--peers", action="store_true", help="install the peers first, into an environment of their own")
    parser.add_argument("--threads", type=int, default=num_processors())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "bench" / "vision.json")


def install_peers(python):
    environment = Path(python).parent.parent
    if not Path(python).exists():
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", REQUIREMENTS], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    add_options(parser)
    options = parser.parse_args()
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"no part {part}: of {', '.join(PARTS)}")
    if options.peers:
        install_peers(options.python)
    if not Path(options.python).exists():
        sys.exit(f"no {options.python}: the peers come with --peers")
    bench = Bench(options)
    for part in options.parts or PARTS:
        getattr(bench, part)()
    report = {"cpu": cpu_model(), "threads": options.threads, "rounds": options.rounds, "rows": bench.rows, "growth": bench.growth}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, indent=2))
    if bench.rows:
        print("\n" + table(report))


if __name__ == "__main__":
    main()
