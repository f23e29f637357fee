#!/usr/bin/env python3
"""What a fleet is deployed with, run: tests/deploy/run.py [--transept PATH] [--only SUBSTR]. deploy/haproxy.cfg and nginx.conf before two decode
instances, one of which is killed; envoy.yaml against Envoy's own structures; compose.yaml and the Kubernetes manifests, whose commands are started;
the overlays of servers without a fleet; examples/epd; deploy/slurm and examples/ray_batch.py. Validators and the official client come from PyPI, into
build/deploy. What is missing here is skipped by name. Closes with `N passed, N failed, N skipped`."""
import argparse
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent)]

from packages import prepare_venv


def main():
    parser = argparse.ArgumentParser(prog="tests/deploy/run.py")
    parser.add_argument("--transept", type=Path, default=ROOT / "build" / "release" / "transept")
    parser.add_argument("--only", default="", metavar="SUBSTR", help="cases whose module.name has it")
    parser.add_argument("--prepared", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.transept.exists():
        sys.exit(f"no {options.transept}")
    if not options.prepared:
        skips = []
        python = prepare_venv(HERE / "requirements.txt", ROOT / "build" / "deploy", skips)
        for reason in skips:
            print(f"note: {reason}", flush=True)
        os.execv(python or sys.executable, [str(python or sys.executable), __file__, *sys.argv[1:], "--prepared"])

    import epd_rows
    import harness

    import balancers
    import batches
    import examples
    import manifests
    import servers

    setup, outcome = epd_rows.FaultSetup(options.transept.resolve(), seed=1), harness.Outcome()
    try:
        for case in (case for module in (balancers, manifests, servers, examples, batches) for case in module.CASES):
            if options.only in f"{case.__module__}.{case.__name__}":
                harness.run_case(case, setup, outcome)
    finally:
        setup.close()
    print(f"{outcome.passed} passed, {outcome.failed} failed, {outcome.skipped} skipped")
    sys.exit(1 if outcome.failed or not (outcome.passed or outcome.skipped) else 0)


if __name__ == "__main__":
    main()
