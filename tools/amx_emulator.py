#!/usr/bin/env python3
"""./dev amx: AMX's kernels with the real instructions, on an emulated processor (emulated_machine.py) without an
operating system.

Builds the cases of tools/amx_emulator with the kernels three times: for that processor; for this one, on the tiles that
tests have in software; and on such tiles with the fault that Bochs has, which takes signed bytes for unsigned ones. Runs
all, and compares them line by line. This processor must have AVX-512 with VNNI. Says nothing about speed.
"""
import argparse
import re
import struct
import subprocess
import sys
from pathlib import Path

import emulated_machine as machine
from emulated_machine import CACHE
from repo import ROOT

SOURCES = ROOT / "tools" / "amx_emulator"
SRC = ROOT / "src"
CASES = [SOURCES / f"{name}.cc" for name in ("cases", "probes", "products", "attention")]
WRITER = SRC / "attention" / "encoder_avx512_vnni.cc"  # keys and values to tiles
REAL = [SOURCES / "start.S", SOURCES / "bare.cc", SRC / "ops" / "kernels_amx.cc", SRC / "attention" / "encoder_amx.cc"]
DEFINED = [SOURCES / "host.cc", SRC / "ops" / "tile_test_avx512_vnni.cc", SRC / "attention" / "encoder_tiles_test_avx512_vnni.cc"]
ERRING = [SOURCES / "host.cc", SOURCES / "erring_tiles.cc"]
COMMON = ["-std=c++20", "-O3", "-DNDEBUG", "-march=x86-64-v2", f"-I{SRC}", f"-I{SOURCES}"]
BARE = ["-DTRANSEPT_BARE", "-ffreestanding", "-fno-exceptions", "-fno-rtti", "-fno-pic", "-fno-pie", "-mno-red-zone",
        "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fno-threadsafe-statics", "-fcf-protection=none",
        "-nostdlib", "-static", "-no-pie", f"-Wl,-T,{SOURCES}/image.ld", "-Wl,--build-id=none"]
SECTIONS = [".start", ".text", ".rodata", ".data"]  # of image.ld
END = "all cases ran"
NEEDED = ["avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"]  # of this processor
NEAR = 1e-5  # of bfloat16's sums, of the largest float of a line: float32 rounds to 6e-8, some hundred times


# ---- programs

def missing(cpuinfo):
    """What a processor lacks to run the kernels on tiles in software, by its text in /proc/cpuinfo."""
    return [name for name in NEEDED if name not in cpuinfo.split()]


def flags_of(level, text):
    """What cmake/transept.cmake compiles a level's kernels with."""
    found = re.search(rf"set\(TRANSEPT_FLAGS_{level} ([^)]*)\)", text)
    words = []
    for word in found.group(1).split():
        other = re.fullmatch(r"\$\{TRANSEPT_FLAGS_(\w+)\}", word)
        words += flags_of(other.group(1), text) if other else [word]
    return words


def build(name, level, sources, *flags):
    text = (ROOT / "cmake" / "transept.cmake").read_text()
    machine.run(["g++", *COMMON, *flags_of(level, text), *flags, "-o", CACHE / name, *sources, *CASES, WRITER])
    return CACHE / name


def build_image():
    elf = build("bare.elf", "amx", REAL, *BARE)
    image = CACHE / "bare.bin"
    machine.run(["objcopy", "-O", "binary", *(f"--only-section={name}" for name in SECTIONS), elf, image])
    return image.read_bytes()


def run_here(program):
    done = subprocess.run([program], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"amx: {program.name} ended with {done.returncode}")
    return done.stdout.splitlines()


# ---- what the lines mean

def name_of(line):
    """A case, without what came of it."""
    return re.split(r": (?=right|WRONG)| #", line)[0]


def floats_of(line):
    """Some floats of a line of bfloat16, or nothing."""
    bits = line.partition(" #")[2].split()[1:]
    if not all(re.fullmatch("[0-9a-f]{8}", word) for word in bits):
        return []
    return [struct.unpack(">f", bytes.fromhex(word))[0] for word in bits]


def farthest(got, want):
    """The largest difference of two lines' floats, of the largest of them; None: there are none to compare."""
    ours, theirs = floats_of(got), floats_of(want)
    if not theirs or len(ours) != len(theirs):
        return None
    most = max(map(abs, theirs))
    return max(abs(x - y) for x, y in zip(ours, theirs)) / most if most else None


class Comparison:
    """Lines of the emulated processor beside those of tiles in software, as defined and with Bochs's fault."""

    def __init__(self, real, defined, erring):
        self.same, self.near, self.erring = 0, [], []  # cases; differences; cases that are as the fault makes them
        self.faults, self.wrong = [], []               # probes of that fault; whatever is neither
        for i, want in enumerate(defined):
            self.compare(real[i] if i < len(real) else "", want, erring[i] if i < len(erring) else "")
        self.wrong += [f"one line too many: {line}" for line in real[len(defined):]]
        if END not in real:
            self.wrong.append("the program did not end")

    def compare(self, got, want, erring):
        difference = farthest(got, want) if want.startswith("bfloat16") and name_of(got) == name_of(want) else None
        if "WRONG" in want:
            self.wrong.append(f"tiles in software: {want}")
        elif got == want:
            self.same += want != END
        elif got == erring and got:
            (self.faults if "WRONG" in got else self.erring).append(got)
        elif difference is not None and 0 < difference <= NEAR:
            self.near.append(difference)
        else:
            self.wrong.append(f"{got or 'nothing'}\n  for {want}")

    def passed(self):
        return self.same + len(self.near) + len(self.erring)

    def report(self):
        yield from self.wrong[:20]
        if len(self.wrong) > 20:
            yield f"and {len(self.wrong) - 20} more"
        yield f"{self.same} cases are as defined, to the bit"
        if self.near:
            yield f"{len(self.near)} products in bfloat16 differ, by {max(self.near):.2g} of a line's largest at most"
        if self.faults:
            yield (f"{len(self.faults)} probes of single instructions contradict Intel's definition, as if signed bytes were unsigned: a fault of "
                   f"this Bochs; {len(self.erring)} cases have the bits of tiles in software with the same fault")
        yield f"{self.passed()} passed, {len(self.wrong)} failed"


def main():
    parser = argparse.ArgumentParser(prog="./dev amx", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timeout", type=float, default=3600, help="seconds until the emulated processor is given up")
    options = parser.parse_args()
    if lacks := missing(Path("/proc/cpuinfo").read_text()):
        sys.exit(f"amx: this processor has no {', '.join(lacks)}: the kernels cannot run on tiles in software here, so there is nothing to compare with")
    CACHE.mkdir(parents=True, exist_ok=True)
    print("amx: building the cases", flush=True)
    defined = run_here(build("defined", "avx512_vnni", DEFINED))
    erring = run_here(build("erring", "avx512_vnni", ERRING, "-DTRANSEPT_ERRING"))
    image = build_image()
    machine.fetch()
    print(f"amx: running them in Bochs {machine.version()} (sapphire_rapids)", flush=True)
    comparison = Comparison(machine.boot(image, options.timeout), defined, erring)
    print("\n".join(comparison.report()))
    sys.exit(1 if comparison.wrong or not comparison.same else 0)


if __name__ == "__main__":
    main()
