#!/usr/bin/env python3
"""./dev amx: AMX's real instructions, on an emulated processor (emulated_machine.py).

Runs the unit tests that are of AMX (and of AVX-512 with FP16) with Bochs's sapphire_rapids, then the whole program: answers of
a model at --isa amx beside those at --isa avx512_vnni, in int8 and in bfloat16. Says nothing about speed. Takes minutes to an hour.

    ./dev amx                # everything
    ./dev amx ops generate   # some of: base, ops, attention, generate
"""
import argparse
import json
import random
import re
import struct
import sys
from array import array

import emulated_machine as machine
from repo import ROOT

BUILD = ROOT / "build" / "release"
# Of the unit tests: what only AMX and FP16 bring.
FILTERS = {"base": "*Isa*", "ops": "*amx*:*Amx*:*avx512_fp16*", "attention": "*amx*:*LevelsAgree*"}
G2P = ROOT / "models" / "g2p"
WIDE = {160: 256, 640: 512}  # int8 is for layers of 192 and more
WORDS = ["emulator", "tile"]
SAME, NEAR = 1e-3, 0.1  # of log-probabilities: in int8, in bfloat16


# ---- the model

def wide_model():
    """The bundled model's shapes, wider and with random weights: {name in a folder: bytes}."""
    stored = (G2P / "model.safetensors").read_bytes()
    header = json.loads(stored[8:8 + struct.unpack("<Q", stored[:8])[0]])
    names, parts, end, numbers = {}, [], 0, random.Random(1)
    for name, entry in sorted((name, entry) for name, entry in header.items() if name != "__metadata__"):
        shape = [WIDE.get(size, size) for size in entry["shape"]]
        count = 1
        for size in shape:
            count *= size
        values = array("f", [1.0] * count if "norm" in name and name.endswith("weight") else
                       [(byte - 127.5) / 1000 for byte in numbers.randbytes(count)])
        names[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + 4 * count]}
        end += 4 * count
        parts.append(values.tobytes())
    text = json.dumps(names).encode()
    config = json.loads((G2P / "config.json").read_text())
    config = {**{key: WIDE.get(value, value) for key, value in config.items() if not isinstance(value, list)},
              "architectures": config["architectures"], "encoder_attention_heads": 4, "decoder_attention_heads": 4}
    return {"model.safetensors": struct.pack("<Q", len(text)) + text + b"".join(parts), "config.json": json.dumps(config).encode()}


def model_files():
    """Both models for cpio()."""
    files = {}
    for path in G2P.glob("*.*"):
        if path.name.endswith((".json", ".safetensors")):
            files[f"g2p/{path.name}"] = files[f"wide/{path.name}"] = (path.read_bytes(), False)
    return {**files, **{f"wide/{name}": (data, False) for name, data in wide_model().items()}}


# ---- what runs

def generate_command(model, level, *flags):
    requests = "".join(json.dumps({"prompt": word, "max_tokens": 10, "logprobs": 0}) + "\\n" for word in WORDS)
    return f"printf '{requests}' | /bin/transept generate /{model} --input - --isa {level} --threads 2 --log-level warning {' '.join(flags)}"


def jobs(chosen):
    """[(name, command)] for the shell of the machine."""
    found = [(name, f"/bin/{name}_test --gtest_filter='{words}' --gtest_color=no") for name, words in FILTERS.items() if name in chosen]
    if "generate" in chosen:
        for model, flags in (("wide", ("--quantization", "int8")), ("g2p", ("--dtype", "bfloat16"))):
            found += [(f"generate {flags[1]} {level}", generate_command(model, level, *flags)) for level in ("avx512_vnni", "amx")]
    return found


def script_of(listed):
    lines = ["export PATH=/bin", "for name in printf; do busybox ln -s /bin/busybox /bin/$name; done"]
    for name, command in listed:
        lines.append(f"echo '== {name}'; {command}; echo \"== exit $?\"")
    return "\n".join(lines)


def split_jobs(lines):
    """{name of a job: (its lines, its exit code or None where it did not end)}."""
    found, name = {}, None
    for line in lines:
        if line.startswith("== exit ") and name:
            found[name] = (found[name][0], int(line.split()[2]))
            name = None
        elif line.startswith("== "):
            name = line[3:]
            found[name] = ([], None)
        elif name:
            found[name][0].append(line)
    return found


# ---- what it means

def judge_tests(lines, code):
    """(passed, failed, notes) of one test program. A test that was skipped is a failure: here everything is present."""
    ends = [re.match(r"\[ +(OK|FAILED|SKIPPED) +\] \S+ .*\(\d+ ms\)$", line) for line in lines]
    passed, failed, skipped = (sum(1 for end in ends if end and end[1] == word) for word in ("OK", "FAILED", "SKIPPED"))
    notes = [end[0] for end in ends if end and end[1] != "OK"]
    if code is None:
        notes.append(f"did not end; last: {lines[-1] if lines else 'nothing'}")
    ended_wrong = not (failed + skipped) and (code != 0 or not passed)
    return passed, failed + skipped + ended_wrong, notes


def answers(lines):
    return [json.loads(line)["outputs"][0] for line in lines if line.startswith("{")]


def farthest(ours, theirs):
    """The largest difference of two lists of answers' log-probabilities; None: other tokens, or none at all."""
    if not ours or [a["token_ids"] for a in ours] != [b["token_ids"] for b in theirs]:
        return None
    pairs = [(x, y) for a, b in zip(ours, theirs) for x, y in zip(a["logprobs"], b["logprobs"])]
    return max((abs(x[key]["logprob"] - y[key]["logprob"]) for x, y in pairs for key in x if key in y), default=0.0)


def judge_answers(found):
    passed, failed, notes = 0, 0, []
    for kind, most in (("int8", SAME), ("bfloat16", NEAR)):
        ours, theirs = (answers(found.get(f"generate {kind} {level}", ([], None))[0]) for level in ("amx", "avx512_vnni"))
        difference = farthest(ours, theirs)
        good = difference is not None and difference <= most
        passed, failed = passed + good, failed + (not good)
        notes.append(f"generate {kind}: {'other tokens' if difference is None else f'same tokens, log-probabilities within {difference:.2g}'}")
    return passed, failed, notes


def main():
    parser = argparse.ArgumentParser(prog="./dev amx", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[*FILTERS, "generate", []], help="default: everything")
    parser.add_argument("--silence", type=float, default=3600, help="seconds without a line until the machine is given up")
    options = parser.parse_args()
    chosen = options.what or [*FILTERS, "generate"]
    machine.fetch()
    files = {}
    for name in chosen:
        files |= machine.program(BUILD / "transept" if name == "generate" else BUILD / "src" / name / f"{name}_test")
    listed = jobs(chosen)
    lines = machine.boot({**files, **(model_files() if "generate" in chosen else {})}, script_of(listed), options.silence, print)
    found = split_jobs(lines)
    results = [judge_tests(*found.get(name, ([], None))) for name in FILTERS if name in chosen]
    results += [judge_answers(found)] if "generate" in chosen else []
    for note in (note for result in results for note in result[2]):
        print(note)
    passed, failed = (sum(result[i] for result in results) for i in (0, 1))
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
