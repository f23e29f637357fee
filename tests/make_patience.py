#!/usr/bin/env python3
"""Makes src/engine/testdata/patience.jsonl: what openai-whisper's beam search answers around a model that is a hash.

    .venv/bin/python tests/make_patience.py          # openai-whisper (20250625) with torch

The hash is make_decoding.py's. The obvious decoder of the engine's property tests is held against these answers. The
loop is DecodingTask's; the decoder, the filters and the ranker are openai-whisper's own. Answers with sequences of
probability zero, which it goes on with where nothing else is left, are left out.
"""
import json
import math
import random
from pathlib import Path
from types import SimpleNamespace

import torch
from make_decoding import VOCABULARY, scores
from whisper.decoding import ApplyTimestampRules, BeamSearchDecoder, MaximumLikelihoodRanker, SuppressTokens

OUT = Path(__file__).resolve().parent.parent / "src/engine/testdata/patience.jsonl"
NUM_CASES = 300
# Of the requests with timestamps: text, the end token, <|notimestamps|>, timestamps.
EOT, NO_TIMESTAMPS, TIMESTAMP_BEGIN = 4, 5, 6


def draw(rng):
    """A request in the names of SamplingParams."""
    eos = rng.randrange(VOCABULARY)
    request = {"encoder": [rng.randrange(VOCABULARY) for _ in range(rng.randint(1, 10))],
               "max_tokens": rng.randint(1, 12), "num_beams": rng.randint(2, 5),
               "patience": rng.choice([1.0, 1.0, 0.3, 0.5, 0.7, 1.5, 2.0, 2.5])}
    request["n"] = rng.randint(1, request["num_beams"])
    if rng.random() < 0.5:
        request["patience_length_penalty"] = rng.choice([0.0, 0.3, 0.6, 1.0])
    if rng.random() < 0.4:
        eos = EOT
        request["timestamp_rules"] = {"timestamp_begin": TIMESTAMP_BEGIN, "no_timestamps_token_id": NO_TIMESTAMPS,
                                      "eos_token_id": EOT}
        if rng.random() < 0.5:
            request["timestamp_rules"]["max_initial_timestamp_index"] = rng.randint(3, 6)
    elif rng.random() < 0.4:
        others = [token for token in range(VOCABULARY) if token != eos]
        request["suppress_tokens"] = rng.sample(others, rng.randint(1, 3))
    request["eos_token_ids"] = [eos]
    prompt = [token for token in range(VOCABULARY) if token != eos]  # the end token cuts what it is found in first
    request["decoder"] = [rng.choice(prompt) for _ in range(rng.randint(1, 4))]
    return request


def filters_of(request):
    filters = [SuppressTokens(request["suppress_tokens"])] if "suppress_tokens" in request else []
    if "timestamp_rules" in request:
        tokenizer = SimpleNamespace(no_timestamps=NO_TIMESTAMPS, timestamp_begin=TIMESTAMP_BEGIN, eot=EOT)
        filters.append(ApplyTimestampRules(tokenizer, len(request["decoder"]),
                                           request["timestamp_rules"].get("max_initial_timestamp_index")))
    return filters


def search(request):
    """Candidates of DecodingTask.run, as [(tokens with the end token if it came, sum of log-probabilities)]."""
    eot, width, begin = request["eos_token_ids"][0], request["num_beams"], len(request["decoder"])
    decoder = BeamSearchDecoder(width, eot, SimpleNamespace(rearrange_kv_cache=lambda _: None), request["patience"])
    decoder.reset()
    tokens = torch.tensor([request["decoder"]]).repeat(width, 1)
    sums = torch.zeros(width)
    for _ in range(request["max_tokens"]):
        logits = torch.tensor([scores(request["encoder"], row) for row in tokens.tolist()])
        for each in filters_of(request):
            each.apply(logits, tokens)
        tokens, completed = decoder.update(tokens, logits, sums)
        if completed or not torch.isfinite(sums).all():
            break
    ended = {sequence[begin:] for sequence in decoder.finished_sequences[0]}
    candidates, sums_of = decoder.finalize(tokens[None], sums[None])
    answers = []
    for candidate, total in zip(candidates[0], sums_of[0]):
        ids = tuple(candidate.tolist()[begin:])
        answers.append((list(ids if ids in ended else ids[:-1]), total))
    return answers, torch.isfinite(sums).all()


def rank(request, answers):
    """Best first: the ranker names the best of those that are left, again and again."""
    ranker, eot = MaximumLikelihoodRanker(request.get("patience_length_penalty")), request["eos_token_ids"][0]
    ordered, rest = [], list(answers)
    while rest:
        texts = [[token for token in ids if token != eot] for ids, _ in rest]
        best = int(ranker.rank([texts], [[total for _, total in rest]])[0])
        ordered.append(rest.pop(best))
    return ordered


def main():
    rng = random.Random(15)
    lines = []
    while len(lines) < NUM_CASES:
        try:
            request = draw(rng)
            answers, is_finite = search(request)
            if not is_finite or not all(math.isfinite(total) for _, total in answers):
                continue
            outputs = [{"token_ids": ids, "sum": round(total, 6)} for ids, total in rank(request, answers)]
        except (AssertionError, ZeroDivisionError):
            continue  # no room for any candidate; an answer without a token
        lines.append(json.dumps(request | {"outputs": outputs[: request["n"]]}))
    OUT.write_text("\n".join(lines) + "\n")
    print(f"{OUT.name}: {len(lines)} requests")


if __name__ == "__main__":
    main()
