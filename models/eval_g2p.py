#!/usr/bin/env python3
"""Score the saved g2p model on the words held out by lemma.

    python models/eval_g2p.py                  # the whole dev and test parts
    python models/eval_g2p.py "encoder decoder"    # show what it says instead

Loads the fp16 checkpoint with transformers, widens it to fp32 and decodes
greedily. PER is the edit distance over phonemes to the nearest of the word's
listed pronunciations, summed, over the summed length of those; WER is the
share of words that equal none of them. Both with and without stress. The test
words are also scored joined into phrases of 2, 5 and 10 words.
"""

import argparse
import json
import random
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import BartForConditionalGeneration

from g2p_phonemes import split_ipa, without_stress


def load_tokenizer(folder):
    """The plain `tokenizers` object of a model folder."""
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


@torch.no_grad()
def transcribe(model, tokenizer, texts, batch_size=256):
    """Greedy output ids of each text, without the start, end and pad tokens."""
    model.eval()
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    answers = [None] * len(texts)
    for at in range(0, len(order), batch_size):
        part = order[at:at + batch_size]
        rows = [tokenizer.encode(texts[i]).ids for i in part]
        width = max(map(len, rows))
        pad = model.config.pad_token_id
        source = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
        out = model.generate(
            input_ids=source, attention_mask=(source != pad).long(), num_beams=1,
            do_sample=False, max_length=model.config.max_position_embeddings)
        for i, row in zip(part, out.tolist()):
            answers[i] = [t for t in row if t > 3]
    return answers


def edit_distance(a, b):
    """Levenshtein distance of two sequences."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


def nearest(said, references):
    """(edits, length) of the reference with the lowest error rate."""
    return min(((edit_distance(said, r), len(r)) for r in references),
               key=lambda pair: (pair[0] / pair[1], pair[0]))


def score(said, references):
    """Error rates in percent of phoneme lists against lists of alternatives."""
    totals = {"": [0, 0, 0], "_no_stress": [0, 0, 0]}
    for phones, options in zip(said, references):
        for name, fold in (("", list), ("_no_stress", without_stress)):
            edits, length = nearest(fold(phones), [fold(o) for o in options])
            for i, value in enumerate((edits, length, edits > 0)):
                totals[name][i] += value
    result = {"words": len(said)}
    for name, (edits, length, wrong) in totals.items():
        result["per" + name] = 100 * edits / length
        result["wer" + name] = 100 * wrong / len(said)
    return result


def evaluate(model, tokenizer, words, part):
    """Scores of the model on a list of words; `words` has the pronunciations."""
    said = [split_ipa(tokenizer.decode(ids)) for ids in transcribe(model, tokenizer, part)]
    return score(said, [[split_ipa(p) for p in words[w]] for w in part])


def evaluate_phrases(model, tokenizer, words, part, length, seed):
    """Scores of the same words said `length` at a time (at most 112 letters).

    A phrase that comes out with another number of words counts every one of
    its words as said wrong, with nothing said.
    """
    order = part[:]
    random.Random(seed).shuffle(order)
    phrases = [[]]
    for word in order:
        if len(phrases[-1]) == length or len(" ".join(phrases[-1] + [word])) > 112:
            phrases.append([])
        phrases[-1].append(word)
    texts = [" ".join(phrase) for phrase in phrases]
    said = []
    for phrase, ids in zip(phrases, transcribe(model, tokenizer, texts)):
        pieces = tokenizer.decode(ids).split(" ")
        whole = len(pieces) == len(phrase)
        said += [split_ipa(p) for p in pieces] if whole else [[] for _ in phrase]
    return score(said, [[split_ipa(p) for p in words[w]] for w in order])


def print_scores(name, s):
    print(f"{name} {s['words']} words: PER {s['per']:.2f} % WER {s['wer']:.2f} % with stress; "
          f"PER {s['per_no_stress']:.2f} % WER {s['wer_no_stress']:.2f} % without", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="*", help="texts to transcribe instead of scoring")
    parser.add_argument("--model", type=Path, default=Path(__file__).resolve().parent / "g2p")
    parser.add_argument("--seed", type=int, default=20240229, help="seed of the split")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print the scores as JSON too")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model = BartForConditionalGeneration.from_pretrained(args.model, dtype=torch.float32)
    tokenizer = load_tokenizer(args.model)
    if args.text:
        for text, ids in zip(args.text, transcribe(model, tokenizer, args.text)):
            print(f"{text}\t{tokenizer.decode(ids)}\t{ids}")
        return
    from g2p_data import read_cmudict, split_by_lemma   # needs CMUdict, showing text does not
    words = read_cmudict()
    parts = split_by_lemma(words, args.seed)
    pairs = [line.split("\t") for line in
             (args.model / "words_test.tsv").read_text().splitlines()]
    results = {name: evaluate(model, tokenizer, words, parts[name]) for name in ("dev", "test")}
    results["words_test.tsv"] = evaluate(model, tokenizer, {w: p.split(" / ") for w, p in pairs},
                                         [w for w, _ in pairs])
    for length in (2, 5, 10):
        results[f"test, {length} words at a time,"] = evaluate_phrases(
            model, tokenizer, words, parts["test"], length, args.seed)
    for name, scores in results.items():
        print_scores(name, scores)
    if args.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
