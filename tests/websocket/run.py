#!/usr/bin/env python3
"""The WebSockets of net/ by clients that were written elsewhere: Python's websockets and node's ws, against tools/websocket_echo.

    tests/websocket/run.py [--echo PATH] [--filter NAME]

The clients come from PyPI and npm, below build/websocket; where they cannot be installed, their tests are skipped with the
reason. Closes with `N passed, N failed, N skipped`.
"""
import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "websocket"
sys.path.insert(0, str(HERE.parent))

from packages import install, is_copy, prepare_venv


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--echo", type=Path, default=ROOT / "build" / "release" / "src" / "net" / "websocket_echo")
    parser.add_argument("--filter", default="", help="only cases whose name contains this")
    options = parser.parse_args()
    if not options.echo.exists():
        sys.exit(f"{options.echo}: no such program")
    skips, passed, failed = [], 0, 0
    environment = {**os.environ, "WEBSOCKET_ECHO": str(options.echo.resolve()), "WEBSOCKET_FILTER": options.filter}
    for command in (python_cases(skips), node_cases(skips)):
        if command is None:
            continue
        done = subprocess.run(command[0], cwd=command[1], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        lines = done.stdout.splitlines()
        passed += sum(line.startswith("ok ") for line in lines)
        bad = [line for line in lines if line.startswith("FAIL ")]
        if done.returncode and not bad:  # it ended before it said what failed
            bad = [f"FAIL {command[0][-1]}: exit code {done.returncode}", *done.stderr.splitlines()[-5:]]
        failed += sum(line.startswith("FAIL ") for line in bad)
        print(*bad, sep="\n", end="\n" if bad else "")
    for reason in skips:
        print(f"skipped: {reason}")
    print(f"{passed} passed, {failed} failed, {len(skips)} skipped")
    sys.exit(1 if failed or not (passed or skips) else 0)


def python_cases(skips):
    python = prepare_venv(HERE / "requirements.txt", BUILD / "venv", skips)
    return python and ([str(python), "cases.py"], HERE)


def node_cases(skips):
    wanted, folder = HERE / "package.json", BUILD / "node"
    if not shutil.which("node") or not shutil.which("npm"):
        skips.append("ws: no node or no npm on this machine")
        return None
    if not is_copy(wanted, folder / "installed.json"):
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(wanted, folder / "package.json")
        step = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder)]
        if not install("npm", (step,), wanted, folder / "installed.json", skips):
            return None
    shutil.copy(HERE / "cases.mjs", folder)  # where it finds node_modules
    return ["node", "cases.mjs"], folder


if __name__ == "__main__":
    main()
