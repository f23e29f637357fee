#!/usr/bin/env python3
"""The binary beside huggingface_hub from PyPI: differential.py, in environments below build/hub.

    tests/hub/run.py [--transept PATH] [--filter NAME]

Where the packages cannot be installed, the tests are skipped with the reason. Closes with `N passed, N failed, N skipped`.
"""
import argparse
import os
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "hub"
MINUTES = 10  # for one installation


def environment(requirements, notes):
    """The interpreter that has the packages; "" if they cannot be installed."""
    wanted = HERE / requirements
    venv = BUILD / wanted.stem
    python, installed = venv / "bin" / "python", venv / "requirements.txt"
    if python.exists() and installed.exists() and installed.read_bytes() == wanted.read_bytes():
        return str(python)
    for step in ([sys.executable, "-m", "venv", "--clear", str(venv)], [str(python), "-m", "pip", "install", "--quiet", "--requirement", str(wanted)]):
        try:
            done = subprocess.run(step, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60 * MINUTES)
            problem = done.stderr.strip().splitlines()[-1:] or ["no reason given"] if done.returncode else []
        except (OSError, subprocess.TimeoutExpired) as why:
            problem = [str(why)]
        if problem:
            notes.append(f"skipped: 1 (pip could not install {requirements}: {problem[0][:200]})")
            return ""
    installed.write_bytes(wanted.read_bytes())
    return str(python)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transept", type=Path, default=ROOT / "build" / "release" / "transept")
    parser.add_argument("--filter", default="", help="only tests whose name contains this")
    options = parser.parse_args()
    if not options.transept.exists():
        sys.exit(f"{options.transept}: no such binary")
    notes = []
    os.environ.update(TRANSEPT_BINARY=str(options.transept.resolve()), HUB_PYTHON=environment("requirements.txt", notes),
                      HUB_PYTHON_OLD=environment("requirements-old.txt", notes))
    if not os.environ["HUB_PYTHON"]:
        print("\n".join(notes), f"0 passed, 0 failed, {len(notes)} skipped", sep="\n")
        return
    sys.path.insert(0, str(HERE))
    import differential
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{options.filter}*"] if options.filter else None
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(loader.loadTestsFromModule(differential))
    failed = len(result.failures) + len(result.errors)
    skipped = len(notes) + len(result.skipped)
    print("\n".join(notes))
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
