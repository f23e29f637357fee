#!/usr/bin/env python3
"""./dev demo: the bundled model turns spelling into pronunciation; then 2,000 words that it was not trained on.

Everything shown comes from runs of build/release/transept, right now, on this machine.
"""
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from repo import ROOT

BINARY = ROOT / "build" / "release" / "transept"
WORDS = ROOT / "models" / "g2p" / "words_test.tsv"
CHOSEN = ["encoder decoder", "transept", "tomato", "thoroughly unpronounceable"]
AMBIGUOUS = "envelope"
PHONEME = re.compile("[ˈˌ]?(?:aɪ|aʊ|eɪ|oʊ|oɪ|.)")  # a stress mark belongs to the vowel behind it
COLOURS = {"bold": "1", "dim": "2", "green": "32", "cyan": "36"}
IS_TERMINAL = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def paint(text, colour):
    return f"\033[{COLOURS[colour]}m{text}\033[0m" if IS_TERMINAL else text


def heading(text):
    print(f"\n{paint(text, 'bold')}\n")


def generate(requests, *flags, progress=False):
    """Results of one run of the binary, and its statistics."""
    with tempfile.TemporaryDirectory() as scratch:
        source, output, stats = (Path(scratch) / name for name in ("in.jsonl", "out.jsonl", "stats.json"))
        source.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in requests), encoding="utf-8")
        command = [str(BINARY), "generate", "g2p", "--input", str(source), "--output", str(output), "--stats-json", str(stats),
                   "--log-level", "warning", *flags]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=None if progress else subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"demo: {' '.join(command[:3])} failed with exit code {done.returncode}\n{done.stderr or ''}")
        results = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
        return results, json.loads(stats.read_text(encoding="utf-8"))


# ---- words one by one

def show_words(words):
    heading("Spelling in, pronunciation out")
    results, _ = generate([{"prompt": word} for word in words])
    width = max(map(len, words))
    for word, result in zip(words, results):
        best = result["outputs"][0]
        probability = math.exp(best["cumulative_logprob"])
        print(f"  {word:<{width}}  {paint(best['text'], 'green')}  {paint(f'probability {probability:.2f}', 'dim')}")


def show_samples(word):
    heading(f"Three samples of “{word}”, and how sure the model was of each phoneme")
    request = {"prompt": word, "n": 3, "temperature": 1.2, "top_p": 0.95, "seed": 5, "logprobs": 0}
    results, _ = generate([request])
    for sample in results[0]["outputs"]:
        print(f"  {paint(sample['text'], 'green')}  {paint('log-probability %.2f' % sample['cumulative_logprob'], 'dim')}")
        pieces = [next(iter(entry.values())) for entry in sample["logprobs"]]
        print("  " + paint("  ".join(f"{p['decoded_token'].strip() or '␣'} {math.exp(p['logprob']):.2f}" for p in pieces), "dim"))


def show_beams(word):
    heading(f"The three best of six beams for “{word}”, and the letter that each phoneme of the best looks at")
    request = {"prompt": word, "num_beams": 6, "n": 3, "return_alignments": True, "logprobs": 0}
    results, _ = generate([request])
    for beam in results[0]["outputs"]:
        print(f"  {paint(beam['text'], 'green')}  {paint('log-probability %.2f' % beam['cumulative_logprob'], 'dim')}")
    best, letters = results[0]["outputs"][0], ["", *word, ""]  # between the two special tokens; an English letter is one token
    if len(letters) != len(results[0]["encoder_prompt_token_ids"]):
        return
    pieces = [next(iter(entry.values()))["decoded_token"] for entry in best["logprobs"]]
    print("  " + paint("  ".join(f"{piece} {letters[at]}" for piece, at in zip(pieces, best["alignments"]) if letters[at].strip()
                                 and piece.strip() and not piece.startswith("<")), "dim"))


# ---- the held-out words

def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        diagonal, row[0] = row[0], i + 1
        for j, y in enumerate(b):
            diagonal, row[j + 1] = row[j + 1], min(diagonal + (x != y), row[j] + 1, row[j + 1] + 1)
    return row[-1]


def error_rates(answers, pronunciations):
    """(share of words that match none of their pronunciations, phoneme edits over phonemes of the nearest one)."""
    wrong = edits = length = 0
    for answer, accepted in zip(answers, pronunciations):
        wrong += answer not in accepted
        phonemes = PHONEME.findall(answer)
        nearest = min((PHONEME.findall(text) for text in accepted), key=lambda wanted: edit_distance(phonemes, wanted))
        edits += edit_distance(phonemes, nearest)
        length += len(nearest)
    return wrong / len(answers), edits / length


def show_batch():
    rows = [line.split("\t") for line in WORDS.read_text(encoding="utf-8").splitlines()]
    heading(f"{len(rows):,} words held out from training, all at once")
    results, stats = generate([{"prompt": word} for word, _ in rows], progress=True)
    answers = [result["outputs"][0]["text"] for result in results]
    word_errors, phoneme_errors = error_rates(answers, [known.split(" / ") for _, known in rows])
    print(f"  {paint('%.0f tokens/s' % stats['tokens_per_s'], 'green')}, {len(rows) / stats['step_seconds']:.0f} words/s: "
          f"{stats['generated_tokens']:,} tokens in {stats['step_seconds']:.2f} s, {stats['num_steps']} steps of up to "
          f"{stats['max_running_seqs']} words")
    print(f"  {paint('word error rate %.1f %%' % (100 * word_errors), 'green')}, phoneme error rate {100 * phoneme_errors:.1f} %, "
          "stress included, against CMUdict")
    print("  " + paint(f"{stats['isa']} kernels, {stats['threads']} threads, {stats['dtype']}, "
                       f"peak memory {stats['peak_rss_bytes'] / 2**20:.0f} MiB", "dim"))
    return rows, answers


def show_mistakes(rows, answers, count=4):
    mistakes = [(word, answer, known) for (word, known), answer in zip(rows, answers) if answer not in known.split(" / ")]
    if mistakes:
        print("\n  " + paint("some that differ from the dictionary:", "dim"))
    step = max(1, len(mistakes) // count)
    for word, answer, known in mistakes[::step][:count]:
        print(f"  {word:<16} {answer}  {paint('dictionary: ' + known, 'dim')}")


def main():
    if not BINARY.exists() or not WORDS.exists():
        sys.exit("demo: this needs build/release/transept and models/g2p; run ./dev demo")
    words = sys.argv[1:] or CHOSEN
    print(paint("Transept", "bold") + ": a transformer with an encoder and a decoder, trained for this repository (models/g2p)")
    show_words(words)
    show_samples(words[0] if sys.argv[1:] else AMBIGUOUS)
    show_beams(words[0] if sys.argv[1:] else AMBIGUOUS)
    show_mistakes(*show_batch())
    heading("Type next")
    print("  " + paint('build/release/transept generate g2p "any words of yours"', "cyan") + "\n")


if __name__ == "__main__":
    main()
