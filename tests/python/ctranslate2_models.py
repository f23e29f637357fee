"""Checkpoints of Hugging Face's layout as CTranslate2 reads them, in float32, without torch and transformers. For the
comparison with faster-whisper and CTranslate2: their own converters need both."""
import json
import math
import shutil
import struct
from pathlib import Path

import numpy as np
from ctranslate2.converters import utils
from ctranslate2.specs import common_spec, transformer_spec, whisper_spec

TYPES = {"F32": np.float32, "F16": np.float16}


def read_safetensors(path):
    """{name: float32 array}."""
    content = Path(path).read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    tensors = {}
    for name, entry in json.loads(content[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            values = np.frombuffer(content[8 + size + begin:8 + size + end], TYPES[entry["dtype"]])
            tensors[name] = values.reshape(entry["shape"]).astype(np.float32)
    return tensors


class Weights:
    """Tensors below a name."""

    def __init__(self, tensors, prefix=""):
        self.tensors, self.prefix = tensors, prefix

    def at(self, name):
        return Weights(self.tensors, f"{self.prefix}{name}.")

    def __getitem__(self, name):
        return self.tensors[self.prefix + name]

    def get(self, name):
        return self.tensors.get(self.prefix + name)


def set_linear(spec, weights):
    spec.weight = weights["weight"]
    if weights.get("bias") is not None:
        spec.bias = weights["bias"]


def set_norm(spec, weights):
    spec.gamma, spec.beta = weights["weight"], weights["bias"]


def set_attention(spec, weights, is_self):
    parts = []
    for name in ("q_proj", "k_proj", "v_proj"):
        parts.append(common_spec.LinearSpec())
        set_linear(parts[-1], weights.at(name))
    if is_self:
        utils.fuse_linear(spec.linear[0], parts)
    else:
        utils.fuse_linear(spec.linear[0], parts[:1])
        utils.fuse_linear(spec.linear[1], parts[1:])
    set_linear(spec.linear[-1], weights.at("out_proj"))


def set_layers(spec, weights, is_decoder):
    for i, layer in enumerate(spec.layer):
        own = weights.at(f"layers.{i}")
        set_attention(layer.self_attention, own.at("self_attn"), True)
        set_norm(layer.self_attention.layer_norm, own.at("self_attn_layer_norm"))
        if is_decoder:
            set_attention(layer.attention, own.at("encoder_attn"), False)
            set_norm(layer.attention.layer_norm, own.at("encoder_attn_layer_norm"))
        set_linear(layer.ffn.linear_0, own.at("fc1"))
        set_linear(layer.ffn.linear_1, own.at("fc2"))
        set_norm(layer.ffn.layer_norm, own.at("final_layer_norm"))


def write(spec, out):
    spec.validate()
    spec.optimize(quantization="float32")
    out.mkdir(parents=True, exist_ok=True)
    spec.save(str(out))


def convert_whisper(folder, out):
    """A Whisper folder; copies what faster-whisper reads besides."""
    folder, out = Path(folder), Path(out)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    generation = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    weights = Weights(read_safetensors(folder / "model.safetensors")).at("model")
    spec = whisper_spec.WhisperSpec(config["encoder_layers"], config["encoder_attention_heads"], config["decoder_layers"],
                                    config["decoder_attention_heads"])
    for name in ("conv1", "conv2"):
        set_linear(getattr(spec.encoder, name), weights.at(f"encoder.{name}"))
    for side, own in ((spec.encoder, weights.at("encoder")), (spec.decoder, weights.at("decoder"))):
        side.position_encodings.encodings = own["embed_positions.weight"]
        set_norm(side.layer_norm, own.at("layer_norm"))
        set_layers(side, own, side is spec.decoder)
    spec.decoder.embeddings.weight = weights["decoder.embed_tokens.weight"]
    spec.decoder.projection.weight = weights["decoder.embed_tokens.weight"]
    spec.register_vocabulary(whisper_vocabulary(folder, config["vocab_size"]))
    spec.config.suppress_ids = generation.get("suppress_tokens") or []
    spec.config.suppress_ids_begin = generation.get("begin_suppress_tokens") or []
    spec.config.lang_ids = sorted(generation.get("lang_to_id", {}).values())
    spec.config.alignment_heads = generation.get("alignment_heads") or []
    write(spec, out)
    for name in ("tokenizer.json", "preprocessor_config.json"):
        shutil.copy(folder / name, out / name)


def whisper_vocabulary(folder, size):
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    spelled = {**{i: t for t, i in tokenizer["model"]["vocab"].items()}, **{t["id"]: t["content"] for t in tokenizer["added_tokens"]}}
    known = max(spelled) + 1
    return [spelled[i] for i in range(known)] + [f"<|{i * 0.02:.2f}|>" for i in range(size - known)]


def convert_bart(folder, out):
    """A BART folder with a tokenizer.json and one vocabulary for both sides."""
    folder, out = Path(folder), Path(out)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    weights = Weights(read_safetensors(folder / "model.safetensors"))
    weights = weights.at("model") if any(name.startswith("model.") for name in weights.tensors) else weights
    activations = {"gelu": common_spec.Activation.GELU, "relu": common_spec.Activation.RELU}
    spec = transformer_spec.TransformerSpec.from_config(
        (config["encoder_layers"], config["decoder_layers"]), config["encoder_attention_heads"], pre_norm=False,
        activation=activations[config["activation_function"]], layernorm_embedding=True)
    for side, name in ((spec.encoder, "encoder"), (spec.decoder, "decoder")):
        own = weights.at(name)
        embeddings = side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings
        embeddings.weight = weights["shared.weight"]
        side.scale_embeddings = math.sqrt(config["d_model"]) if config["scale_embedding"] else 1.0
        side.position_encodings.encodings = own["embed_positions.weight"][2:]  # BART's offset
        set_norm(side.layernorm_embedding, own.at("layernorm_embedding"))
        set_layers(side, own, side is spec.decoder)
    spec.decoder.projection.weight = weights["shared.weight"]
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    spelled = {**{i: t for t, i in tokenizer["model"]["vocab"].items()}, **{t["id"]: t["content"] for t in tokenizer["added_tokens"]}}
    tokens = [spelled.get(i, f"<madeupword{i}>") for i in range(config["vocab_size"])]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.bos_token, spec.config.eos_token = spelled[config["bos_token_id"]], spelled[config["eos_token_id"]]
    spec.config.unk_token, spec.config.decoder_start_token = "<unk>", spelled[config["decoder_start_token_id"]]
    write(spec, out)
