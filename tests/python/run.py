#!/usr/bin/env python3
"""The Python package as its users have it: builds the wheel, checks it (auditwheel, twine), installs it into a fresh virtual
environment below build/python, and runs the tests of this folder there; sends tests/models through LLM by tests/golden.py.

    tests/python/run.py [--transept PATH] [--filter NAME] [--wheel FILE]

What cannot be installed from PyPI is skipped with the reason. Closes with `N passed, N failed, N skipped`.
"""
import argparse
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "python-tests"
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

import packages
import wheel as wheels

MOST_GRAFTED = ("libabsl", "libutf8proc", "libpcre2", "libcrypto", "libz", "libjpeg", "libpng16", "libwebp")  # of these and no other library
NEEDS_SHARED = ("test_same_texts",)
NEEDS_PEERS = (*NEEDS_SHARED, "test_same_translations")


class Tally:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, 0

    def case(self, name, problem):
        self.passed, self.failed = self.passed + (not problem), self.failed + bool(problem)
        if problem:
            print(f"failed: {name}: {problem[:3000]}", flush=True)

    def skip(self, reason):
        self.skipped += 1
        print(f"skipped: 1 ({reason})", flush=True)


def call(*command, **options):
    """(whether it went well, its output)."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, **options)
    return done.returncode == 0, done.stdout


def check_wheel(tally, wheel, python):
    good, said = call(python, "-m", "twine", "check", "--strict", wheel)
    tally.case("twine check --strict", "" if good else said)
    good, said = call(python, "-m", "auditwheel", "show", wheel)
    tally.case("auditwheel show", "" if good and "manylinux" in said else said)
    tag = re.search(r"-(manylinux_\d+_\d+_x86_64)\.whl$", wheel.name)
    stated = f"`{tag[1]}`" if tag else ""
    for page in ("python", "packages"):
        known = stated and stated in (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        tally.case(f"docs/{page}.md states the platform", "" if known else f"{wheel.name}: the page does not name its tag")
    names = zipfile.ZipFile(wheel).namelist()
    libraries = [Path(name).name for name in names if ".libs/" in name and name.endswith(tuple("0123456789so"))]
    strange = [name for name in libraries if not name.startswith(MOST_GRAFTED)]
    tally.case("what is grafted into the wheel", ", ".join(strange))
    for wanted in ("transept/py.typed", "transept/_core.pyi", "transept/__init__.py"):
        tally.case(wanted, "" if wanted in names else "is not in the wheel")
    print(f"{wheel.name}: {wheel.stat().st_size / 2**20:.1f} MiB")


def fresh_environment(tally, wheel):
    """An interpreter with the wheel and what the tests need, made anew; None where that cannot be."""
    skips = []
    python = packages.prepare_venv(HERE / "requirements.txt", BUILD / "venv", skips)
    if python is None:
        tally.skip(skips[0])
        return None
    good, said = call(python, "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", wheel)
    tally.case("pip install", "" if good else said)
    return python if good else None


def run_module(tally, python, name, environment, name_filter):
    selected = ["-k", name_filter] if name_filter else []
    good, said = call(python, "-m", "unittest", "-v", *selected, name, cwd=HERE, env=environment)
    ran = int((re.findall(r"^Ran (\d+) test", said, re.MULTILINE) or ["0"])[-1])
    bad = sum(map(int, re.findall(r"(?:failures|errors)=(\d+)", said)))
    skipped = sum(map(int, re.findall(r"skipped=(\d+)", said)))
    tally.skipped += skipped
    tally.passed += ran - bad - skipped
    tally.failed += max(bad, 0 if good or (name_filter and not ran) else 1)
    told = [line for line in said.splitlines() if re.match(r"(a request:|the clip:|\d+ of \d+ (?:clips|words)|words a second|.*: the same text from|skipped)", line)]
    print(f"{name}: {ran} run, {bad} failed", *told, *([said[-4000:]] if bad or not good and ran else []), sep="\n", flush=True)


def goldens(tally, python):
    """tests/golden.py, with the Python driver in the place of the binary."""
    driver = BUILD / "transept"
    driver.write_text(f"#!{python}\n" + (HERE / "generate.py").read_text(encoding="utf-8"), encoding="utf-8")
    driver.chmod(driver.stat().st_mode | stat.S_IXUSR)
    run_suite(tally, "goldens through LLM", ROOT / "tests" / "golden.py", "--quick", "--plain", "encoder", "--plain", "drafts", "--transept", driver)


def run_suite(tally, name, *command):
    """Another suite's script, which closes with `N passed, N failed`."""
    _, said = call(sys.executable, *command)
    numbers = re.match(r"(\d+) passed, (\d+) failed", (said.strip().splitlines() or [""])[-1])
    passed, failed = map(int, numbers.groups()) if numbers else (0, 1)
    tally.passed, tally.failed = tally.passed + passed, tally.failed + failed
    print(f"{name}: {passed} passed, {failed} failed", *([said[-3000:]] if failed else []), sep="\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transept", type=Path, default=ROOT / "build" / "release" / "transept", help="the binary, an oracle")
    parser.add_argument("--filter", default="", help="only tests whose name contains this")
    parser.add_argument("--wheel", type=Path, help="test this one instead of building")
    options = parser.parse_args()
    tally = Tally()
    scratch = BUILD / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        tools = wheels.tools_python()
        wheel = options.wheel or wheels.build_wheel(BUILD / "wheel", tools)
    except wheels.WheelError as error:
        if "could not install" in str(error):
            tally.skip(str(error))
        else:
            tally.case("the wheel", str(error))
        return finish(tally)
    check_wheel(tally, wheel, tools)
    python = fresh_environment(tally, wheel)
    if python is None:
        return finish(tally)
    environment = {**os.environ, "TRANSEPT_BINARY": str(options.transept.resolve()), "TRANSEPT_SCRATCH": str(scratch)}
    environment.pop("PYTHONPATH", None)
    has_shared = (ROOT.parent / "shared" / "audio").is_dir() and (ROOT.parent / "shared" / "models" / "whisper-tiny").is_dir()
    for module in sorted(path.stem for path in HERE.glob("test_*.py")):
        if module in NEEDS_PEERS:
            skips = []
            is_possible = has_shared or module not in NEEDS_SHARED
            peer = packages.prepare_venv(HERE / "requirements-peers.txt", BUILD / "peers", skips) if is_possible else None
            if peer is None:
                tally.skip(skips[0] if skips else f"{module}: no ../shared beside this checkout")
                continue
            environment["PEER_PYTHON"] = str(peer)
        run_module(tally, python, module, environment, options.filter)
    if not options.filter:
        goldens(tally, python)
        run_suite(tally, "code blocks of the pages", ROOT / "tests" / "docs" / "run.py", "--all", "--only", "module",
                  "--python", python, "--transept", options.transept.resolve())
    return finish(tally)


def finish(tally):
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
