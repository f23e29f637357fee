#!/usr/bin/env python3
"""Makes a random checkpoint of bart-large's shape, once: as a Hugging Face folder (float32 safetensors, for transept) and
as a CTranslate2 folder, from the same numbers. For measuring speed: what it says means nothing.

Needs numpy, safetensors and ctranslate2 (./dev bench --peers). About 1.6 GB each; what exists is not made again.
"""
import json
import math

import numpy as np

LARGE = {"d_model": 1024, "layers": 12, "heads": 16, "ffn": 4096, "vocab": 50264, "positions": 1024}
SMALL = {"d_model": 64, "layers": 2, "heads": 4, "ffn": 128, "vocab": 264, "positions": 64}  # tries the scripts out
SEED = 1
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
ATTENTION_PARTS = ("q_proj", "k_proj", "v_proj", "out_proj")


def token(index):
    """How CTranslate2's vocabulary spells an id."""
    return SPECIAL[index] if index < len(SPECIAL) else f"tok{index}"


def draw_weights(shape):
    """{name without `model.`: float32 array}."""
    rng, weights, width = np.random.default_rng(SEED), {}, shape["d_model"]
    normal = lambda *dims, scale: rng.standard_normal(dims, dtype=np.float32) * np.float32(scale)

    def linear(name, outputs, inputs):
        weights[f"{name}.weight"] = normal(outputs, inputs, scale=1 / math.sqrt(inputs))
        weights[f"{name}.bias"] = normal(outputs, scale=0.02)

    def norm(name):
        weights[f"{name}.weight"], weights[f"{name}.bias"] = 1 + normal(width, scale=0.05), normal(width, scale=0.05)

    weights["shared.weight"] = normal(shape["vocab"], width, scale=0.1)
    for side in ("encoder", "decoder"):
        weights[f"{side}.embed_positions.weight"] = normal(shape["positions"] + 2, width, scale=0.1)
        norm(f"{side}.layernorm_embedding")
        for i in range(shape["layers"]):
            layer = f"{side}.layers.{i}"
            for attention in ("self_attn", "encoder_attn")[:1 if side == "encoder" else 2]:
                for part in ATTENTION_PARTS:
                    linear(f"{layer}.{attention}.{part}", width, width)
                norm(f"{layer}.{attention}_layer_norm")
            linear(f"{layer}.fc1", shape["ffn"], width)
            linear(f"{layer}.fc2", width, shape["ffn"])
            norm(f"{layer}.final_layer_norm")
    return weights


def save_hugging_face(folder, shape, weights):
    from safetensors.numpy import save_file
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    config = {"architectures": ["BartForConditionalGeneration"], "model_type": "bart", "is_encoder_decoder": True,
              "vocab_size": shape["vocab"], "d_model": shape["d_model"], "max_position_embeddings": shape["positions"],
              "encoder_layers": shape["layers"], "decoder_layers": shape["layers"],
              "encoder_attention_heads": shape["heads"], "decoder_attention_heads": shape["heads"],
              "encoder_ffn_dim": shape["ffn"], "decoder_ffn_dim": shape["ffn"], "activation_function": "gelu",
              "scale_embedding": False, **ids}
    folder.mkdir(parents=True)
    (folder / "generation_config.json").write_text(json.dumps(ids))
    save_file({f"model.{name}": array for name, array in weights.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config, indent=2))  # last: its presence says that all is there


def save_ctranslate2(folder, shape, weights):
    from ctranslate2.specs import common_spec, transformer_spec
    spec = transformer_spec.TransformerSpec.from_config((shape["layers"], shape["layers"]), shape["heads"], pre_norm=False,
                                                        activation=common_spec.Activation.GELU, layernorm_embedding=True)

    def linear(target, *names):
        target.weight = np.concatenate([weights[f"{name}.weight"] for name in names])
        target.bias = np.concatenate([weights[f"{name}.bias"] for name in names])

    def norm(target, name):
        target.gamma, target.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]

    for side, part in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        part.scale_embeddings = 1.0
        embeddings = part.embeddings[0] if side == "encoder" else part.embeddings
        embeddings.weight = weights["shared.weight"]
        part.position_encodings.encodings = weights[f"{side}.embed_positions.weight"][2:]  # BART's first two rows are unused
        norm(part.layernorm_embedding, f"{side}.layernorm_embedding")
        for i, target in enumerate(part.layer):
            layer = f"{side}.layers.{i}"
            linear(target.self_attention.linear[0], *(f"{layer}.self_attn.{name}" for name in ATTENTION_PARTS[:3]))
            linear(target.self_attention.linear[1], f"{layer}.self_attn.out_proj")
            norm(target.self_attention.layer_norm, f"{layer}.self_attn_layer_norm")
            if side == "decoder":
                linear(target.attention.linear[0], f"{layer}.encoder_attn.q_proj")
                linear(target.attention.linear[1], f"{layer}.encoder_attn.k_proj", f"{layer}.encoder_attn.v_proj")
                linear(target.attention.linear[2], f"{layer}.encoder_attn.out_proj")
                norm(target.attention.layer_norm, f"{layer}.encoder_attn_layer_norm")
            linear(target.ffn.linear_0, f"{layer}.fc1")
            linear(target.ffn.linear_1, f"{layer}.fc2")
            norm(target.ffn.layer_norm, f"{layer}.final_layer_norm")
    spec.decoder.projection.weight = weights["shared.weight"]
    vocabulary = [token(i) for i in range(shape["vocab"])]
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = SPECIAL[0], SPECIAL[2], SPECIAL[3]
    spec.config.decoder_start_token = SPECIAL[2]
    spec.validate()
    spec.optimize()
    folder.mkdir(parents=True)
    spec.save(str(folder))


def make(cache, name, shape):
    """(Hugging Face folder, CTranslate2 folder) under `cache`."""
    hugging_face, ctranslate2 = cache / name / "hf", cache / name / "ctranslate2"
    if not (hugging_face / "config.json").exists() or not (ctranslate2 / "model.bin").exists():
        weights = draw_weights(shape)
        if not (hugging_face / "config.json").exists():
            save_hugging_face(hugging_face, shape, weights)
        if not (ctranslate2 / "model.bin").exists():
            save_ctranslate2(ctranslate2, shape, weights)
    return hugging_face, ctranslate2
