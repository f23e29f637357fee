#!/usr/bin/env python3
"""Faults of a fleet, with processes: tests/epd_faults.py [--transept PATH] [--only SUBSTR] [--minutes N] [--seed N]. Every row of epd_rows.py,
epd_members.py, epd_mounts.py, epd_redis.py, epd_redis_faults.py, epd_hostile.py and epd_stages.py, then N minutes of random kills, stops and cuts
under load (epd_random.py). Needs Linux, the binary and the models of the tree; standard library only. Prints a line a row, and closes with
`N passed, N failed`."""
import argparse
import random
import sys
from pathlib import Path

import epd_hostile
import epd_members
import epd_mounts
import epd_random
import epd_redis
import epd_redis_faults
import epd_rows
import epd_stages
import harness
import serving

MODULES = [epd_rows, epd_members, epd_mounts, epd_redis, epd_redis_faults, epd_hostile, epd_stages, epd_random]


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
        for row in (row for module in MODULES for row in (*getattr(module, "QUICK", ()), *module.SLOW)):
            if options.only in row.__name__:
                harness.run_case(row, setup, outcome)
    finally:
        setup.close()
    print(f"{outcome.passed} passed, {outcome.failed} failed" + (f", {outcome.skipped} skipped" if outcome.skipped else ""))
    sys.exit(1 if outcome.failed or not outcome.passed else 0)


if __name__ == "__main__":
    main()
