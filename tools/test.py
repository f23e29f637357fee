#!/usr/bin/env python3
"""./dev test: builds, then unit tests, tests of the tools and the reference's answers through the binary; --slow: more of
them, and the official clients against the server."""
import argparse
import sys

import suites
from repo import ROOT, build
from unit_tests import run_unit_tests


def main():
    parser = argparse.ArgumentParser(prog="./dev test")
    parser.add_argument("--preset", default="release", choices=["release", "debug", "asan", "tsan"])
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("filter", nargs="?", default="")
    options = parser.parse_args()
    build(options.preset)
    log = ROOT / "build" / options.preset / "test.log"
    log.unlink(missing_ok=True)
    binary = suites.binary_of(options.preset)
    runs = [("unit tests", run_unit_tests(options.preset, log, name_filter=options.filter)),
            ("tools", suites.python_tests(log, options.filter, binary))]
    matrix = (["--full"] if options.slow else []) + (["--filter", options.filter] if options.filter else [])
    if binary:
        runs.append(("reference's answers", suites.goldens(binary, log, arguments=matrix)))
    if binary and options.slow:
        runs.append(("official clients", suites.client_tests(binary, log, options.filter)))
        for way, what in (("epd", "--epd 1E1D"), ("proxy", "transept proxy")):
            runs.append((f"official clients through {what}", suites.client_tests(binary, log, options.filter, way)))
        runs.append(("files of torch", suites.torch_files(binary, log, options.filter)))
        runs.append(("huggingface_hub", suites.hub_tests(binary, log, options.filter)))
        runs.append(("chat templates", suites.chat_templates(binary, log, options.filter)))
    if options.slow:
        runs.append(("images of Pillow", suites.image_tests(suites.image_probe_of(options.preset), log, options.filter)))
        runs.append(("WebSockets", suites.websocket_tests(suites.websocket_echo_of(options.preset), log, options.filter)))
    if binary and options.slow and not options.filter:
        scale = 1.0 if options.preset == "release" else 0.1
        runs.append(("server", suites.server_tests(binary, log, scale)))
        if options.preset == "release":
            runs.append(("faults of a fleet", suites.fleet_faults(binary, log)))
            runs.append(("deployment of a fleet", suites.deployment(binary, log)))
    if options.slow and not options.filter:
        runs.append(("page", suites.page_tests(log)))
        if options.preset == "release":
            runs.append(("library", suites.library_tests(binary, log)))
            runs.append(("releases of FFmpeg", suites.ffmpeg_tests(binary.parent, log)))
            runs.append(("Python package", suites.python_package_tests(binary, log)))
            runs.append(("packages", suites.package_tests(log)))
            runs.append(("documentation", suites.documentation(binary, log)))
            runs.append(("instructions", suites.instruction_counts(log)))
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
