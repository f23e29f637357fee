#!/usr/bin/env python3
"""Makes random checkpoints of published models' shapes, once: as Hugging Face folders (float32 safetensors, for transept)
and as CTranslate2 folders, from the same numbers. For measuring speed: what they say means nothing.

Needs numpy, safetensors and ctranslate2 (./dev bench --peers). What exists is not made again. CTranslate2's folders are
written through its specs, not by its converter, which wants torch, transformers and tokenizer files.
"""
import json
import math

import numpy as np

SEED = 1
SHAPES = {
    "bart-large": {"family": "bart", "d_model": 1024, "layers": 12, "heads": 16, "ffn": 4096, "vocab": 50264, "positions": 1024},
    "opus-mt": {"family": "marian", "d_model": 512, "layers": 6, "heads": 8, "ffn": 2048, "vocab": 58101, "positions": 512},
    "t5-base": {"family": "t5", "d_model": 768, "layers": 12, "heads": 12, "ffn": 3072, "vocab": 32128, "positions": 512},
}
TINY = {"d_model": 64, "layers": 2, "heads": 4, "ffn": 128, "vocab": 264, "positions": 64}  # tries the scripts out

# Ids of the special tokens, as published checkpoints of the family have them; Marian's <pad> is the last one.
SPECIAL = {
    "bart": lambda vocab: {0: "<s>", 1: "<pad>", 2: "</s>", 3: "<unk>"},
    "marian": lambda vocab: {0: "</s>", 1: "<unk>", vocab - 1: "<pad>"},
    "t5": lambda vocab: {0: "<pad>", 1: "</s>", 2: "<unk>"},
}
T5_BUCKETS, T5_MAX_DISTANCE = 32, 128


def shape_of(name, tiny=False):
    return {**SHAPES[name], **(TINY if tiny else {})}


def token(shape, index):
    """How CTranslate2's vocabulary spells an id."""
    return SPECIAL[shape["family"]](shape["vocab"]).get(index, f"tok{index}")


def special_id(shape, word):
    return next(index for index, name in SPECIAL[shape["family"]](shape["vocab"]).items() if name == word)


def plain_ids(shape):
    """The ids that are no special tokens."""
    return range(4, shape["vocab"] - 1)


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
    return {"architectures": ["T5ForConditionalGeneration"], "d_model": shape["d_model"], "d_kv": shape["d_model"] // shape["heads"],
            "d_ff": shape["ffn"], "num_layers": shape["layers"], "num_decoder_layers": shape["layers"], "num_heads": shape["heads"],
            "relative_attention_num_buckets": T5_BUCKETS, "relative_attention_max_distance": T5_MAX_DISTANCE,
            "feed_forward_proj": "relu", "layer_norm_epsilon": 1e-6, "tie_word_embeddings": True, "n_positions": shape["positions"]}


def save_hugging_face(folder, shape, weights):
    from safetensors.numpy import save_file
    start = "</s>" if shape["family"] == "bart" else "<pad>"
    ids = {"pad_token_id": special_id(shape, "<pad>"), "eos_token_id": special_id(shape, "</s>"),
           "decoder_start_token_id": special_id(shape, start)}
    if shape["family"] == "bart":
        ids["bos_token_id"] = special_id(shape, "<s>")
    generation = {**ids, **({"bad_words_ids": [[ids["pad_token_id"]]]} if shape["family"] == "marian" else {})}
    config = {**hugging_face_config(shape), "model_type": shape["family"], "is_encoder_decoder": True, "vocab_size": shape["vocab"], **ids}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "generation_config.json").write_text(json.dumps(generation))
    save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config, indent=2))  # last: its presence says that all is there


# ---- CTranslate2

class SpecWriter:
    """Fills CTranslate2's layers from names of the Hugging Face folder."""

    def __init__(self, weights):
        self.weights = weights

    def linear(self, target, *names):
        target.weight = np.concatenate([self.weights[f"{name}.weight"] for name in names])
        if f"{names[0]}.bias" in self.weights:
            target.bias = np.concatenate([self.weights[f"{name}.bias"] for name in names])

    def norm(self, target, name):
        target.gamma = self.weights[f"{name}.weight"]
        if f"{name}.bias" in self.weights:
            target.beta = self.weights[f"{name}.bias"]

    def attention(self, target, name, q, k, v, out, is_self):
        parts = [f"{name}.{part}" for part in (q, k, v)]
        if is_self:
            self.linear(target.linear[0], *parts)
        else:
            self.linear(target.linear[0], parts[0])
            self.linear(target.linear[1], *parts[1:])
        self.linear(target.linear[-1], f"{name}.{out}")


def sides(spec):
    """(name, part, its embeddings) of both sides."""
    return (("encoder", spec.encoder, spec.encoder.embeddings[0]), ("decoder", spec.decoder, spec.decoder.embeddings))


