"""The speech families of tests/models: tiny Whisper and Moonshine checkpoints with the traps of published ones, and what
transformers makes of seeded features in double precision. tests/make_models.py makes them.

forward.jsonl, a line a request: {"seed", "shape" (of the features), "decoder_ids", "encoder" [positions][d_model],
"logits" [decoder_ids][vocabulary]}. Features are drawn by a generator that a test can repeat: see seeded().
"""
import json
import math

import numpy as np
import torch
import transformers

VOCABULARY = 64

# name -> (config.json's own fields, how the checkpoint is stored, generation_config.json's own fields). Widths, heads and
# layers that differ on the two sides wherever the reference allows it.
MODELS = {
    "whisper-float16": (
        {"model_type": "whisper", "d_model": 24, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4,
         "decoder_attention_heads": 3, "encoder_ffn_dim": 40, "decoder_ffn_dim": 32, "num_mel_bins": 20,
         "max_source_positions": 30, "max_target_positions": 24, "scale_embedding": False},
        {"dtype": torch.float16, "seed": 41},
        {"alignment_heads": [[2, 1], [1, 0], [1, 2]]}),
    "whisper-bfloat16-distilled": (  # bare names, shards, an output layer of its own, and the heads of a larger model
        {"model_type": "whisper", "d_model": 20, "encoder_layers": 3, "decoder_layers": 1, "encoder_attention_heads": 2,
         "decoder_attention_heads": 5, "encoder_ffn_dim": 32, "decoder_ffn_dim": 48, "num_mel_bins": 7,
         "max_source_positions": 21, "max_target_positions": 16, "activation_function": "gelu_new", "scale_embedding": True,
         "tie_word_embeddings": False},
        {"dtype": torch.bfloat16, "bare": True, "shards": 2, "seed": 42},
        {"alignment_heads": [[0, 1], [7, 0]]}),
    "moonshine-float16": (  # as published: no biases in attention, older rope fields
        {"model_type": "moonshine", "hidden_size": 36, "intermediate_size": 56, "encoder_num_hidden_layers": 2,
         "decoder_num_hidden_layers": 3, "encoder_num_attention_heads": 4, "decoder_num_attention_heads": 4,
         "encoder_num_key_value_heads": 4, "decoder_num_key_value_heads": 4, "max_position_embeddings": 24,
         "partial_rotary_factor": 0.9, "rope_theta": 10000.0, "rope_scaling": None},
        {"dtype": torch.float16, "seed": 43},
        {}),
    "moonshine-float32-bare": (  # all that a config may have besides: heads of their own width, padded for other kernels
        {"model_type": "moonshine", "hidden_size": 24, "intermediate_size": 40, "encoder_num_hidden_layers": 3,
         "decoder_num_hidden_layers": 1, "encoder_num_attention_heads": 3, "decoder_num_attention_heads": 3, "head_dim": 12,
         "max_position_embeddings": 20, "attention_bias": True, "pad_head_dim_to_multiple_of": 8, "encoder_hidden_act": "gelu",
         "decoder_hidden_act": "gelu", "rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5},
         "tie_word_embeddings": False},
        {"dtype": torch.float32, "bare": True, "seed": 44},
        {}),
}


def make_config(fields):
    architecture = f"{fields['model_type'].capitalize()}ForConditionalGeneration"
    return {"architectures": [architecture], "is_encoder_decoder": True, "vocab_size": VOCABULARY, "bos_token_id": 1, "pad_token_id": 2,
            "eos_token_id": 2, "decoder_start_token_id": 1, "tie_word_embeddings": True, **fields}


def reference(config):
    """The reference's model, in double precision, with weights of its own."""
    fields = {key: value for key, value in config.items() if key not in ("architectures", "model_type")}
    name = config["architectures"][0]
    return getattr(transformers, name)(getattr(transformers, name.replace("ForConditionalGeneration", "Config"))(**fields)).double().eval()


def make_weights(config, storage):
    """Every parameter of the reference, drawn anew: norms about 1, tables and products so that attention is selective."""
    generator = torch.Generator().manual_seed(storage["seed"])
    weights, tied = {}, config["tie_word_embeddings"]
    for name, parameter in reference(config).named_parameters():
        bare, shape = name.removeprefix("model."), parameter.shape
        if bare == "proj_out.weight" and tied:
            continue
        values = torch.randn(*shape, generator=generator)
        if "norm" in bare and bare.endswith(".weight"):
            values = 1 + 0.2 * values
        elif bare.endswith(".bias"):
            values = 0.2 * values
        elif "embed" in bare or bare == "proj_out.weight":
            values = 0.5 * values
        else:
            values = values * (1.4 / math.sqrt(math.prod(shape[1:])))
        weights[bare] = values
    return weights


def seeded(seed, count):
    """Values from -1 to 1: state = state * 1664525 + 1013904223 mod 2^32, and its upper 24 bits."""
    values, state = [], seed
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        values.append((state >> 8) / 8388608 - 1)
    return values


def requests(config):
    """(seed, shape of the features, decoder ids): what is longest, and for Moonshine what is shortest."""
    ids = lambda seed, count: [1] + [int((value + 1) * VOCABULARY / 2) for value in seeded(seed, count - 1)]
    if config["model_type"] == "whisper":
        shape = [config["num_mel_bins"], 2 * config["max_source_positions"]]
        return [(seed, shape, ids(seed + 100, count)) for seed, count in ((1, config["max_target_positions"]), (2, 1), (3, 5))]
    most = config["max_position_embeddings"]
    return [(seed, [length], ids(seed + 100, count)) for seed, length, count in ((4, 895, 4), (5, 9000, most), (6, 1278, 1), (7, 5001, 7))]


@torch.inference_mode()
def write(folder, config, weights, storage):
    """The answers of the weights as they are stored; returns how many."""
    model = reference(config)
    state = {name if name == "proj_out.weight" else f"model.{name}": tensor.to(storage["dtype"]).double() for name, tensor in weights.items()}
    state.setdefault("proj_out.weight", state["model.decoder.embed_tokens.weight"])
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not missing and not unexpected, (missing, unexpected)
    assert torch.equal(model.proj_out.weight, model.model.decoder.embed_tokens.weight) == config["tie_word_embeddings"]
    key = "input_features" if config["model_type"] == "whisper" else "input_values"
    lines = []
    for seed, shape, decoder_ids in requests(config):
        features = torch.tensor(np.array(seeded(seed, math.prod(shape))).reshape(1, *shape))
        out = model(**{key: features}, decoder_input_ids=torch.tensor([decoder_ids]), use_cache=False)
        rounded = lambda tensor: [[round(float(value), 6) for value in row] for row in tensor]
        lines.append({"seed": seed, "shape": shape, "decoder_ids": decoder_ids, "encoder": rounded(out.encoder_last_hidden_state[0]),
                      "logits": rounded(out.logits[0])})
    (folder / "forward.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return len(lines)
