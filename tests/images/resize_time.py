#!/usr/bin/env python3
"""What Pillow takes for the pictures of src/media/resize_bench.cc, in milliseconds on one thread; the least of some runs.

    tests/images/resize_time.py [--runs 15]
"""
import argparse
import random
import time

import PIL
from PIL import Image


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    image = Image.frombytes("RGB", (4000, 3000), random.Random(1).randbytes(3 * 4000 * 3000))
    print(f"Pillow {PIL.__version__}")
    for kind in (Image.Resampling.BILINEAR, Image.Resampling.BICUBIC):
        for size in (384, 1280):
            times = []
            for _ in range(options.runs):
                start = time.perf_counter()
                image.resize((size, size), kind)
                times.append(time.perf_counter() - start)
            print(f"{kind.name.lower():9} {size:5}  {1000 * min(times):7.2f} ms")


if __name__ == "__main__":
    main()
