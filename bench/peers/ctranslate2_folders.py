"""CTranslate2's folders of the same numbers as a Hugging Face folder, written through its specs and not by its converter,
which wants torch, transformers and tokenizer files. Needs numpy, safetensors and ctranslate2.
"""
import json
import math
import shutil

import numpy as np

from checkpoints import T5_MAX_DISTANCE
from shapes import WHISPER_END, WHISPER_NO_TIMES, WHISPER_WORDS, token


class SpecWriter:
    """Fills CTranslate2's layers from names of the Hugging Face folder."""

    def __init__(self, weights):
        self.weights = weights

    def linear(self, target, *names):
        target.weight = np.concatenate([self.weights[f"{name}.weight"] for name in names])
        if any(f"{name}.bias" in self.weights for name in names):  # Whisper's keys have none
            target.bias = np.concatenate([self.weights.get(f"{name}.bias", np.zeros_like(self.weights[f"{name}.weight"][:, 0])) for name in names])

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


def write_layer(write, target, layer, is_decoder):
    """BART's, Marian's and Whisper's layers have the same names."""
    parts = ("q_proj", "k_proj", "v_proj", "out_proj")
    write.attention(target.self_attention, f"{layer}.self_attn", *parts, True)
    write.norm(target.self_attention.layer_norm, f"{layer}.self_attn_layer_norm")
    if is_decoder:
        write.attention(target.attention, f"{layer}.encoder_attn", *parts, False)
        write.norm(target.attention.layer_norm, f"{layer}.encoder_attn_layer_norm")
    write.linear(target.ffn.linear_0, f"{layer}.fc1")
    write.linear(target.ffn.linear_1, f"{layer}.fc2")
    write.norm(target.ffn.layer_norm, f"{layer}.final_layer_norm")


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
            write_layer(write, target, f"model.{side}.layers.{i}", side == "decoder")
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


def whisper_spec(config, weights):
    from ctranslate2.specs import whisper_spec as specs
    spec = specs.WhisperSpec(config["encoder_layers"], config["encoder_attention_heads"], config["decoder_layers"],
                             config["decoder_attention_heads"])
    write = SpecWriter(weights)
    for name in ("conv1", "conv2"):
        write.linear(getattr(spec.encoder, name), f"model.encoder.{name}")
    spec.decoder.embeddings.weight = spec.decoder.projection.weight = weights["model.decoder.embed_tokens.weight"]
    spec.decoder.scale_embeddings = 1.0
    for side, part in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        part.position_encodings.encodings = weights[f"model.{side}.embed_positions.weight"]
        write.norm(part.layer_norm, f"model.{side}.layer_norm")
        for i, target in enumerate(part.layer):
            write_layer(write, target, f"model.{side}.layers.{i}", side == "decoder")
    return spec


def whisper_vocabulary(hf, size):
    """Words by id: of tokenizer.json where the folder has one; points in time behind them."""
    words = [f"tok{i}" for i in range(WHISPER_END)] + [f"<|{i}|>" for i in range(WHISPER_END, WHISPER_NO_TIMES + 1)]
    for index, word in WHISPER_WORDS.items():
        words[index] = f"<|{word}|>"
    if (hf / "tokenizer.json").exists():
        tokenizer = json.loads((hf / "tokenizer.json").read_text(encoding="utf-8"))
        by_id = {index: word for word, index in tokenizer["model"]["vocab"].items()}
        by_id.update({entry["id"]: entry["content"] for entry in tokenizer["added_tokens"]})
        words = [by_id[i] for i in range(len(by_id))]
    return words + [f"<|{i * 0.02:.2f}|>" for i in range(size - len(words))]


def save_whisper(folder, hf, quantization):
    config = json.loads((hf / "config.json").read_text())
    generation = json.loads((hf / "generation_config.json").read_text())
    spec = whisper_spec(config, load(hf))
    spec.register_vocabulary(whisper_vocabulary(hf, config["vocab_size"]))
    spec.config.suppress_ids = generation.get("suppress_tokens") or []
    spec.config.suppress_ids_begin = generation["begin_suppress_tokens"]
    spec.config.alignment_heads = generation["alignment_heads"]
    spec.config.lang_ids = sorted(generation["lang_to_id"].values())
    save(spec, folder, quantization)
    for name in ("tokenizer.json", "preprocessor_config.json"):
        if (hf / name).exists():
            shutil.copyfile(hf / name, folder / name)


def save_text(folder, hf, shape, quantization):
    spec = (t5_spec if shape["family"] == "t5" else bart_like_spec)(shape, load(hf))
    vocabulary = [token(shape, i) for i in range(shape["vocab"])]
    if shape["family"] == "marian":
        vocabulary.pop()
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.config.eos_token, spec.config.unk_token = "</s>", "<unk>"
    if shape["family"] != "marian":
        spec.config.bos_token = "<s>" if shape["family"] == "bart" else "<pad>"
    spec.config.decoder_start_token = "<pad>" if shape["family"] == "t5" else "</s>"  # Marian: any, it starts from zeros
    save(spec, folder, quantization)


def load(hf):
    from safetensors.numpy import load_file
    return {name: weights.astype(np.float32) for name, weights in load_file(hf / "model.safetensors").items()}


def save(spec, folder, quantization):
    spec.validate()
    spec.optimize(quantization=None if quantization == "float32" else quantization)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


def convert(hf, folder, shape, quantization):
    """`folder`, made once. `shape`: of a text model; None: the folder is a Whisper's, random or real."""
    if not (folder / "model.bin").exists():
        if shape is None:
            save_whisper(folder, hf, quantization)
        else:
            save_text(folder, hf, shape, quantization)
    return folder
