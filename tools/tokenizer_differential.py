#!/usr/bin/env python3
"""Compares our tokenizers with Hugging Face's tokenizers library, and our reading of SentencePiece models with the
sentencepiece library, on random texts and ids.

    tools/tokenizer_differential.py --binary build/release/src/text/families/tokenizer_probe --count 4000
    tools/tokenizer_differential.py --binary build/release/transept --models ../shared/models/whisper-tiny

Builds tokenizers of many shapes (tokenizer_cases.py, sentencepiece_cases.py) as tokenizer.json, as vocab.json +
merges.txt and as .model files, and takes those of --models (folders with a tokenizer.json, or .model and .spm files);
writes --count random texts, a quarter as many rows of ids, and --long texts of 100 kB to 1 MB for each; runs
`BINARY tokenize|detokenize|pieces MODEL --input FILE` (.model files need tokenizer_probe). Answers that differ for a
reason that explain() knows are counted under it. Exit code 1 if any differs for none.
"""

import argparse
import codecs
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import sentencepiece
from tokenizers import Tokenizer

import sentencepiece_cases
import tokenizer_cases as cases

CHUNK = 20000  # requests to one run of the binary
WORDS = sentencepiece_cases.CORPUS.split()
EVERY_CHARACTER = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def run(binary, verb, model, requests, folder):
    path = folder / "requests.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in requests))
    done = subprocess.run([binary, verb, str(model), "--input", str(path)], capture_output=True, text=True, check=False)
    # Not splitlines(): JSON strings may hold U+2028 and its kin as they are.
    answers = [json.loads(line) for line in done.stdout.split("\n") if line]
    if len(answers) != len(requests):
        sys.exit(f"{verb} {model}: {len(answers)} answers to {len(requests)} requests: {done.stderr[-2000:]}")
    return answers


codecs.register_error("each_byte", lambda error: ("\ufffd" * (error.end - error.start), error.end))
BYTES = re.compile("(?:<0x[0-9A-F]{2}>)+")


def decode_bytes(text):
    """`text` with runs of byte tokens as SentencePiece decodes them: one U+FFFD for each invalid byte."""
    return BYTES.sub(lambda run: bytes.fromhex(re.sub("0x|[<>]", "", run.group())).decode(errors="each_byte"), text)


def without_byte_fallback(oracle):
    """The tokenizer with byte tokens left as they are written."""
    written = json.loads(oracle.to_str())
    decoder = written["decoder"]
    if decoder is None or decoder["type"] != "Sequence":
        return None
    decoder["decoders"] = [d for d in decoder["decoders"] if d["type"] != "ByteFallback"]
    return Tokenizer.from_str(json.dumps(written))


def long_text(rng, random_text, assigned):
    """100 kB to 1 MB: letters, with spaces or none; words; or anything."""
    length = int(100_000 * 10 ** rng.random())
    kind = rng.randrange(4)
    if kind < 2:
        return sentencepiece_cases.long_text(length, seed=rng.randrange(2**31)).replace(" ", " " * kind)
    make = (lambda: rng.choice(WORDS)) if kind == 2 else (lambda: random_text(rng, assigned))
    parts, size = [], 0
    while size < length:
        parts.append(make())
        size += len(parts[-1].encode()) + 1
    return " ".join(parts)


class JsonCase:
    """A folder with a tokenizer.json (or older files) against Hugging Face's tokenizers."""

    def __init__(self, name, model, oracle, random_text):
        self.name, self.model, self.oracle, self.random_text = name, model, oracle, random_text
        self.decodable = cases.decodable_ids(oracle)
        self.without_bytes = without_byte_fallback(oracle)

    def texts(self, rng, count, assigned):
        return self.encode([{"id": str(i), "text": self.random_text(rng, assigned), "add_special_tokens": rng.random() < 0.5}
                            for i in range(count)])

    def long_texts(self, rng, count, assigned):
        return self.encode([{"id": str(i), "text": long_text(rng, self.random_text, assigned), "add_special_tokens": False}
                            for i in range(count)])

    def encode(self, requests):
        wanted = [self.oracle.encode(r["text"], add_special_tokens=r["add_special_tokens"]).ids for r in requests]
        return "tokenize", requests, [{"token_ids": ids} for ids in wanted]

    def rows(self, rng, count):
        requests = [{"id": str(i), "token_ids": cases.random_ids(rng, self.decodable),
                     "skip_special_tokens": rng.random() < 0.5} for i in range(count)]
        wanted = [self.oracle.decode(r["token_ids"], skip_special_tokens=r["skip_special_tokens"]) for r in requests]
        return "detokenize", requests, [{"text": text} for text in wanted]

    def explain(self, request, answer):
        if self.without_bytes is None or "text" in request:
            return None
        skip = request["skip_special_tokens"]
        as_written = self.without_bytes.decode(request["token_ids"], skip_special_tokens=skip)
        text = decode_bytes(as_written)
        if as_written.startswith("<0x20>") and "Strip" in str(self.without_bytes.decoder):
            text = text[1:]
        if "\ufffd" in text and answer.get("text") == text:
            return "byte tokens that are no UTF-8: the reference replaces all bytes of the run, we each invalid one"
        return None


