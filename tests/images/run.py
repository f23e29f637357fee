#!/usr/bin/env python3
"""Random images against Pillow 12 from PyPI: differential.py, in an environment below build/images.

    tests/images/run.py [--probe PATH] [--files N] [--filter NAME]

Where Pillow cannot be installed, the tests are skipped with the reason. Closes with `N passed, N failed`.
"""
import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))

import packages


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--probe", type=Path, default=ROOT / "build" / "release" / "src" / "media" / "image_probe")
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
    command = [str(python), "-W", "ignore", "differential.py", *([options.filter] if options.filter else [])]
    sys.exit(subprocess.run(command, cwd=HERE, stdin=subprocess.DEVNULL, env=environment).returncode)


if __name__ == "__main__":
    main()
