#!/usr/bin/env python3
"""Locks as clang sees them: reads the sources that could touch what a mutex guards with clang's thread safety analysis.

A member that ABSL_GUARDED_BY names a mutex for may be touched only where that is held, a function with
ABSL_EXCLUSIVE_LOCKS_REQUIRED called only there. g++, which builds what is shipped, knows neither.

What a header guards is private (its name ends in "_", which this checks), so only sources that include that header
themselves can touch it: these are read, and those that include base/mutex.h, as build/release compiles them. Of tests only
those are read that have mutexes themselves or from a header for tests. Nothing is compiled. A source is read again when
it, a header of it or its flags have changed: ninja sees to that, in build/thread_safety.
"""
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from include_graph import direct_includers, read_sources
from repo import ROOT, jobs

CLANG = "clang++-14"
# All other warnings are the compilers' that build, and clang-tidy's.
FLAGS = ["-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Wthread-safety-beta", "-Werror"]
MUTEX = "base/mutex.h"
GUARDED = re.compile(r"(\w+)\s+ABSL_(?:PT_)?GUARDED_BY")
RULE = """ninja_required_version = 1.5
rule read
  command = $reader -MD -MF $out.d -MT $out && touch $out
  depfile = $out.d
  deps = gcc
  description = $in
"""


def guarding_files(files):
    """The sources that could touch what a mutex guards. files: {name: text}."""
    guarding = direct_includers({MUTEX}, files)
    users = {name for name in direct_includers(guarding, files) if not name.endswith("_test.cc")}
    return guarding | users | direct_includers({name for name in guarding if name.endswith("_testing.h")}, files)


def public_members(files):
    """Guarded members of headers that are not private by their names."""
    return [f"src/{name}: {member} is guarded, and public: who touches it is not known ({member}_, in a class)"
            for name, text in sorted(files.items()) if name.endswith(".h") and name != MUTEX
            for member in GUARDED.findall(text) if not member.endswith("_")]


def reader_of(entry):
    """The shell's words that let clang read an entry of compile_commands.json as it is compiled."""
    words = shlex.split(entry["command"])
    first = next(i for i, word in enumerate(words) if word.endswith(("++", "++-14", "clang++"))) + 1  # behind ccache
    output = words.index("-o")
    kept = [word for i, word in enumerate(words) if i >= first and i not in (output, output + 1) and word != "-c"]
    return shlex.join([CLANG, *kept, *FLAGS])


def ninja_file(entries, root, guarded):
    """(build.ninja, how many sources it reads): those of the entries that are among `guarded`, relative to src/."""
    lines, count = [RULE], 0
    for entry in entries:
        source = Path(entry["file"])
        name = source.relative_to(root / "src") if source.is_relative_to(root / "src") else None
        if name is None or str(name) not in guarded:
            continue
        count += 1
        lines.append(f"build {escaped(name)}.read: read {escaped(source)}\n  reader = {reader_of(entry).replace('$', '$$')}")
    return "\n".join(lines) + "\n", count


def escaped(path):
    return str(path).replace("$", "$$").replace(" ", "$ ").replace(":", "$:")


def problems(root=ROOT):
    """What clang has against the tree, and nothing else; one entry an error. Errors: no clang, or no release build."""
    if shutil.which(CLANG) is None:
        return [f"{CLANG} is not installed (./dev setup)"]
    commands = root / "build" / "release" / "compile_commands.json"
    if not commands.exists():
        return ["build/release is not configured: cmake --preset release"]
    work = root / "build" / "thread_safety"
    work.mkdir(parents=True, exist_ok=True)
    entries = json.loads(commands.read_text(encoding="utf-8"))
    files = read_sources(root)
    text, count = ninja_file(entries, root, guarding_files(files))
    if not count:
        return [f"no source of build/release includes {MUTEX}"]
    found = public_members(files)
    build = work / "build.ninja"
    if not build.exists() or build.read_text(encoding="utf-8") != text:
        build.write_text(text, encoding="utf-8")
    done = subprocess.run(["ninja", "-C", str(work), "-k", "0", "-j", str(jobs())], capture_output=True, text=True)
    if done.returncode == 0:
        return found
    errors = [line.replace(f"{root}/", "") for line in done.stdout.splitlines() if ": error:" in line or ": fatal error:" in line]
    return found + (sorted(set(errors)) or done.stdout.splitlines()[-20:])


def main():
    found = problems()
    print("\n".join(found) if found else "every guarded member is touched under its mutex")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
