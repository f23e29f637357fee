#!/usr/bin/env python3
"""Writes src/text/testdata/: small tokenizers and what Hugging Face's tokenizers library answers; and with the same
tokenizers the seeds of the fuzzer, tests/fuzz/tokenizer_fuzz/: a tokenizer.json in one line, then a text.

    tools/make_tokenizer_fixtures.py            # needs `pip install tokenizers sentencepiece`

tokenizers.jsonl: one tokenizer a line, {"name", "tokenizer": tokenizer.json, "encode": [[text, ids without special
tokens]], "special": [text, ids with them], "decode": [[ids, text]]}. A tokenizer that says "model": NAME has the model
of the line of that name. folders.jsonl: the same with {"files": {name: text}} for folders without a tokenizer.json, whose
vocab.json and merges.txt are the model of the first line of tokenizers.jsonl. sentencepiece.jsonl: tokenizers again, of
SentencePiece's families. models.jsonl: {"name", "model": a .model file in base64, "encode": [[text, pieces, ids]],
"long": [length of a long_text(), number of its ids, FNV-1a over them]}, by the sentencepiece library (0.2.2 or later:
before, long paths and user-defined symbols were scored otherwise); small ones of these are the seeds
tests/fuzz/sentencepiece_fuzz/: the length of a text in two bytes, the text, the file.
"""

import base64
import json
import pathlib

