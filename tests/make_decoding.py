#!/usr/bin/env python3
"""Makes src/engine/testdata/decoding.jsonl: what transformers' own generate answers around a model that is a hash.

    .venv/bin/python tests/make_decoding.py          # torch and transformers as for make_models.py

The hash is fake_scores of src/rank/fake_model_executor_testing.h. The obvious decoder of the property tests is held against
these answers, so that what it calls right is right. Drawn requests use what transformers can express: greedy and beams,
penalties, bans, forced tokens, minimum length. Answers with a filler of probability zero (transformers fills missing
beams with them) are left out.
"""
import json
import random
from pathlib import Path

import torch
import transformers
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

OUT = Path(__file__).resolve().parent.parent / "src/engine/testdata/decoding.jsonl"
VOCABULARY = 13
START = 0  # generate puts decoder_start before prompts that do not begin with it
NUM_CASES = 300
MASK = (1 << 64) - 1


def mix(state, value):
    state = ((state ^ value) * 0x9E3779B97F4A7C15) & MASK
    return state ^ (state >> 29)


def encoded(tokens, position):
    state = 7
    for token in tokens:
        state = mix(state, token)
    return mix(state, position)


def scores(encoder, decoder):
    state = 1
    for i in range(len(encoder)):
        state = mix(state, encoded(encoder, i))
    for i, token in enumerate(decoder):
        state = mix(state, token << 32 | i)
    return [(mix(mix(state, token), token) >> 40) / 2.0**21 - 4 for token in range(VOCABULARY)]


class FakeModel(transformers.BartForConditionalGeneration):
    """Asks the hash; only generate is transformers'."""

    def forward(self, decoder_input_ids=None, encoder_outputs=None, **_):
        rows = [scores(self.encoder_ids, row) for row in decoder_input_ids.tolist()]
        return Seq2SeqLMOutput(logits=torch.tensor(rows, dtype=torch.float32)[:, None],
                               encoder_last_hidden_state=encoder_outputs.last_hidden_state)


def make_model():
    config = transformers.BartConfig(
        vocab_size=VOCABULARY, d_model=4, encoder_layers=1, decoder_layers=1, encoder_attention_heads=1,
        decoder_attention_heads=1, encoder_ffn_dim=4, decoder_ffn_dim=4, max_position_embeddings=64, pad_token_id=None,
        bos_token_id=None, eos_token_id=None, decoder_start_token_id=START, forced_eos_token_id=None)
    return FakeModel(config).eval()


def tokens(rng, least, most):
    return [rng.randrange(VOCABULARY) for _ in range(rng.randint(least, most))]


def draw(rng):
    """A request in the names of SamplingParams, as far as it is not the default's."""
    request = {"encoder": tokens(rng, 1, 10), "decoder": [START] + tokens(rng, 0, 4), "max_tokens": rng.randint(1, 12),
               "eos_token_ids": tokens(rng, 1, 2)}
    if rng.random() < 0.75:
        request["num_beams"] = rng.randint(2, 5)
        request["n"] = rng.randint(1, request["num_beams"])
        request["length_penalty"] = rng.choice([1.0, 0.0, 0.5, 2.0, -1.0])
        request["early_stopping"] = rng.choice(["true", "false", "never"])
    if rng.random() < 0.3:
        request["repetition_penalty"] = rng.choice([0.75, 1.25, 2.0])
    if rng.random() < 0.3:
        request["no_repeat_ngram_size"] = rng.randint(1, 3)
    if rng.random() < 0.3:
        request["encoder_no_repeat_ngram_size"] = rng.randint(1, 3)
    if rng.random() < 0.3:
        request["min_tokens"] = rng.randint(0, request["max_tokens"])
    if rng.random() < 0.2:
        request["suppress_tokens"] = tokens(rng, 1, 2)
    if rng.random() < 0.2:
        request["begin_suppress_tokens"] = tokens(rng, 1, 2)
    banned = request.get("suppress_tokens", []) + request.get("begin_suppress_tokens", [])
    if rng.random() < 0.2:
        request["bad_words_ids"] = [t for t in ([token] for token in tokens(rng, 1, 2))
                                    if t[0] not in request["eos_token_ids"]]
    free = [token for token in range(VOCABULARY) if token not in banned]
    if rng.random() < 0.25:
        request["decoder"] = request["decoder"][:1]
        request["forced_bos_token_id"] = rng.choice(free)
    if rng.random() < 0.2 and request["eos_token_ids"][0] in free:
        request["forced_eos_token_id"] = request["eos_token_ids"][0]
    request["renormalize_logits"] = rng.random() < 0.2
    return request


def answer(model, request):
    """[{token_ids, score}] of transformers; None where it filled up with beams of probability zero."""
    model.encoder_ids = request["encoder"]
    early = {"true": True, "false": False, "never": "never"}[request.get("early_stopping", "false")]
    num_beams = request.get("num_beams", 1)
    output = model.generate(
        torch.tensor([request["encoder"]]), decoder_input_ids=torch.tensor([request["decoder"]]),
        encoder_outputs=BaseModelOutput(last_hidden_state=torch.zeros(1, len(request["encoder"]), 4)),
        attention_mask=torch.ones(1, len(request["encoder"])), use_cache=False, do_sample=False,
        return_dict_in_generate=True, output_scores=True, pad_token_id=VOCABULARY,
        max_new_tokens=request["max_tokens"], eos_token_id=request["eos_token_ids"], num_beams=num_beams,
        num_return_sequences=request.get("n", 1), length_penalty=request.get("length_penalty", 1.0),
        early_stopping=early, repetition_penalty=request.get("repetition_penalty", 1.0),
        no_repeat_ngram_size=request.get("no_repeat_ngram_size", 0),
        encoder_no_repeat_ngram_size=request.get("encoder_no_repeat_ngram_size", 0),
        min_new_tokens=request.get("min_tokens"), suppress_tokens=request.get("suppress_tokens"),
        begin_suppress_tokens=request.get("begin_suppress_tokens"), bad_words_ids=request.get("bad_words_ids") or None,
        forced_bos_token_id=request.get("forced_bos_token_id"), forced_eos_token_id=request.get("forced_eos_token_id"),
        renormalize_logits=request["renormalize_logits"])
    answers = []
    for i, row in enumerate(output.sequences.tolist()):
        ids = [token for token in row[len(request["decoder"]):] if token != VOCABULARY]
        answers.append({"token_ids": ids})
        if num_beams > 1:
            answers[-1]["score"] = round(output.sequences_scores[i].item(), 6)
            if answers[-1]["score"] < -1e6:
                return None
    if num_beams == 1 and any(step.max() == -torch.inf for step in output.scores):
        return None
    return answers


def main():
    rng = random.Random(12)
    model = make_model()
    lines = []
    while len(lines) < NUM_CASES:
        request = draw(rng)
        outputs = answer(model, request)
        if outputs is not None:
            lines.append(json.dumps(request | {"outputs": outputs}))
    OUT.write_text("\n".join(lines) + "\n")
    print(f"{OUT.name}: {len(lines)} requests, made by transformers {transformers.__version__}")


if __name__ == "__main__":
    main()