def bart_like_spec(shape, weights):
    from ctranslate2.specs import common_spec, transformer_spec
    is_bart = shape["family"] == "bart"
    activation = common_spec.Activation.GELU if is_bart else common_spec.Activation.SWISH
    spec = transformer_spec.TransformerSpec.from_config((shape["layers"], shape["layers"]), shape["heads"], pre_norm=False,
                                                        activation=activation, layernorm_embedding=is_bart)
    write = SpecWriter(weights)
    # As its converter has it: no <pad>, which Marian's vocabulary ends with, and a start from a zero embedding.
    shared = weights["model.shared.weight"] if is_bart else weights["model.shared.weight"][:-1]
    spec.decoder.start_from_zero_embedding = not is_bart
    for side, part, embeddings in sides(spec):
        part.scale_embeddings = 1.0 if is_bart else math.sqrt(shape["d_model"])
        embeddings.weight = shared
        # BART's first two rows are unused.
        part.position_encodings.encodings = weights[f"model.{side}.embed_positions.weight"][2 if is_bart else 0:]
        if is_bart:
            write.norm(part.layernorm_embedding, f"model.{side}.layernorm_embedding")
        for i, target in enumerate(part.layer):
            layer = f"model.{side}.layers.{i}"
            write.attention(target.self_attention, f"{layer}.self_attn", "q_proj", "k_proj", "v_proj", "out_proj", True)
            write.norm(target.self_attention.layer_norm, f"{layer}.self_attn_layer_norm")
            if side == "decoder":
                write.attention(target.attention, f"{layer}.encoder_attn", "q_proj", "k_proj", "v_proj", "out_proj", False)
                write.norm(target.attention.layer_norm, f"{layer}.encoder_attn_layer_norm")
            write.linear(target.ffn.linear_0, f"{layer}.fc1")
            write.linear(target.ffn.linear_1, f"{layer}.fc2")
            write.norm(target.ffn.layer_norm, f"{layer}.final_layer_norm")
    spec.decoder.projection.weight = shared
    return spec


def t5_spec(shape, weights):
    from ctranslate2.specs import common_spec, transformer_spec
    spec = transformer_spec.TransformerSpec.from_config((shape["layers"], shape["layers"]), shape["heads"], pre_norm=True,
                                                        activation=common_spec.Activation.RELU, relative_attention_bias=True,
                                                        rms_norm=True)
    write = SpecWriter(weights)
    for side, part, embeddings in sides(spec):
        part.scale_embeddings = False
        embeddings.weight = weights["shared.weight"]
        write.norm(part.layer_norm, f"{side}.final_layer_norm")
        for i, target in enumerate(part.layer):
            block = f"{side}.block.{i}.layer"
            target.self_attention.queries_scale = 1.0
            write.attention(target.self_attention, f"{block}.0.SelfAttention", "q", "k", "v", "o", True)
            write.norm(target.self_attention.layer_norm, f"{block}.0.layer_norm")
            target.self_attention.relative_attention_bias = weights[
                f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
            target.self_attention.relative_attention_max_distance = np.dtype("int32").type(T5_MAX_DISTANCE)
            if side == "decoder":
                target.attention.queries_scale = 1.0
                write.attention(target.attention, f"{block}.1.EncDecAttention", "q", "k", "v", "o", False)
                write.norm(target.attention.layer_norm, f"{block}.1.layer_norm")
            last = f"{block}.{2 if side == 'decoder' else 1}"
            write.linear(target.ffn.linear_0, f"{last}.DenseReluDense.wi")
            write.linear(target.ffn.linear_1, f"{last}.DenseReluDense.wo")
            write.norm(target.ffn.layer_norm, f"{last}.layer_norm")
    spec.decoder.projection.weight = weights["shared.weight"]
    spec.decoder.scale_outputs = shape["d_model"] ** -0.5
    return spec


def save_ctranslate2(folder, shape, weights):
    spec = (t5_spec if shape["family"] == "t5" else bart_like_spec)(shape, weights)
    vocabulary = [token(shape, i) for i in range(shape["vocab"])]
    if shape["family"] == "marian":
        vocabulary.pop()
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.config.eos_token, spec.config.unk_token = "</s>", "<unk>"
    if shape["family"] != "marian":
        spec.config.bos_token = "<s>" if shape["family"] == "bart" else "<pad>"
    spec.config.decoder_start_token = "<pad>" if shape["family"] == "t5" else "</s>"  # Marian: any, it starts from zeros
    spec.validate()
    spec.optimize()
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


def make(cache, name, shape):
    """(Hugging Face folder, CTranslate2 folder) under `cache`."""
    hugging_face, ctranslate2 = cache / name / "hf", cache / name / "ctranslate2"
    if not (hugging_face / "config.json").exists() or not (ctranslate2 / "model.bin").exists():
        weights = (draw_t5 if shape["family"] == "t5" else draw_bart_like)(shape)
        if not (hugging_face / "config.json").exists():
            save_hugging_face(hugging_face, shape, weights)
        if not (ctranslate2 / "model.bin").exists():
            save_ctranslate2(ctranslate2, shape, weights)
    return hugging_face, ctranslate2
