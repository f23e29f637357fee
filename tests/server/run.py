#!/usr/bin/env python3
"""The real server under load and faults: tests/server/run.py [--binary PATH] [--scale X] [NAME...]. Needs Linux, the
binary and the models of the tree; standard library only. Closes with `N passed, N failed, N skipped`."""
import argparse
import sys
from pathlib import Path

import harness
import serving

import caches
import deadline
import disconnect
import drain
import hostile
import live_soak
import load
import proxies
import security
import slow_readers
import soak

MODULES = (caches, load, disconnect, drain, deadline, slow_readers, hostile, security, proxies, soak, live_soak)


def main():
    parser = argparse.ArgumentParser(prog="tests/server/run.py")
    parser.add_argument("--binary", type=Path, default=serving.ROOT / "build" / "release" / "transept")
    parser.add_argument("--scale", type=float, default=1.0, help="of counts and durations (0.1 for slow builds)")
    parser.add_argument("names", nargs="*", help="only the cases whose name has one of these in it")
    options = parser.parse_args()
    if not options.binary.exists():
        sys.exit(f"no {options.binary}")
    setup = harness.Setup(options.binary.resolve(), options.scale, harness.sanitizer_of(options.binary))
    outcome = harness.Outcome()
    for case in (case for module in MODULES for case in module.CASES):
        name = f"{case.__module__}.{case.__name__}"
        if not options.names or any(part in name for part in options.names):
            harness.run_case(case, setup, outcome)
    print(f"{outcome.passed} passed, {outcome.failed} failed, {outcome.skipped} skipped")
    sys.exit(1 if outcome.failed or not outcome.passed else 0)


if __name__ == "__main__":
    main()
