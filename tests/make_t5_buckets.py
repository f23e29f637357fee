#!/usr/bin/env python3
"""Makes src/attention/testdata/t5_buckets.jsonl: which bucket transformers' T5 gives to each distance (key - query).

    .venv/bin/python tests/make_t5_buckets.py        # torch and transformers as for make_models.py

A line a configuration: `runs` lists [first distance, bucket] of each run of equal buckets, from `first` to `last`.
"""
import json
from pathlib import Path

import torch
from transformers.models.t5.modeling_t5 import T5Attention

OUT = Path(__file__).resolve().parent.parent / "src/attention/testdata/t5_buckets.jsonl"
# Published models have (32, 128); the others have borders elsewhere.
CONFIGURATIONS = [(32, 128), (32, 64), (64, 256), (16, 50), (33, 100), (4, 3), (8, 1000), (128, 2048)]


def main():
    lines = []
    for num_buckets, max_distance in CONFIGURATIONS:
        for bidirectional in (True, False):
            last = max_distance + 100
            distances = torch.arange(-last, last + 1)
            buckets = T5Attention._relative_position_bucket(distances, bidirectional, num_buckets, max_distance).tolist()
            runs = [[distance, bucket] for i, (distance, bucket) in enumerate(zip(distances.tolist(), buckets))
                    if i == 0 or buckets[i - 1] != bucket]
            lines.append({"num_buckets": num_buckets, "max_distance": max_distance, "bidirectional": bidirectional, "first": -last,
                          "last": last, "runs": runs})
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
