#!/usr/bin/env python3
"""Instructions of one encode and of one decode step, counted by callgrind, against the committed counts (instructions.json): of the
bundled model, and in int8 (weights, encoder attention, KV cache) of one that the probe makes, wide enough for it. More than 5 % up fails and names the functions that grew.

    ./dev bench --instructions [--update]

Kernels are pinned to AVX2, because valgrind knows no AVX-512. Counts are of one compiler and one C library: with others the
check is skipped, and says so. --update writes the counts anew.
"""
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from machine import BUILD, ROOT

COMMITTED = Path(__file__).resolve().parent / "instructions.json"
PROBE = BUILD / "bench" / "step_probe"
TOLERANCE = 0.05
KEPT_FUNCTIONS = 25
CASES = {"float32": [str(ROOT / "models" / "g2p")], "int8": ["made", "quantization=int8", "kv-cache-dtype=int8"]}
WHAT = ("encode", "step")


def compiler():
    """Of the release build: name and version."""
    cache = (BUILD / "CMakeCache.txt").read_text(encoding="utf-8")
    path = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.MULTILINE).group(1)
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    version = re.findall(r"\d+\.\d+\.\d+", said)
    return f"{'clang' if 'clang' in said else 'g++'} {version[-1] if version else said}"


def toolchain():
    return {"compiler": compiler(), "libc": " ".join(platform.libc_ver())}


def functions_of(text):
    """{function: its own instructions} of a callgrind file with addresses of lines left out."""
    names, found, current, is_call = {}, {}, None, False
    for line in text.splitlines():
        name = re.match(r"fn=\((\d+)\)(?: (.*))?$", line)
        other = re.match(r"cfn=\((\d+)\) (.*)$", line)
        if other:
            names[other.group(1)] = other.group(2)
        if name:
            if name.group(2):
                names[name.group(1)] = name.group(2)
            current = names[name.group(1)]
        elif line.startswith("calls="):
            is_call = True  # the next line is what was spent inside
        elif line[:1].isdigit() or line[:1] in "+-*":
            parts = line.split()
            if not is_call and current is not None and len(parts) == 2:
                found[current] = found.get(current, 0) + int(parts[1])
            is_call = False
    return found


def count(what, settings):
    """({function: instructions}, None), or (None, why not)."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "callgrind.out"
        command = ["valgrind", "--tool=callgrind", f"--toggle-collect=measured_{what}", f"--callgrind-out-file={out}", "--dump-line=no",
                   str(PROBE), what, *settings, "isa=avx2"]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            said = [line for line in done.stderr.splitlines() if line.startswith("step_probe:")]
            return None, said[0] if said else f"valgrind: {done.stderr.strip()[-300:]}"
        return functions_of(out.read_text(encoding="utf-8", errors="replace")), None


def growth(before, now):
    """The functions that account for a rise, the most first: lines. Of one that was not kept, what is above the least kept."""
    kept = before["functions"]
    least = min(kept.values())
    rises = sorted(((n - kept.get(name, least), name) for name, n in now.items() if n > kept.get(name, least)), reverse=True)
    was = lambda name: f"{kept[name]:,}" if name in kept else "not among the largest"
    return [f"    {rise:+,} {name[:110]} ({was(name)} -> {now[name]:,})" for rise, name in rises[:8]]


def judge(before, now):
    """(is it good, lines) of one count."""
    total = sum(now.values())
    change = total / before["instructions"] - 1
    lines = [f"{total:,} instructions, {100 * change:+.1f} % ({before['instructions']:,} committed)"]
    return (True, lines) if change <= TOLERANCE else (False, [*lines, *growth(before, now)])


def entry(functions):
    top = sorted(functions, key=functions.get, reverse=True)[:KEPT_FUNCTIONS]
    return {"instructions": sum(functions.values()), "functions": {name: functions[name] for name in top}}


def skip(why):
    print(f"skipped: instruction counts: {why}")
    print("0 passed, 0 failed, 1 skipped")
    return 0


def check(update=False):
    """Exit code."""
    if not shutil.which("valgrind"):
        return skip("valgrind is not installed (./dev setup slow)")
    here = toolchain()
    committed = json.loads(COMMITTED.read_text(encoding="utf-8")) if COMMITTED.exists() else {**here, "counts": {}}
    if not update and committed["counts"] and any(committed[key] != here[key] for key in here):
        return skip(f"they are of {committed['compiler']} and {committed['libc']}, this is {here['compiler']} and {here['libc']}")
    passed, failed, counts = 0, 0, {}
    for kind, settings in CASES.items():
        for what in WHAT:
            name = f"{kind} {what}"
            functions, problem = count(what, settings)
            before = committed["counts"].get(name)
            if problem and (before is None or update):
                print(f"skipped: {name}: {problem}")
                continue
            if functions:
                counts[name] = entry(functions)
            if update or before is None:
                print(f"{name}: {counts[name]['instructions']:,} instructions" + ("" if update else ", nothing committed to compare with (--update)"))
                continue
            good, lines = (False, [problem]) if problem else judge(before, functions)
            print(f"{'ok' if good else 'FAIL'} {name}: " + "\n".join(lines))
            passed, failed = passed + good, failed + (not good)
    if update:
        COMMITTED.write_text(json.dumps({**here, "isa": "avx2", "models": "models/g2p; int8: made by the probe", "counts": counts}, indent=1, ensure_ascii=False) + "\n",
                             encoding="utf-8")
        print(f"wrote {COMMITTED.relative_to(ROOT)}")
        return 0
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(check("--update" in sys.argv[1:]))
