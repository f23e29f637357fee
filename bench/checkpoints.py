#!/usr/bin/env python3
"""Makes random checkpoints of published models' shapes, once, as Hugging Face folders (float32 safetensors); peers convert
them. For measuring speed: what they say means nothing. Whisper's have no tokenizer: they are timed window by window.

    .venv/bin/python bench/checkpoints.py opus-mt whisper-tiny

Needs numpy and safetensors (./dev bench --peers). What exists is not made again.
"""
import argparse
import json
import math
from pathlib import Path

import numpy as np

from shapes import (SHAPES, WHISPER_END, WHISPER_LANGUAGES, WHISPER_MELS, WHISPER_NO_TIMES, WHISPER_POSITIONS, WHISPER_PREVIOUS,
                    WHISPER_START, WHISPER_TRANSCRIBE, WHISPER_TRANSLATE, shape_of, special_id)

SEED = 1
CACHE = Path(__file__).resolve().parent.parent / ".cache" / "bench"
T5_BUCKETS, T5_MAX_DISTANCE = 32, 128


# ---- weights

class Draw:
    """{name in the Hugging Face folder: float32 array}"""

    def __init__(self, shape):
        self.shape, self.rng, self.weights = shape, np.random.default_rng(SEED), {}

    def normal(self, *dims, scale):
        return self.rng.standard_normal(dims, dtype=np.float32) * np.float32(scale)

    def linear(self, name, outputs, inputs, bias=True, scale=1.0):
        self.weights[f"{name}.weight"] = self.normal(outputs, inputs, scale=scale / math.sqrt(inputs))
        if bias:
            self.weights[f"{name}.bias"] = self.normal(outputs, scale=0.02)

    def norm(self, name, bias=True):
        width = self.shape["d_model"]
        self.weights[f"{name}.weight"] = 1 + self.normal(width, scale=0.05)
        if bias:
            self.weights[f"{name}.bias"] = self.normal(width, scale=0.05)


