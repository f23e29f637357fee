#!/usr/bin/env python3
"""Encoding speed of the tokenizers beside Hugging Face's tokenizers and sentencepiece, one thread each.

    .venv/bin/python bench/compare_tokenizers.py [--rounds 5]

Trains vocabularies of published sizes' kind on this repository's own texts (tools/sentencepiece_cases.py has the shapes), kept
in .cache/bench/tokenizers, and encodes the same texts with both: lines as they stand in the documents, all of it in one line
of a megabyte, and a megabyte without a space. Rounds alternate; medians, with the range. Both must give as many
ids (which ones is for tools/tokenizer_differential.py). Needs sentencepiece 0.2.2 or later: before, long paths were scored
otherwise. tokenizers runs encode_batch_fast, which keeps no offsets: its fastest way.
"""
import argparse
import io
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import sentencepiece  # noqa: E402
import tokenizers  # noqa: E402
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import sentencepiece_cases  # noqa: E402

FOLDER = ROOT / ".cache" / "bench" / "tokenizers"
BENCH = ROOT / "build" / "release" / "src" / "text" / "families" / "text_families_bench"


def repository_lines():
    paths = subprocess.run(["git", "ls-files", "*.md", "*.h", "*.cc", "*.py", "*.txt"], cwd=ROOT, capture_output=True, text=True,
                           check=True).stdout.split()
    lines = [line.strip() for path in paths for line in (ROOT / path).read_text(errors="replace").split("\n")]
    return [line for line in lines if len(line) > 20]


def write_texts(lines):
    megabyte = " ".join(lines * (1 + 1_000_000 // sum(map(len, lines))))[:1_000_000]
    rng = random.Random(1)
    texts = {"lines": "\n".join(lines), "one line of a megabyte": megabyte,
             "a megabyte without a space": "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(1_000_000))}
    written = {}
    for name, text in texts.items():
        written[name] = FOLDER / (name.replace(" ", "_") + ".txt")
        written[name].write_text(text)
    return written


def train(lines, model_type, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, model_type=model_type, vocab_size=16000, num_threads=1,
        normalization_rule_name="nmt_nfkc", minloglevel=2, hard_vocab_limit=False, pad_id=3, **options)
    return model.getvalue()


def make_models(lines):
    """{name: folder of a tokenizer.json, or .model file}; made once."""
    paths = {"t5 (Unigram, tokenizer.json)": FOLDER / "t5", "nllb (BPE, tokenizer.json)": FOLDER / "nllb",
             "gpt2 (byte-level BPE, tokenizer.json)": FOLDER / "gpt2", "unigram.model": FOLDER / "unigram.model",
             "bpe.model": FOLDER / "bpe.model"}
    if all(path.exists() for path in paths.values()):
        return paths
    unigram = train(lines, "unigram")
    paths["unigram.model"].write_bytes(unigram)
    paths["bpe.model"].write_bytes(train(lines, "bpe"))
    normalizer = normalizers.Sequence([normalizers.Precompiled(sentencepiece_cases.charsmap(unigram)),
                                       normalizers.Strip(False, True), normalizers.Replace(Regex(" {2,}"), "▁")])
    bpe = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    gpt2 = Tokenizer(models.BPE())
    for tokenizer, before in ((bpe, pre_tokenizers.Metaspace()), (gpt2, pre_tokenizers.ByteLevel(add_prefix_space=False))):
        tokenizer.pre_tokenizer = before
        tokenizer.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=16000, special_tokens=["<unk>"], show_progress=False))
    t5 = Tokenizer(sentencepiece_cases.unigram(unigram))
    t5.pre_tokenizer = pre_tokenizers.Metaspace()
    for tokenizer in (t5, bpe):
        tokenizer.normalizer, tokenizer.decoder = normalizer, decoders.Metaspace()
    gpt2.decoder = decoders.ByteLevel()
    for folder, tokenizer in (("t5", t5), ("nllb", bpe), ("gpt2", gpt2)):
        (FOLDER / folder).mkdir(exist_ok=True)
        tokenizer.save(str(FOLDER / folder / "tokenizer.json"))
    return paths


def reference(path):
    """encode(lines) -> number of ids."""
    if path.is_dir():
        tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        return lambda lines: sum(len(e.ids) for e in tokenizer.encode_batch_fast(lines, add_special_tokens=False))
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return lambda lines: sum(map(len, processor.encode(lines, num_threads=1)))


def ours(path, text):
    """(seconds, number of ids)."""
    environment = {**os.environ, "TRANSEPT_BENCH_TOKENIZER": str(path), "TRANSEPT_BENCH_TEXT": str(text)}
    done = subprocess.run([str(BENCH), "--benchmark_filter=encode_file", "--benchmark_format=json", "--benchmark_min_time=0.3"],
                          env=environment, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)["benchmarks"][0]
    if result.get("error_occurred"):
        sys.exit(f"{path}: {result['error_message']}")
    return result["real_time"] / 1e3, int(result["ids"])


def measure(path, text, encode, rounds):
    lines = text.read_text().split("\n")
    encode(lines)
    own, peer = [], []
    for _ in range(rounds):
        seconds, num_ids = ours(path, text)
        own.append(seconds)
        start = time.perf_counter()
        wanted = encode(lines)
        peer.append(time.perf_counter() - start)
        if num_ids != wanted:
            sys.exit(f"{path}: {num_ids} ids instead of {wanted}")
    return own, peer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = repository_lines()
    texts, paths = write_texts(lines), make_models(lines)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    print(f"commit {commit}, tokenizers {tokenizers.__version__}, sentencepiece {sentencepiece.__version__}, 1 thread, {rounds} rounds")
    print(f"{'tokenizer':38} {'text':28} {'MB/s':>7} {'reference':>10} {'ratio':>6}  range of ratios")
    slower = 0
    for name, path in paths.items():
        encode = reference(path)
        for text_name, text in texts.items():
            own, peer = measure(path, text, encode, rounds)
            megabytes = text.stat().st_size / 1e6
            ratios = sorted(b / a for a, b in zip(own, peer))
            slower += statistics.median(ratios) < 1
            print(f"{name:38} {text_name:28} {megabytes / statistics.median(own):7.2f} {megabytes / statistics.median(peer):10.2f} "
                  f"{statistics.median(ratios):6.2f}  {ratios[0]:.2f} to {ratios[-1]:.2f}", flush=True)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
