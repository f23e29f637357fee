#!/usr/bin/env python3
"""./dev test: builds, then unit tests, tests of the tools and the reference's answers through the binary; --slow: more of
them, and the official clients against the server; --devices: the Vulkan device's over several drivers, and nothing else; --ranks: what ranks and
stages answer, and nothing else."""
import argparse
import sys

import device_suites
import suites
from repo import ROOT, build
from slow_suites import SLOW_SUITES
from unit_tests import run_unit_tests


def main():
    parser = argparse.ArgumentParser(prog="./dev test")
    parser.add_argument("--preset", default="release", choices=["release", "debug", "asan", "tsan"])
    parser.add_argument("--slow", action="store_true")
    alone = parser.add_mutually_exclusive_group()
    alone.add_argument("--devices", action="store_true")
    alone.add_argument("--ranks", action="store_true")
    parser.add_argument("filter", nargs="?", default="")
    options = parser.parse_args()
    log = ROOT / "build" / options.preset / "test.log"
    if options.devices:
        build("release", "device_vulkan_test")
        log.unlink(missing_ok=True)
        return report([("devices", device_suites.run_devices(log, options.filter))], log)
    build(options.preset, *(["transept"] if options.ranks else []))
    log.unlink(missing_ok=True)
    binary = suites.binary_of(options.preset)
    if options.ranks:
        return report([("ranks", suites.rank_answers(binary, log, options.filter, options.slow))], log)
    runs = [("unit tests", run_unit_tests(options.preset, log, name_filter=options.filter, is_slow=options.slow)),
            ("tools", suites.python_tests(log, options.filter, binary))]
    matrix = (["--full"] if options.slow else []) + (["--filter", options.filter] if options.filter else [])
    if binary:
        runs.append(("reference's answers", suites.goldens(binary, log, arguments=matrix)))
    if binary and options.slow:
        runs.append(("official clients", suites.client_tests(binary, log, options.filter)))
        chosen = [suite for suite in SLOW_SUITES if (suite.has_filter or not options.filter) and (options.preset == "release" or not suite.release_only)]
        runs += [(suite.name, suite.run(binary, log, options.filter)) for suite in chosen]
    report(runs, log)


def report(runs, log):
    """Prints each suite's result and leaves."""
    total = suites.Result()
    for name, result in runs:
        print(f"{name}: {result.passed} passed, {result.failed} failed, {result.skipped} skipped")
        for note in result.notes:
            print(f"  {note}")
        total.passed += result.passed
        total.failed += result.failed
    if total.failed:
        print(f"the whole output: {log.relative_to(ROOT)}")
    print(f"{total.passed} passed, {total.failed} failed")
    sys.exit(1 if total.failed or not total.passed else 0)


if __name__ == "__main__":
    main()
