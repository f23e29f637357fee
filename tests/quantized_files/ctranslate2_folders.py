"""Folders of CTranslate2, by its converter of transformers' models. A code means code / weight_scale; its float types are what they are."""
import warnings

import numpy
import torch
import transformers
from ctranslate2.converters.transformers import BartLoader
from models import Made, write_folder

TYPES = ("int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16", "float32")
# The places of a layer's matrices in CTranslate2's fused ones, from top to bottom.
FUSED = {"self_attention/linear_0": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), "self_attention/linear_1": ("self_attn.out_proj",),
         "attention/linear_0": ("encoder_attn.q_proj",), "attention/linear_1": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
         "attention/linear_2": ("encoder_attn.out_proj",), "ffn/linear_0": ("fc1",), "ffn/linear_1": ("fc2",)}


def spec_of(bart, quantization):
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    model = transformers.BartForConditionalGeneration.from_pretrained(bart.folder)
    model.config.normalize_before = False
    spec = BartLoader().get_model_spec(model)
    tokens = [f"t{i}" for i in range(bart.config["vocab_size"])]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    for name in ("bos", "eos", "decoder_start"):
        setattr(spec.config, f"{name}_token", tokens[bart.config[f"{name}_token_id"]])
    spec.config.unk_token = tokens[3]
    spec.validate()
    spec.optimize(quantization=quantization)
    return spec


def floats_of(variables, name):
    """A variable in float32, through its aliases."""
    value = variables[name]
    if isinstance(value, str):
        return floats_of(variables, value)
    value = value.tensor.detach() if hasattr(value, "tensor") else torch.from_numpy(value.numpy())  # torch's, or what was quantised
    scale = variables.get(f"{name}_scale")
    value = value.to(torch.float32)
    if scale is None:
        return value
    scale = torch.from_numpy(numpy.asarray(scale.numpy(), dtype=numpy.float32))
    return value / (scale.unsqueeze(1) if scale.dim() else scale)


def folder_of(quantization):
    def make(bart, folder):
        stored = folder / "stored"
        stored.mkdir()
        spec = spec_of(bart, quantization)
        spec.save(str(stored))
        variables = dict(spec.variables(ordered=True))
        widened = dict(bart.tensors)
        widened["model.shared.weight"] = floats_of(variables, "decoder/embeddings/weight")
        widened["final_logits_bias"] = floats_of(variables, "decoder/projection/bias").unsqueeze(0)
        for side in ("encoder", "decoder"):
            positions = widened[f"model.{side}.embed_positions.weight"].clone()
            positions[2:] = floats_of(variables, f"{side}/position_encodings/encodings")
            widened[f"model.{side}.embed_positions.weight"] = positions
            for layer in range(bart.config[f"{side}_layers"]):
                for fused, parts in FUSED.items():
                    for kind in ("weight", "bias"):
                        if f"{side}/layer_{layer}/{fused}/{kind}" in variables:
                            whole = floats_of(variables, f"{side}/layer_{layer}/{fused}/{kind}")
                            for part, values in zip(parts, whole.chunk(len(parts))):
                                widened[f"model.{side}.layers.{layer}.{part}.{kind}"] = values
        widened |= norms_of(variables, bart)
        return Made(stored, write_folder(folder / "widened", bart.config, widened), bart.folder, bart.requests, quantization == "float32")
    return make


def norms_of(variables, bart):
    """Norms, which 16-bit types round as well."""
    places = {"self_attention/layer_norm": "self_attn_layer_norm", "attention/layer_norm": "encoder_attn_layer_norm", "ffn/layer_norm": "final_layer_norm"}
    found = {}
    for side in ("encoder", "decoder"):
        names = {f"{side}/layernorm_embedding": f"model.{side}.layernorm_embedding"}
        for layer in range(bart.config[f"{side}_layers"]):
            names |= {f"{side}/layer_{layer}/{place}": f"model.{side}.layers.{layer}.{name}" for place, name in places.items()}
        for place, name in names.items():
            for one, other in (("gamma", "weight"), ("beta", "bias")):
                if f"{place}/{one}" in variables:
                    found[f"{name}.{other}"] = floats_of(variables, f"{place}/{one}")
    return found


CTRANSLATE2 = {f"ctranslate2-{name}": folder_of(name) for name in TYPES}
