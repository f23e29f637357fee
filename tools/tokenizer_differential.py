#!/usr/bin/env python3
"""Compares our tokenizers with Hugging Face's tokenizers library on random texts and ids.

    tools/tokenizer_differential.py --binary build/release/src/text/tokenizer_probe --count 4000
    tools/tokenizer_differential.py --binary build/release/transept --models ../shared/models/whisper-tiny

Builds tokenizers of many shapes (tokenizer_cases.py), as tokenizer.json and as vocab.json + merges.txt, and takes those of --models; writes --count random texts and rows
of ids for each, and runs `BINARY tokenize|detokenize MODEL --input FILE`. Exit code 1 if any answer differs.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer

import tokenizer_cases as cases


def run(binary, verb, model, requests, folder):
    path = folder / "requests.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in requests))
    done = subprocess.run([binary, verb, str(model), "--input", str(path)], capture_output=True, text=True, check=False)
    # Not splitlines(): JSON strings may hold U+2028 and its kin as they are.
    answers = [json.loads(line) for line in done.stdout.split("\n") if line]
    if len(answers) != len(requests):
        sys.exit(f"{verb} {model}: {len(answers)} answers to {len(requests)} requests: {done.stderr[-2000:]}")
    return answers


def compare(name, binary, model, oracle, args, rng, assigned, folder):
    texts = [{"id": str(i), "text": cases.random_text(rng, assigned), "add_special_tokens": rng.random() < 0.5}
             for i in range(args.count)]
    wrong = []
    for request, answer in zip(texts, run(binary, "tokenize", model, texts, folder)):
        want = oracle.encode(request["text"], add_special_tokens=request["add_special_tokens"]).ids
        if answer.get("token_ids") != want:
            wrong.append((request, answer, want))
    decodable = cases.decodable_ids(oracle)
    rows = [{"id": str(i), "token_ids": cases.random_ids(rng, decodable),
             "skip_special_tokens": rng.random() < 0.5} for i in range(args.count // 4)]
    for request, answer in zip(rows, run(binary, "detokenize", model, rows, folder)):
        want = oracle.decode(request["token_ids"], skip_special_tokens=request["skip_special_tokens"])
        if answer.get("text") != want:
            wrong.append((request, answer, want))
    print(f"{name:20} {len(texts)} texts, {len(rows)} rows of ids: {len(wrong)} differ", flush=True)
    for request, answer, want in wrong[:args.show]:
        print("  ", json.dumps(request), "\n     ours", json.dumps(answer), "\n     want", json.dumps(want))
    return len(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--count", type=int, default=4000, help="texts for each tokenizer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=3, help="differences to print for each tokenizer")
    parser.add_argument("--only", default="", help="tokenizers whose name holds this")
    parser.add_argument("--models", nargs="*", type=pathlib.Path, default=[], help="folders with a tokenizer.json")
    args = parser.parse_args()
    assigned = cases.assigned_characters()
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        made = []
        for name, oracle in cases.configurations().items():
            model = folder / name
            model.mkdir()
            oracle.save(str(model / "tokenizer.json"))
            made.append((name, model, oracle))
        for name, (files, oracle) in cases.file_configurations().items():
            model = folder / name
            model.mkdir()
            for file, text in files.items():
                (model / file).write_text(text)
            made.append((name, model, oracle))
        made += [(m.name, m, Tokenizer.from_file(str(m / "tokenizer.json"))) for m in args.models]
        for name, model, oracle in made:
            if args.only in name:
                rng = cases.seeded(f"{args.seed} {name}")
                wrong += compare(name, args.binary, model, oracle, args, rng, assigned, folder)
    print("equal" if wrong == 0 else f"{wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
