#!/usr/bin/env python3
"""Writes src/text/testdata/: small tokenizers and what Hugging Face's tokenizers library answers; and with the same
tokenizers the seeds of the fuzzer, tests/fuzz/tokenizer_fuzz/: a tokenizer.json in one line, then a text.

    tools/make_tokenizer_fixtures.py            # needs `pip install tokenizers`

tokenizers.jsonl: one tokenizer a line, {"name", "tokenizer": tokenizer.json, "encode": [[text, ids without special
tokens]], "special": [text, ids with them], "decode": [[ids, text]]}. A tokenizer that says "model": NAME has the model
of the line of that name. folders.jsonl: the same with {"files": {name: text}} for folders without a tokenizer.json, whose
vocab.json and merges.txt are the model of the first line of tokenizers.jsonl.
"""

import json
import pathlib

import tokenizer_cases as cases

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "src" / "text" / "testdata"
SEEDS = ROOT / "tests" / "fuzz" / "tokenizer_fuzz"
SEED_MODEL = {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "vocab": {
    "<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5, "ab": 6, "Ġ": 7, "Ġa": 8, "Ã": 9, "©": 10, "<0x41>": 11},
    "merges": ["a b", ["Ġ", "a"]]}
# Texts for every tokenizer; random ones besides, as many as keep the files small.
TEXTS = ("", " ", "The quick brown fox, she'll say: don't!", "  two  spaces \n\n and\tlines\r\n", "naïve café cafe\u0301 ñ",
         "12 345 6789 ½ Ⅷ", "世界 こんにちは 👍🏽 \u200d", "word words <mask>  [L] [R] x <|x|>yy @@@@ NOcase CASE nocase low  x")


def answers(tokenizer, name):
    rng = cases.seeded(name)
    letters = [c for c in cases.assigned_characters() if ord(c) < 0x3000]
    texts = [*TEXTS, *(cases.random_text(rng, letters) for _ in range(2))]
    rows = [cases.random_ids(rng, cases.decodable_ids(tokenizer)) for _ in range(2)]
    return {
        "encode": [[text, tokenizer.encode(text, add_special_tokens=False).ids] for text in texts],
        "special": [TEXTS[2], tokenizer.encode(TEXTS[2]).ids],
        "decode": [[row, tokenizer.decode(row, skip_special_tokens=True)] for row in rows],
    }


def write_seeds():
    """Of the same shapes, but over a few tokens: small inputs are quickly tried."""
    SEEDS.mkdir(parents=True, exist_ok=True)
    for name, tokenizer in cases.configurations().items():
        written = {**json.loads(tokenizer.to_str()), "model": SEED_MODEL}
        # Every fourth of the added tokens: each seed has other rules.
        written["added_tokens"] = [t for t in written["added_tokens"] if t["id"] < 4 or (t["id"] + len(name)) % 4 == 0]
        text = json.dumps(written, ensure_ascii=False, separators=(",", ":"))
        (SEEDS / name).write_text(f"{text}\nab {TEXTS[4]} {TEXTS[7]}")


def main():
    write_seeds()
    FOLDER.mkdir(exist_ok=True)
    models = {}
    with open(FOLDER / "tokenizers.jsonl", "w") as out:
        for name, tokenizer in cases.configurations().items():
            written = json.loads(tokenizer.to_str())
            key = json.dumps(written["model"], sort_keys=True)
            written["model"] = models.get(key, written["model"])
            models.setdefault(key, name)
            line = {"name": name, "tokenizer": written, **answers(tokenizer, name)}
            out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
    with open(FOLDER / "folders.jsonl", "w") as out:
        for name, (files, tokenizer) in cases.file_configurations().items():
            del files["vocab.json"], files["merges.txt"]
            line = {"name": name, "files": files, **answers(tokenizer, name)}
            out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
