#!/usr/bin/env python3
"""Makes src/sampling/testdata/timestamp_rules.jsonl: which tokens Whisper's rules for timestamps leave.

    .venv/bin/python tests/make_timestamp_rules.py     # transformers and openai-whisper (20250625) with torch

Random logits and histories over a small vocabulary in Whisper's order: text, end, special tokens, <|notimestamps|>,
timestamps. transformers' WhisperTimeStampLogitsProcessor and openai-whisper's ApplyTimestampRules must agree on every
row, each row is decided by a gap, and each rule decides enough rows by itself.
"""
import json
import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import torch
import transformers
from transformers.generation.logits_process import WhisperTimeStampLogitsProcessor
from whisper.decoding import ApplyTimestampRules

OUT = Path(__file__).resolve().parent.parent / "src/sampling/testdata/timestamp_rules.jsonl"
EOT, NO_TIMESTAMPS, BEGIN, VOCABULARY = 8, 12, 13, 33
NUM_CASES = 240
MIN_GAP = 0.02


def history(rng):
    """Generated tokens: mostly as the rules would have them, sometimes not (a prefix that is forced)."""
    if rng.random() < 0.12:
        return []
    if rng.random() < 0.3:
        return [rng.randrange(VOCABULARY) for _ in range(rng.randint(1, 6))]
    ids, time = [], BEGIN + rng.randint(0, 4)
    while len(ids) < 10:
        ids.append(time)
        ids += [rng.randrange(EOT) for _ in range(rng.randint(1, 3))]
        time = min(time + rng.randint(0, 6), VOCABULARY - 1)
        ids.append(time)
    return ids[: rng.randint(1, 10)]


def draw(rng):
    logits = [rng.randrange(-64, 64) for _ in range(VOCABULARY)]  # / 16
    if rng.random() < 0.5:
        logits[rng.randrange(BEGIN)] += 70  # one text token that outweighs the timestamps
    case = {"generated": history(rng), "logits": logits,
            "suppressed": rng.sample(range(EOT + 1), rng.randint(0, 4)) if rng.random() < 0.5 else []}
    if rng.random() < 0.7:
        case["max_initial_timestamp_index"] = rng.randint(0, 6)
    return case


def transformers_rules(case, scores, prompt, weigh=True):
    config = SimpleNamespace(no_timestamps_token_id=NO_TIMESTAMPS, eos_token_id=EOT, bos_token_id=None,
                             max_initial_timestamp_index=case.get("max_initial_timestamp_index"))
    rules = WhisperTimeStampLogitsProcessor(config, len(prompt), _detect_timestamp_from_logprob=weigh)
    return rules(torch.tensor([prompt + case["generated"]]), scores)


def openai_rules(case, scores, prompt):
    tokenizer = SimpleNamespace(no_timestamps=NO_TIMESTAMPS, timestamp_begin=BEGIN, eot=EOT)
    rules = ApplyTimestampRules(tokenizer, len(prompt), case.get("max_initial_timestamp_index"))
    scores = scores.clone()
    rules.apply(scores, torch.tensor([prompt + case["generated"]]))
    return scores


def left(scores):
    return [token for token, score in enumerate(scores[0].tolist()) if score > -float("inf")]


def gap(scores):
    logprobs = torch.log_softmax(scores, -1)[0]
    return abs((logprobs[BEGIN:].logsumexp(-1) - logprobs[:BEGIN].max()).item())


def decided_by(case, before, unweighed, after):
    """Names of the rules that took something from the row."""
    gone, generated = set(before) - set(after), case["generated"]
    if not generated:
        yield "begins with a timestamp"
        if "max_initial_timestamp_index" in case and max(gone) >= BEGIN:
            yield "the first timestamp is early"
    elif generated[-1] >= BEGIN:
        paired = len(generated) < 2 or generated[-2] >= BEGIN
        yield "no third timestamp" if paired else "no text between"
    if generated and generated[-1] < BEGIN and any(BEGIN <= token <= max(generated) for token in gone):
        yield "later than the last"
    if unweighed != after:
        yield "timestamps outweigh text"


def main():
    rng = random.Random(14)
    lines, rules = [], Counter()
    while len(lines) < NUM_CASES:
        case = draw(rng)
        prompt = [rng.randrange(VOCABULARY) for _ in range(rng.randint(1, 5))]  # whatever: timestamps too
        scores = torch.tensor([case["logits"]], dtype=torch.float32) / 16
        scores[0, case["suppressed"]] = -float("inf")
        unweighed = transformers_rules(case, scores, prompt, weigh=False)
        if unweighed[0, :BEGIN].max() > -float("inf") and unweighed[0, BEGIN:].max() > -float("inf"):
            if gap(unweighed) < MIN_GAP:
                continue
        after = left(transformers_rules(case, scores, prompt))
        assert after == left(openai_rules(case, scores, prompt)), case
        lines.append(json.dumps(case | {"left": after}))
        rules.update(decided_by(case, left(scores), left(unweighed), after))
    assert len(rules) == 6 and min(rules.values()) >= 12, rules
    OUT.write_text("\n".join(lines) + "\n")
    print(f"{OUT.name}: {len(lines)} rows by transformers {transformers.__version__}; {dict(rules)}")


if __name__ == "__main__":
    main()