def sinusoids(positions, width):
    """Marian's table: sines in the front half, cosines in the back."""
    angles = np.arange(positions)[:, None] / 10000 ** (2 * np.arange(width // 2) / width)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


def draw_bart_like(shape):
    draw, width, is_bart = Draw(shape), shape["d_model"], shape["family"] == "bart"
    # Marian multiplies embeddings by sqrt(width), BART normalises them.
    draw.weights["model.shared.weight"] = draw.normal(shape["vocab"], width, scale=0.1 if is_bart else 1 / math.sqrt(width))
    if not is_bart:
        draw.weights["model.shared.weight"][special_id(shape, "<pad>")] = 0  # Marian's decoder starts from nothing
        draw.weights["final_logits_bias"] = np.zeros((1, shape["vocab"]), dtype=np.float32)
        draw.weights["final_logits_bias"][0, special_id(shape, "<pad>")] = -100  # which CTranslate2 does not have at all
    for side in ("model.encoder", "model.decoder"):
        if is_bart:
            draw.weights[f"{side}.embed_positions.weight"] = draw.normal(shape["positions"] + 2, width, scale=0.1)
            draw.norm(f"{side}.layernorm_embedding")
        else:
            draw.weights[f"{side}.embed_positions.weight"] = sinusoids(shape["positions"], width)
        for i in range(shape["layers"]):
            layer = f"{side}.layers.{i}"
            for attention in ("self_attn", "encoder_attn")[:1 if side == "model.encoder" else 2]:
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    draw.linear(f"{layer}.{attention}.{part}", width, width)
                draw.norm(f"{layer}.{attention}_layer_norm")
            draw.linear(f"{layer}.fc1", shape["ffn"], width)
            draw.linear(f"{layer}.fc2", width, shape["ffn"])
            draw.norm(f"{layer}.final_layer_norm")
    return draw.weights


def draw_t5(shape):
    draw, width = Draw(shape), shape["d_model"]
    draw.weights["shared.weight"] = draw.normal(shape["vocab"], width, scale=1)
    for side in ("encoder", "decoder"):
        for i in range(shape["layers"]):
            block = f"{side}.block.{i}.layer"
            attentions = ("SelfAttention", "EncDecAttention")[:1 if side == "encoder" else 2]
            for j, attention in enumerate(attentions):
                for part in "qkvo":  # scores are not scaled: the queries' weights are
                    scale = math.sqrt(shape["heads"] / width) if part == "q" else 1.0
                    draw.linear(f"{block}.{j}.{attention}.{part}", width, width, bias=False, scale=scale)
                draw.norm(f"{block}.{j}.layer_norm", bias=False)
            if i == 0:
                name = f"{block}.0.SelfAttention.relative_attention_bias.weight"
                draw.weights[name] = draw.normal(T5_BUCKETS, shape["heads"], scale=0.5)
            last = f"{block}.{len(attentions)}"
            draw.linear(f"{last}.DenseReluDense.wi", shape["ffn"], width, bias=False)
            draw.linear(f"{last}.DenseReluDense.wo", width, shape["ffn"], bias=False)
            draw.norm(f"{last}.layer_norm", bias=False)
        draw.norm(f"{side}.final_layer_norm", bias=False)
    return draw.weights


def draw_whisper(shape):
    draw, width = Draw(shape), shape["d_model"]
    draw.weights["model.decoder.embed_tokens.weight"] = draw.normal(shape["vocab"], width, scale=1 / math.sqrt(width))
    draw.weights["model.decoder.embed_positions.weight"] = draw.normal(shape["positions"], width, scale=0.02)
    draw.weights["model.encoder.embed_positions.weight"] = sinusoids(WHISPER_POSITIONS, width)
    for name, channels in (("conv1", WHISPER_MELS), ("conv2", width)):
        draw.weights[f"model.encoder.{name}.weight"] = draw.normal(width, channels, 3, scale=1 / math.sqrt(3 * channels))
        draw.weights[f"model.encoder.{name}.bias"] = draw.normal(width, scale=0.02)
    for side in ("model.encoder", "model.decoder"):
        for i in range(shape["layers"]):
            layer = f"{side}.layers.{i}"
            for attention in ("self_attn", "encoder_attn")[:1 if side == "model.encoder" else 2]:
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    draw.linear(f"{layer}.{attention}.{part}", width, width, bias=part != "k_proj")
                draw.norm(f"{layer}.{attention}_layer_norm")
            draw.linear(f"{layer}.fc1", shape["ffn"], width)
            draw.linear(f"{layer}.fc2", width, shape["ffn"])
            draw.norm(f"{layer}.final_layer_norm")
        draw.norm(f"{side}.layer_norm")
    return draw.weights


# ---- Hugging Face

def hugging_face_config(shape):
    both = lambda name, value: {f"encoder_{name}": value, f"decoder_{name}": value}
    bart_like = {"d_model": shape["d_model"], "max_position_embeddings": shape["positions"], **both("layers", shape["layers"]),
                 **both("attention_heads", shape["heads"]), **both("ffn_dim", shape["ffn"])}
    if shape["family"] == "bart":
        return {"architectures": ["BartForConditionalGeneration"], **bart_like, "activation_function": "gelu", "scale_embedding": False}
    if shape["family"] == "marian":
        return {"architectures": ["MarianMTModel"], **bart_like, "activation_function": "swish", "scale_embedding": True,
                "static_position_embeddings": True}
    if shape["family"] == "whisper":
        bart_like.pop("max_position_embeddings")
        return {"architectures": ["WhisperForConditionalGeneration"], **bart_like, "activation_function": "gelu", "scale_embedding": False,
                "num_mel_bins": WHISPER_MELS, "max_source_positions": WHISPER_POSITIONS, "max_target_positions": shape["positions"]}
    return {"architectures": ["T5ForConditionalGeneration"], "d_model": shape["d_model"], "d_kv": shape["d_model"] // shape["heads"],
            "d_ff": shape["ffn"], "num_layers": shape["layers"], "num_decoder_layers": shape["layers"], "num_heads": shape["heads"],
            "relative_attention_num_buckets": T5_BUCKETS, "relative_attention_max_distance": T5_MAX_DISTANCE,
            "feed_forward_proj": "relu", "layer_norm_epsilon": 1e-6, "tie_word_embeddings": True, "n_positions": shape["positions"]}


def special_ids(shape):
    if shape["family"] == "whisper":
        return {"pad_token_id": WHISPER_END, "eos_token_id": WHISPER_END, "bos_token_id": WHISPER_END,
                "decoder_start_token_id": WHISPER_START}
    start = "</s>" if shape["family"] == "bart" else "<pad>"
    ids = {"pad_token_id": special_id(shape, "<pad>"), "eos_token_id": special_id(shape, "</s>"),
           "decoder_start_token_id": special_id(shape, start)}
    return {**ids, **({"bos_token_id": special_id(shape, "<s>")} if shape["family"] == "bart" else {})}


def generation_config(shape, ids):
    if shape["family"] == "marian":
        return {**ids, "bad_words_ids": [[ids["pad_token_id"]]]}
    if shape["family"] != "whisper":
        return ids
    languages = {f"<|{'en' if i == 0 else f'l{i}'}|>": index for i, index in enumerate(WHISPER_LANGUAGES)}
    return {**ids, "is_multilingual": True, "lang_to_id": languages, "no_timestamps_token_id": WHISPER_NO_TIMES,
            "task_to_id": {"transcribe": WHISPER_TRANSCRIBE, "translate": WHISPER_TRANSLATE}, "prev_sot_token_id": WHISPER_PREVIOUS,
            "max_initial_timestamp_index": 50, "begin_suppress_tokens": [220, WHISPER_END], "alignment_heads": [[1, 0]]}


def save_hugging_face(folder, shape, weights):
    from safetensors.numpy import save_file
    ids = special_ids(shape)
    config = {**hugging_face_config(shape), "model_type": shape["family"], "is_encoder_decoder": True, "vocab_size": shape["vocab"], **ids}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "generation_config.json").write_text(json.dumps(generation_config(shape, ids)))
    if shape["family"] == "whisper":
        (folder / "preprocessor_config.json").write_text(json.dumps({
            "feature_extractor_type": "WhisperFeatureExtractor", "feature_size": WHISPER_MELS, "sampling_rate": 16000, "hop_length": 160,
            "chunk_length": 30, "n_fft": 400}))
    save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config, indent=2))  # last: its presence says that all is there


DRAW = {"bart": draw_bart_like, "marian": draw_bart_like, "t5": draw_t5, "whisper": draw_whisper}


def make(name, cache=CACHE, tiny=False):
    """The Hugging Face folder of shape `name`, made on first use."""
    folder = Path(cache) / (f"{name}-tiny" if tiny else f"{name}-shape") / "hf"
    if not (folder / "config.json").exists():
        shape = shape_of(name, tiny)
        save_hugging_face(folder, shape, DRAW[shape["family"]](shape))
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="+", choices=list(SHAPES), metavar="SHAPE", help=f"of {', '.join(SHAPES)}")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--tiny", action="store_true", help="tiny ones, which try scripts out")
    options = parser.parse_args()
    for name in options.shapes:
        print(make(name, options.cache, options.tiny))


if __name__ == "__main__":
    main()
