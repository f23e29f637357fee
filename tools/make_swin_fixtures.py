#!/usr/bin/env python3
"""Writes src/models/testdata/donut_swin.jsonl: what DonutSwinModel of transformers 5.23 makes of seeded pictures.

    tools/make_swin_fixtures.py     # needs transformers==5.23.0 and torch in the interpreter's environment; tests do not

A line is {"name", "config", "pictures": [[height, width, seed], ..], "rows": of each picture, flat}: in double precision, six decimals.
Weights and pictures are drawn by the generator of src/models/run_model_testing.h, a tensor's from its name: see weight().

The reference cannot run where a map is smaller than its windows: it shrinks the windows and adds the positions of whole ones. Here it
adds those of the same distances. It also keeps small windows for the pictures after, so each picture has a model of its own.
"""
import json
import math
import pathlib

import numpy as np
import torch
from transformers.models.donut import modeling_donut_swin as reference
from transformers.models.donut.configuration_donut_swin import DonutSwinConfig

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "src" / "models" / "testdata" / "donut_swin.jsonl"

TWO_STAGES = {"image_size": [29, 21], "patch_size": 2, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4,
              "mlp_ratio": 2.0}
CASES = [
    # 15 x 11, then 8 x 6: filled up to whole windows, shifted, merged at odd sides. The picture itself ends within a patch.
    ("odd sides", TWO_STAGES, [[29, 21, 1]]),
    # 10 x 13, then 5 x 7 (as small as a window: no shift), then 3 x 4 (smaller: smaller windows).
    ("small maps", {"image_size": [20, 26], "patch_size": 2, "embed_dim": 4, "depths": [2, 2, 2], "num_heads": [1, 2, 4], "window_size": 5,
                    "mlp_ratio": 2.0}, [[20, 26, 2]]),
    ("unequal pictures", TWO_STAGES, [[13, 30, 3], [22, 9, 4], [1, 2, 5], [2, 31, 6]]),
    # Patches that are not square, another activation, and an epsilon that does not hold for the norms outside of blocks.
    ("other fields", {"image_size": 18, "patch_size": [2, 3], "embed_dim": 6, "depths": [3, 1], "num_heads": [2, 3], "window_size": 3,
                      "mlp_ratio": 1.5, "qkv_bias": False, "hidden_act": "relu", "layer_norm_eps": 0.1}, [[18, 18, 7]]),
    ("one stage", {"image_size": [11, 7], "patch_size": 2, "embed_dim": 8, "depths": [2], "num_heads": [2], "window_size": 2},
     [[11, 7, 8]]),
]


def stream(seed, count):
    """Floats from -1 to 1 (Numerical Recipes' constants)."""
    values = []
    for _ in range(count):
        seed = (seed * 1664525 + 1013904223) % 2**32
        values.append((seed >> 8) / 8388608 - 1)
    return np.array(values, dtype=np.float32)


def weight(name, shape):
    """Norms about 1, small biases, tables of positions large enough to choose keys, products that keep their inputs' size."""
    seed = 2166136261
    for byte in name.encode():  # FNV-1a
        seed = (seed ^ byte) * 16777619 % 2**32
    values = stream(seed, math.prod(shape))
    if name.endswith("relative_position_bias_table"):
        values = values * np.float32(2)
    elif name.endswith(".bias"):
        values = values * np.float32(0.25)
    elif len(shape) == 1:
        values = np.float32(1) + values * np.float32(0.25)
    else:
        values = values * np.float32(2.0 ** (1 - (math.prod(shape[1:]).bit_length() - 1) // 2))
    return torch.tensor(values.reshape(shape), dtype=torch.float64)


shrink = reference.DonutSwinLayer.set_shift_and_window_size


def shrink_positions(layer, resolution):
    shrink(layer, resolution)
    attention, side = layer.attention.self, layer.window_size
    whole = attention.window_size[0]
    if side < whole:
        index = attention.relative_position_index.view(whole, whole, whole, whole)[:side, :side, :side, :side]
        attention.relative_position_index = index.reshape(side * side, side * side)
        attention.window_size = (side, side)


def rows(config, picture):
    height, width, seed = picture
    model = reference.DonutSwinModel(DonutSwinConfig(**config), add_pooling_layer=False).double().eval()
    model.load_state_dict({name: weight(name, tuple(p.shape)) for name, p in model.named_parameters()}, strict=False)
    pixels = torch.tensor(stream(seed, 3 * height * width).reshape(1, 3, height, width), dtype=torch.float64)
    with torch.no_grad():
        return [round(value, 6) for value in model(pixels).last_hidden_state.flatten().tolist()]


def main():
    reference.DonutSwinLayer.set_shift_and_window_size = shrink_positions
    OUT.parent.mkdir(exist_ok=True)
    with OUT.open("w") as file:
        for name, config, pictures in CASES:
            case = {"name": name, "config": config, "pictures": pictures, "rows": [rows(config, picture) for picture in pictures]}
            file.write(json.dumps(case) + "\n")
            print(name, [len(r) for r in case["rows"]], float(np.std(case["rows"][0])))


if __name__ == "__main__":
    main()
