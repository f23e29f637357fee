"""Requests that are random: the same of one name."""
import random


def random_requests(name, config, count):
    """Of ids, for models that read text alone: samples, beams, edits of scores, ends and decoder prompts in any company."""
    rng, highest = random.Random(name), config.get("vocab_size", 64) - 1

    def ids(least, most):
        return [rng.randrange(4, highest) for _ in range(rng.randint(least, most))]

    def some(chance, value):
        return value() if rng.random() < chance else None

    def request(i):
        sampled = {"temperature": rng.choice((0.5, 1.0, 1.5)), "seed": rng.randrange(1 << 30), "n": rng.randint(1, 4), "top_k": rng.choice((-1, 3, 20)),
                   "top_p": rng.choice((1.0, 0.9))}
        searched = {"temperature": 0, "num_beams": rng.randint(2, 5), "length_penalty": rng.choice((0.5, 1.0, 2.0))}
        fields = {"id": f"random-{i}", "prompt": {"prompt_token_ids": [*ids(1, 30), 2]}, "max_tokens": rng.randint(1, 24),
                  **rng.choice(({"temperature": 0, "num_beams": 1}, {**sampled, "num_beams": 1}, searched)),
                  "logprobs": some(0.5, lambda: rng.randint(0, 5)), "ignore_eos": some(0.5, lambda: True), "stop_token_ids": some(0.2, lambda: ids(1, 5)),
                  "repetition_penalty": some(0.3, lambda: rng.uniform(0.8, 1.5)), "logit_bias": some(0.2, lambda: {str(i): 3.0 for i in ids(1, 4)}),
                  "decoder_prompt": some(0.3, lambda: {"prompt_token_ids": ids(1, 6)})}
        return {name: value for name, value in fields.items() if value is not None}
    return [request(i) for i in range(count)]
