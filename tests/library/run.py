#!/usr/bin/env python3
"""The library as its users have it: tests/library/run.py [--build DIR] [--update-abi]. Installs build/release into a
folder of its own, builds the examples against that by find_package and by pkg-config, and compares what they say with the
binary, byte for byte. Compares the ABI with the committed one (abidw and abidiff, skipped where they are missing).
Closes with `N passed, N failed, N skipped`."""
import argparse
import contextlib
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import exports

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MODELS = ROOT / "tests" / "models"
ABI = HERE / "libtransept.so.0.abi"
LINES = ["Nobody is overtaken for ever.", "", "The ship leaves tomorrow morning ", "Die Katze schläft in der Sonne.", "x" * 40]
LANGUAGES = ("c", "cpp")


class Failed(Exception):
    pass


class Tally:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, 0

    @contextlib.contextmanager
    def case(self, name):
        try:
            yield
        except (Failed, OSError, subprocess.SubprocessError) as why:
            self.failed += 1
            print(f"failed: {name}: {str(why)[:2000]}", flush=True)
        else:
            self.passed += 1

    def skip(self, reason, count=1):
        self.skipped += count
        print(f"skipped: {count} ({reason})")

    def closing(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def run(command, text="", **options):
    """Standard output of a command that must succeed, as bytes."""
    done = subprocess.run([str(part) for part in command], input=text.encode(), capture_output=True, **options)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}: exit code {done.returncode}: {done.stderr.decode(errors='replace')[-1500:]}")
    return done.stdout


def same(actual, wanted):
    if actual != wanted:
        raise Failed(f"got {actual[:400]!r}, wanted {wanted[:400]!r}")


def wav_bytes(samples):
    """A file of 16-bit samples at 16 kHz."""
    data = struct.pack(f"<{len(samples)}h", *samples)
    head = struct.pack("<4sIHHIIHH4sI", b"fmt ", 16, 1, 1, 16000, 32000, 2, 16, b"data", len(data))
    return b"RIFF" + struct.pack("<I", 4 + len(head) + len(data)) + b"WAVE" + head + data


