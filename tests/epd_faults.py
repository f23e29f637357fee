#!/usr/bin/env python3
"""Faults of a fleet, with processes: tests/epd_faults.py [--transept PATH] [--only SUBSTR] [--minutes N] [--seed N]. Every row of epd_rows.py, of
epd_mounts.py, of epd_redis.py and of epd_redis_faults.py, then N minutes of random kills and stops under load (epd_random.py). Needs Linux, the binary and the models of the
tree; standard library only. Prints a line a row, and closes with `N passed, N failed`."""
import argparse
import random
import sys
from pathlib import Path

import epd_mounts
import epd_redis
import epd_redis_faults
import epd_rows
import harness
import serving
from epd_random import random_faults, random_faults_speech


def main():
    parser = argparse.ArgumentParser(prog="tests/epd_faults.py")
    parser.add_argument("--transept", type=Path, default=serving.ROOT / "build" / "release" / "transept")
    parser.add_argument("--only", default="", metavar="SUBSTR", help="rows whose name has it")
    parser.add_argument("--minutes", type=float, default=1.0, help="of random faults (default: 1)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    if not options.transept.exists():
        sys.exit(f"no {options.transept}")
    print(f"--seed {options.seed}", flush=True)
    outcome = harness.Outcome()
    setup = epd_rows.FaultSetup(options.transept.resolve(), options.seed, options.minutes)
    try:
        for row in [*epd_rows.QUICK, *epd_rows.SLOW, *epd_mounts.ROWS, *epd_redis.ROWS, *epd_redis_faults.ROWS, random_faults, random_faults_speech]:
            if options.only in row.__name__:
                harness.run_case(row, setup, outcome)
    finally:
        setup.close()
    print(f"{outcome.passed} passed, {outcome.failed} failed" + (f", {outcome.skipped} skipped" if outcome.skipped else ""))
    sys.exit(1 if outcome.failed or not outcome.passed else 0)


if __name__ == "__main__":
    main()