import sentencepiece
import sentencepiece_cases
import tokenizer_cases as cases

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "src" / "text" / "testdata"
SEEDS = ROOT / "tests" / "fuzz"
SEED_MODEL = {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "vocab": {
    "<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5, "ab": 6, "Ġ": 7, "Ġa": 8, "Ã": 9, "©": 10, "<0x41>": 11},
    "merges": ["a b", ["Ġ", "a"]]}
SEED_UNIGRAM = {"type": "Unigram", "unk_id": 3, "byte_fallback": True, "vocab": [
    ["<s>", 0], ["<pad>", 0], ["</s>", 0], ["<unk>", 0], ["▁", -2.5], ["a", -3], ["b", -3.25], ["▁a", -4], ["ab", -5.5],
    ["<0xC3>", -9], ["<0xA9>", -9]]}
# Texts for every tokenizer; random ones besides, as many as keep the files small.
TEXTS = ("", " ", "The quick brown fox, she'll say: don't!", "  two  spaces \n\n and\tlines\r\n", "naïve café cafe\u0301 ñ",
         "12 345 6789 ½ Ⅷ", "世界 こんにちは 👍🏽 \u200d", "word words <mask>  [L] [R] x <|x|>yy @@@@ NOcase CASE nocase low  x")


LONG = 200_000  # bytes: paths of the unigram models score some hundred thousand
SENTENCEPIECE_TEXTS = ("ﾊﾞﾊｶﾞﾞ e\u0301\u0323 \u1100\u1161\u11a8 ﬁ①½ﷺ", "▁▁x▁ y▁", "<0x41><s></s><unk><sep>aab the the ab", "\r\n a\u00ad\u0001b\u00a0\u3000c\u00a8",
                       "日本語 and the の 語 \ufffd\ufeff", "aaaaaaaa     bbbb")


def answers(tokenizer, name, more_texts=(), random_text=cases.random_text):
    rng = cases.seeded(name)
    letters = [c for c in cases.assigned_characters() if ord(c) < 0x3000]
    texts = [*TEXTS, *more_texts, *(random_text(rng, letters) for _ in range(2))]
    ids = cases.decodable_ids(tokenizer)
    rows = []
    while len(rows) < 2:
        row = cases.random_ids(rng, ids)
        # Of byte tokens that are no UTF-8 the reference replaces more than we do (tokenizer_differential.py).
        if "\ufffd" not in tokenizer.decode(row) or not more_texts:
            rows.append(row)
    return {
        "encode": [[text, tokenizer.encode(text, add_special_tokens=False).ids] for text in texts],
        "special": [TEXTS[2], tokenizer.encode(TEXTS[2]).ids],
        "decode": [[row, tokenizer.decode(row, skip_special_tokens=True)] for row in rows],
    }


def write_tokenizer_seeds():
    """Of the same shapes, but over a few tokens: small inputs are quickly tried."""
    folder = SEEDS / "tokenizer_fuzz"
    folder.mkdir(parents=True, exist_ok=True)
    for name, tokenizer in {**cases.configurations(), **sentencepiece_cases.configurations()}.items():
        written = json.loads(tokenizer.to_str())
        written["model"] = SEED_UNIGRAM if written["model"]["type"] == "Unigram" else SEED_MODEL
        # Every fourth of the added tokens: each seed has other rules.
        written["added_tokens"] = [t for t in written["added_tokens"] if t["id"] < 4 or (t["id"] + len(name)) % 4 == 0]
        text = json.dumps(written, ensure_ascii=False, separators=(",", ":"))
        (folder / name).write_text(f"{text}\nab {TEXTS[4]} {TEXTS[7]}")


def write_model_seeds():
    folder = SEEDS / "sentencepiece_fuzz"
    folder.mkdir(parents=True, exist_ok=True)
    text = f"ab {SENTENCEPIECE_TEXTS[0]} {SENTENCEPIECE_TEXTS[2]}".encode()
    for name, model in small_models().items():
        model = sentencepiece_cases.first_pieces(model, 300 if "bytes" in name else 40)
        (folder / name).write_bytes(len(text).to_bytes(2, "little") + text + model)


def small_models():
    """All but the one with the whole table of nmt_nfkc."""
    return {name: model for name, model in sentencepiece_cases.sentencepiece_models().items() if name != "unigram_nfkc"}


def write_tokenizers(path, tokenizers, **options):
    models = {}
    with open(path, "w") as out:
        for name, tokenizer in tokenizers.items():
            written = json.loads(tokenizer.to_str())
            key = json.dumps(written["model"], sort_keys=True)
            written["model"] = models.get(key, written["model"])
            models.setdefault(key, name)
            line = {"name": name, "tokenizer": written, **answers(tokenizer, name, **options)}
            out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def fnv1a(ids):
    value = 0xCBF29CE484222325
    for token in ids:
        value = (value ^ token) * 0x100000001B3 % 2**64
    return value


def write_models(path):
    long_text = sentencepiece_cases.long_text(LONG)
    with open(path, "w") as out:
        for name, model in small_models().items():
            processor = sentencepiece.SentencePieceProcessor(model_proto=model)
            rng = cases.seeded(name)
            letters = [c for c in cases.assigned_characters() if ord(c) < 0x3000]
            texts = [*TEXTS, *SENTENCEPIECE_TEXTS, *(sentencepiece_cases.random_text(rng, letters) for _ in range(4))]
            line = {"name": name, "model": base64.b64encode(model).decode(),
                    "encode": [[t, processor.encode(t, out_type=str), processor.encode(t)] for t in texts]}
            ids = processor.encode(long_text)
            line["long"] = [LONG, len(ids), f"{fnv1a(ids):016x}"]
            out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def main():
    write_tokenizer_seeds()
    write_model_seeds()
    FOLDER.mkdir(exist_ok=True)
    write_tokenizers(FOLDER / "tokenizers.jsonl", cases.configurations())
    write_tokenizers(FOLDER / "sentencepiece.jsonl", sentencepiece_cases.configurations(), more_texts=SENTENCEPIECE_TEXTS,
                     random_text=sentencepiece_cases.random_text)
    write_models(FOLDER / "models.jsonl")
    with open(FOLDER / "folders.jsonl", "w") as out:
        for name, (files, tokenizer) in cases.file_configurations().items():
            del files["vocab.json"], files["merges.txt"]
            line = {"name": name, "files": files, **answers(tokenizer, name)}
            out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