def triangle_sound(seconds):
    """Something for the model to be random about."""
    state, samples = 7, []
    while len(samples) < seconds * 16000:
        state = (state * 1664525 + 1013904223) % 2**32
        period, loudness = 20 + (state >> 8) % 180, 500 + (state >> 16) % 8000
        samples += [4 * loudness * abs(i % period - period // 2) // period - loudness for i in range(3200)]
    return samples[:seconds * 16000]


def install(build, prefix):
    run(["cmake", "--install", build, "--prefix", prefix])
    for path in ("bin/transept", "include/transept.h", "include/transept.hpp", "lib/libtransept.so", "lib/libtransept.so.0",
                 "lib/pkgconfig/transept.pc", "lib/cmake/transept/transept-config.cmake", "share/doc/transept/LICENSE"):
        if not (prefix / path).exists():
            raise Failed(f"{path} is not installed")
    same(sorted(exports.exported(prefix / "lib" / "libtransept.so")), sorted(exports.declared(prefix / "include" / "transept.h")))


def build_by_cmake(language, prefix, out):
    flags = "-Wall -Wextra -Wpedantic -Werror"
    run(["cmake", "-S", ROOT / "examples" / language, "-B", out, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_FLAGS={flags}",
         f"-DCMAKE_CXX_FLAGS={flags}"])
    run(["cmake", "--build", out])


def build_by_pkg_config(language, prefix, out):
    """The Makefile of the examples, on a copy."""
    shutil.copytree(ROOT / "examples" / language, out)
    run(["make", "-C", out, f"PKG_CONFIG_PATH={prefix / 'lib' / 'pkgconfig'}"],
        env={**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")})


def check_translate(binary, program, environment):
    for model in ("bart-float32", "t5-float32", "marian-float16"):
        texts = [line for line in LINES if line]  # generate takes no empty text
        wanted = run([binary, "generate", MODELS / model, *texts, "--max-tokens", 12])
        same(run([program, MODELS / model, '{"max_tokens": 12}'], "\n".join(texts) + "\n", env=environment), wanted)
    many = "".join(f"line {i}\n" for i in range(150))  # more than are in flight
    wanted = run([binary, "generate", MODELS / "bart-float32", *many.splitlines(), "--max-tokens", 3])
    same(run([program, MODELS / "bart-float32", '{"max_tokens": 3}'], many, env=environment), wanted)


def check_stream(binary, program, environment):
    for text in LINES:
        if text:
            wanted = run([binary, "generate", MODELS / "bart-float32", text])
            same(run([program, MODELS / "bart-float32", text], env=environment), wanted)


def check_transcribe(binary, program, environment, folder):
    sound = folder / "sound.wav"
    sound.write_bytes(wav_bytes(triangle_sound(35)))
    model = MODELS / "whisper-transcribes"
    for options, flags in (('{"language": "en", "beam_size": 1}', ["--language", "en", "--beam-size", "1"]),
                           ('{"word_timestamps": true}', ["--word-timestamps", "true"])):
        wanted = run([binary, "transcribe", model, sound, "-f", "srt", "-o", "-", *flags])
        if wanted.count(b"-->") < 2:
            raise Failed("a transcript without segments compares nothing")
        same(run([program, model, sound, options], env=environment), wanted)


def check_errors(program, environment):
    done = subprocess.run([program, "/no/such/model", "x"], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment)
    if done.returncode != 1 or "/no/such/model" not in done.stderr:
        raise Failed(f"a model that is not there: exit code {done.returncode}: {done.stderr}")


def run_examples(tally, programs, name, prefix, folder):
    environment = {**os.environ, "LD_LIBRARY_PATH": str(prefix / "lib")}
    binary = prefix / "bin" / "transept"
    with tally.case(f"{name}: translate"):
        check_translate(binary, programs / "translate", environment)
    with tally.case(f"{name}: stream"):
        check_stream(binary, programs / "stream", environment)
    with tally.case(f"{name}: transcribe"):
        check_transcribe(binary, programs / "transcribe", environment, folder)
    with tally.case(f"{name}: errors"):
        check_errors(programs / "translate", environment)


# ---- The ABI

def dump_abi(folder, header=exports.HEADER):
    """What abidw says of the header's functions and types, without anything of this machine. The source is made from the
    header: the compiler holds the library's own definitions against it, and the first case its symbols."""
    source, library, dump = folder / "abi.c", folder / "libtransept-abi.so", folder / "libtransept.abi"
    source.write_text(exports.stubs(header), encoding="utf-8")
    capi = exports.HEADER.parent
    run(["cc", "-std=c99", "-g", "-fPIC", "-shared", "-Wl,-soname,libtransept.so.0", f"-Wl,--version-script={capi / 'libtransept.map'}",
         f"-I{header.parent}", source.name, "-o", library], cwd=folder)
    run(["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed", "--type-id-style", "hash",
         "--out-file", dump, library])
    return dump


def differences(old, new):
    """What abidiff says; "": nothing. Errors of the tool itself are failures, too."""
    done = subprocess.run(["abidiff", "--no-show-locs", str(old), str(new)], capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr or f"exit code {done.returncode}"


def check_abi(tally, folder):
    missing = [tool for tool in ("abidw", "abidiff") if not shutil.which(tool)]
    if missing:
        return tally.skip(f"the ABI: no {' and no '.join(missing)}; ./dev setup slow installs abigail-tools", 4)
    with tally.case("the ABI is the committed one"):
        dump = dump_abi(folder)
        told = differences(ABI, dump)
        if told:
            raise Failed(f"{told}\nAn addition goes with tests/library/run.py --update-abi; anything else with a new SOVERSION")
    for what, old, new in (("a function that went", "transept_model_drain", "transept_model_drains"),
                           ("a member of another type", "double cumulative_logprob;", "float cumulative_logprob;"),
                           ("a parameter more", "transept_stream* stream, transept_error", "transept_stream* stream, int more, transept_error")):
        with tally.case(f"the ABI: {what} is told"):
            header = folder / "changed" / "transept.h"
            header.parent.mkdir(exist_ok=True)
            text = exports.HEADER.read_text(encoding="utf-8")
            if old not in text:
                raise Failed(f"the header has no {old}")
            header.write_text(text.replace(old, new), encoding="utf-8")
            if not differences(ABI, dump_abi(folder, header)):
                raise Failed("abidiff told nothing")


def main():
    parser = argparse.ArgumentParser(prog="tests/library/run.py")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--update-abi", action="store_true", help="writes the committed ABI anew, and nothing else")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="transept-library-") as name:
        folder = Path(name)
        if options.update_abi:
            shutil.copy(dump_abi(folder), ABI)
            return
        tally, prefix = Tally(), folder / "prefix"
        with tally.case("install"):
            install(options.build, prefix)
        for language in LANGUAGES:
            for how, build in (("find_package", build_by_cmake), ("pkg-config", build_by_pkg_config)):
                built = folder / f"{language}-{how}"
                with tally.case(f"{language}: build by {how}"):
                    build(language, prefix, built)
            run_examples(tally, folder / f"{language}-find_package", language, prefix, folder)
        with tally.case("moved"):  # nothing in the tree names where it was installed
            moved = folder / "moved"
            shutil.move(prefix, moved)
            build_by_cmake("c", moved, folder / "c-moved")
        check_abi(tally, folder)
        print(tally.closing())
        sys.exit(1 if tally.failed or not tally.passed else 0)


if __name__ == "__main__":
    main()
