#!/usr/bin/env python3
"""Audio by releases of FFmpeg that Debian 12 does not have: those inside wheels of PyAV, from PyPI into build/ffmpeg. With the libraries
of each: `transept doctor` names the release, media_test passes, and every file of src/media/testdata gives the samples of PyAV itself, to
the bit (decoded.py), which another process decodes and resamples with the same libraries.

    tests/ffmpeg/run.py [--build FOLDER] [--filter 8.0]

A wheel that cannot be installed is skipped with the reason. Closes with `N passed, N failed, N skipped`.
"""
import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "ffmpeg"
SOUNDS = ROOT / "src" / "media" / "testdata"
sys.path.insert(0, str(HERE.parent))  # for packages

import packages

# What it calls itself, and PyAV's version that has it inside.
RELEASES = {"6.1": "12.3.0", "7.0": "13.1.0", "7.1": "14.1.0", "8.0": "16.0.1", "8.1": "18.1.0"}
LIBRARIES = ("avformat", "avcodec", "avutil", "swresample")
# PyAV ends at the second stream's beginning; media_test knows how many samples there are.
REFUSED_BY_PYAV = ("chained.ogg",)
SUFFIXES = (".wav", ".mp3", ".m4a", ".aac", ".ogg", ".opus", ".flac", ".webm", ".mkv", ".mp4", ".aiff", ".caf", ".w64", ".au")


class Tally:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, 0

    def case(self, name, problem):
        self.passed, self.failed = self.passed + (not problem), self.failed + bool(problem)
        print(f"failed: {name}: {problem[-3000:]}" if problem else f"ok: {name}", flush=True)

    def skip(self, reason):
        self.skipped += 1
        print(f"skipped: 1 ({reason})", flush=True)


def call(*command, **options):
    """(whether it went well, its output)."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, **options)
    return done.returncode == 0, done.stdout


def wheel_folder(version, skips):
    """Where the wheel lies unpacked; None if it cannot be had."""
    folder, wanted = BUILD / f"av-{version}", BUILD / f"av-{version}.txt"
    wanted.parent.mkdir(parents=True, exist_ok=True)
    wanted.write_text(f"av=={version}\n", encoding="utf-8")
    mark = folder / "installed.txt"
    step = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--upgrade", "--target", str(folder), f"av=={version}"]
    good = packages.is_copy(wanted, mark) or packages.install("pip", [step], wanted, mark, skips)
    return folder if good else None


def link_libraries(folder):
    """Gives the wheel's libraries the names that a system has them by, and returns their folder."""
    libraries = folder / "av.libs"
    for name in LIBRARIES:
        (own,) = (path for path in libraries.glob(f"lib{name}-*.so.*") if not path.is_symlink())
        major = re.search(r"\.so\.(\d+)", own.name)[1]
        link = libraries / f"lib{name}.so.{major}"
        link.unlink(missing_ok=True)
        link.symlink_to(own.name)
    return libraries


def sounds():
    return sorted(path for path in SOUNDS.iterdir() if path.suffix in SUFFIXES)


def decoded(side, files, environment):
    """{file: what it gives} of decoded.py."""
    good, said = call(sys.executable, HERE / "decoded.py", side, *files, env=environment)
    if not good:
        return {}, said
    return dict(line.split("\t", 1) for line in said.splitlines()), ""


def first_failures(said):
    """Of gtest's words, those from the first failure on, and every failed test."""
    at = said.find(": Failure")
    failed = [line for line in said.splitlines() if line.startswith("[  FAILED  ]")]
    return "\n".join([said[max(0, at - 200):at + 800] if at >= 0 else said[-1000:], *failed])


def try_release(tally, name, version, build):
    skips = []
    folder = wheel_folder(version, skips)
    if folder is None:
        return tally.skip(f"FFmpeg {name}: {skips[0]}")
    libraries = link_libraries(folder)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    good, said = call(build / "transept", "doctor", env=environment)
    tally.case(f"FFmpeg {name}: doctor names it", "" if f"FFmpeg {name.split('.')[0]}" in said else said)
    good, said = call(next(build.rglob("media_test")), "--gtest_brief=1", env=environment)
    passed = re.search(r"\[  PASSED  \] (\d+) tests", said)
    tally.case(f"FFmpeg {name}: media_test", "" if good and passed else first_failures(said))
    files = sounds()
    ours, problem = decoded("ours", files, {**environment, "TRANSEPT_LIBRARY": str(build / "libtransept.so")})
    theirs, their_problem = decoded("pyav", files, {**os.environ, "PYTHONPATH": str(folder)})
    tally.case(f"FFmpeg {name}: both decode", problem + their_problem)
    for path in files if not problem + their_problem else ():
        one, other = ours.get(path.name, "nothing"), theirs.get(path.name, "nothing")
        if path.name in REFUSED_BY_PYAV and other.startswith("error"):
            tally.case(f"FFmpeg {name}: {path.name} (PyAV refuses it)", "" if not one.startswith("error") else one)
        else:
            tally.case(f"FFmpeg {name}: {path.name}", "" if one == other and not one.startswith("error") else f"ours {one}, PyAV {other}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", help="of transept, libtransept.so and media_test")
    parser.add_argument("--filter", default="", help="only releases whose name contains this")
    options = parser.parse_args()
    tally = Tally()
    for name, version in RELEASES.items():
        if options.filter in name:
            try_release(tally, name, version, options.build.resolve())
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    sys.exit(1 if tally.failed else 0)


if __name__ == "__main__":
    main()
