"""The cases of run.py, in the environment that has the libraries.

A case is a model as a library stores it, and a folder in float32 of the numbers that the library says it stored. Both must give the same answers, digit
by digit, also packed, over the reference backend and over two ranks: `--quantization none` is exact (docs/quantized.md).
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for wide_model, random_requests and ranks_test

from ctranslate2_folders import CTRANSLATE2
from gguf_files import GGUF
from matrices import MATRICES
from models import Bart
from ranks_test import answers

TEXTS = ("text", "decoded_token")  # a folder of ids alone has none
CASES = {**MATRICES, **CTRANSLATE2, **GGUF}
WAYS = ([], ["--attention-backend", "reference"], ["--tensor-parallel-size", "2"])


def generate(binary, model, input_file, flags):
    done = subprocess.run([binary, "generate", str(model), "--input", str(input_file), "--quantization", "none", *flags], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=300)
    if done.returncode:
        raise ValueError(f"exit code {done.returncode}: {done.stderr[-600:]}")
    return without_texts(answers(done.stdout))


def without_texts(value):
    if isinstance(value, dict):
        return {key: without_texts(part) for key, part in value.items() if key not in TEXTS}
    return [without_texts(part) for part in value] if isinstance(value, list) else value


def check(binary, made, scratch):
    """Raises ValueError with what is wrong."""
    packed = scratch / "packed"
    done = subprocess.run([binary, "pack", str(made.stored), str(packed), "--quantization", "none"], capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"pack: {done.stderr[-600:]}")
    for flags in WAYS:
        wanted = generate(binary, made.widened, made.requests, flags)
        if not flags and (wanted == generate(binary, made.plain, made.requests, flags)) != made.is_exact:
            raise ValueError("the library has changed what it should keep, or nothing")
        for folder in (made.stored, packed):
            found = generate(binary, folder, made.requests, flags)
            different = [one["id"] for one, other in zip(wanted, found, strict=True) if one != other]
            if different:
                raise ValueError(f"{folder.name} {flags}: {len(different)} of {len(wanted)} answers differ, the first is {different[0]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--transept", required=True)
    parser.add_argument("--filter", default="")
    options = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        bart = Bart(Path(scratch) / "bart")
        for name, make in CASES.items():
            if options.filter not in name:
                continue
            try:
                with tempfile.TemporaryDirectory() as folder:
                    check(options.transept, make(bart, Path(folder)), Path(folder))
                print(f"ok {name}", flush=True)
                passed += 1
            except ValueError as why:
                print(f"FAILED {name}: {why}", flush=True)
                failed += 1
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed or not (passed or options.filter) else 0)


if __name__ == "__main__":
    main()
