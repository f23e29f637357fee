#!/usr/bin/env python3
"""Random images against Pillow 12 from PyPI: differential.py, and header_differential.py, in an environment below build/images.

    tests/images/run.py [--probe PATH] [--header-probe PATH] [--files N] [--filter NAME]

Where Pillow cannot be installed, the tests are skipped with the reason. Closes with `N passed, N failed`.
"""
import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))

import packages


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--probe", type=Path, default=ROOT / "build" / "release" / "src" / "media" / "image_probe")
    parser.add_argument("--header-probe", type=Path, help="without it, that of the build that --probe is of")
    parser.add_argument("--files", type=int, default=300, help="how many are drawn")
    parser.add_argument("--filter", default="", help="only tests whose name contains this")
    options = parser.parse_args()
    if not options.probe.exists():
        sys.exit(f"{options.probe}: no such program")
    skips = []
    python = packages.prepare_venv(HERE / "requirements.txt", ROOT / "build" / "images", skips)
    if python is None:
        print(f"skipped: {skips[0]}", "0 passed, 0 failed, 1 skipped", sep="\n")
        return
    environment = {**os.environ, "IMAGE_PROBE": str(options.probe.resolve()), "IMAGE_FILES": str(options.files)}
    header_probe = options.header_probe or options.probe.resolve().parents[1] / "multimodal" / "header_probe"
    counts = run(python, environment, "differential.py", *([options.filter] if options.filter else []))
    if options.filter in "headers":
        counts += run(python, environment, "header_differential.py", "--probe", str(header_probe.resolve()))
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    sys.exit(bool(counts["failed"]))


def run(python, environment, *words):
    """{passed, failed, skipped: how many} of a script that closes with them; what it printed before is shown."""
    done = subprocess.run([str(python), "-W", "ignore", *words], cwd=HERE, stdin=subprocess.DEVNULL, env=environment,
                          stdout=subprocess.PIPE, text=True)
    *lines, last = done.stdout.splitlines() or [""]
    counts = Counter({word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|skipped)", last)})
    print(f"{words[0]}:", *lines, *([] if counts else [last]), sep="\n", flush=True)
    if done.returncode and not counts["failed"]:
        counts["failed"] += 1
    return counts


if __name__ == "__main__":
    main()