class ModelCase:
    """A .model file against sentencepiece."""

    def __init__(self, name, model, random_text):
        self.name, self.model, self.random_text = name, model, random_text
        self.oracle = sentencepiece.SentencePieceProcessor(model_file=str(model))

    def texts(self, rng, count, _assigned):
        # The library asks no table what a character is, so there is no age of Unicode to agree on.
        return self.encode([{"id": str(i), "text": self.random_text(rng, EVERY_CHARACTER)} for i in range(count)])

    def long_texts(self, rng, count, _assigned):
        return self.encode([{"id": str(i), "text": long_text(rng, self.random_text, EVERY_CHARACTER)} for i in range(count)])

    def encode(self, requests):
        return "pieces", requests, [{"token_ids": self.oracle.encode(r["text"]),
                                     "tokens": self.oracle.encode(r["text"], out_type=str)} for r in requests]

    def rows(self, _rng, _count):
        return "pieces", [], []

    def explain(self, _request, _answer):
        return None


def batches(case, args, rng, assigned):
    for begin in range(0, args.count, CHUNK):
        size = min(CHUNK, args.count - begin)
        yield case.texts(rng, size, assigned)
        yield case.rows(rng, size // 4)
    yield case.long_texts(rng, args.long, assigned)


def compare(case, args, assigned, folder):
    rng = cases.seeded(f"{args.seed} {case.name}")
    explained = collections.Counter()
    wrong, num_texts, num_rows = [], 0, 0
    for verb, requests, wanted in batches(case, args, rng, assigned):
        answers = run(args.binary, verb, case.model, requests, folder) if requests else []
        for request, answer, want in zip(requests, answers, wanted):
            if all(answer.get(key) == value for key, value in want.items()):
                continue
            reason = case.explain(request, answer)
            if reason is None:
                wrong.append((request, answer, want))
            else:
                explained[reason] += 1
        num_texts += len(requests) if verb != "detokenize" else 0
        num_rows += len(requests) if verb == "detokenize" else 0
    print(f"{case.name:22} {num_texts} texts, {num_rows} rows of ids: {len(wrong)} differ", flush=True)
    for reason, count in explained.items():
        print(f"   and {count}: {reason}")
    for row in wrong[:args.show]:
        texts = [json.dumps(part) for part in row]
        print("\n".join(f"   {name} {text[:3000]}{'...' * (len(text) > 3000)}" for name, text in zip(("asked", "ours ", "want "), texts)))
    return num_texts, len(wrong), explained


def make_cases(folder, args):
    def add_json(name, oracle, random_text):
        model = folder / name
        model.mkdir()
        oracle.save(str(model / "tokenizer.json"))
        made.append(JsonCase(name, model, oracle, random_text))

    made = []
    for name, oracle in cases.configurations().items():
        add_json(name, oracle, cases.random_text)
    for name, oracle in sentencepiece_cases.configurations().items():
        add_json(name, oracle, sentencepiece_cases.random_text)
    for name, (files, oracle) in cases.file_configurations().items():
        model = folder / name
        model.mkdir()
        for file, text in files.items():
            (model / file).write_text(text)
        made.append(JsonCase(name, model, oracle, cases.random_text))
    if pathlib.Path(args.binary).name == "tokenizer_probe":
        for name, model in sentencepiece_cases.sentencepiece_models().items():
            path = folder / f"{name}.model"
            path.write_bytes(model)
            made.append(ModelCase(path.name, path, sentencepiece_cases.random_text))
    for path in args.models:
        name = f"{path.parent.name}/{path.name}"
        if path.suffix in (".model", ".spm"):
            made.append(ModelCase(name, path, sentencepiece_cases.random_text))
        else:
            oracle = Tokenizer.from_file(str(path / "tokenizer.json"))
            made.append(JsonCase(name, path, oracle, sentencepiece_cases.random_text))
    return [case for case in made if re.search(args.only, case.name)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--count", type=int, default=4000, help="texts for each tokenizer")
    parser.add_argument("--long", type=int, default=2, help="long texts for each tokenizer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=3, help="differences to print for each tokenizer")
    parser.add_argument("--only", default="", help="tokenizers whose name this regular expression finds")
    parser.add_argument("--models", nargs="*", type=pathlib.Path, default=[],
                        help="folders with a tokenizer.json, .model and .spm files")
    args = parser.parse_args()
    assigned = cases.assigned_characters()
    explained = collections.Counter()
    num_texts = wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for case in make_cases(folder, args):
            texts, differing, reasons = compare(case, args, assigned, folder)
            num_texts, wrong = num_texts + texts, wrong + differing
            explained += reasons
    for reason, count in explained.items():
        print(f"{count} explained: {reason}")
    print(f"{num_texts} texts: " + ("equal" if wrong == 0 else f"{wrong} differences"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
