"""BLIP and Pix2Struct of tests/models: tiny checkpoints with the traps of published ones, and what transformers makes of
seeded features in double precision. tests/make_models.py makes them.

forward.jsonl as of the other vision families (tests/vision_family.py). Patches of Pix2Struct are numbered by "columns", from 1;
the reference runs over rows that pad and are masked, as its processor gives them.
"""
import json
import math

import numpy as np
import torch
import transformers

from speech_family import seeded

VOCABULARY = 40
POSITIONS = 18
PADDING = 3  # rows of Pix2Struct behind those in use

# name -> (model_type, vision_config, text_config, how the checkpoint is stored). Sides that differ in width (BLIP), heads whose
# size is no power of two, activations and epsilons that are not the classes'.
MODELS = {
    "blip-float16": (  # tied, as published; the class's end of text is not the model's
        "blip", {"hidden_size": 18, "intermediate_size": 28, "num_hidden_layers": 2, "num_attention_heads": 3, "image_size": 12, "patch_size": 6},
        {"hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 2},
        {"dtype": torch.float16, "seed": 71}),
    "blip-untied-bfloat16": (
        "blip", {"hidden_size": 20, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 4, "image_size": 16, "patch_size": 4,
                 "hidden_act": "gelu_new", "layer_norm_eps": 1e-3},
        {"hidden_size": 20, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 4, "hidden_act": "relu", "layer_norm_eps": 1e-2},
        {"dtype": torch.bfloat16, "seed": 72, "untied": True}),
    "pix2struct-float32": (  # an output layer of its own, as published; heads of the tower are no part of its width
        "pix2struct", {"hidden_size": 15, "patch_embed_hidden_size": 18, "d_ff": 22, "d_kv": 6, "num_hidden_layers": 2, "num_attention_heads": 2,
                       "seq_len": 12},
        {"hidden_size": 15, "d_ff": 20, "d_kv": 5, "num_layers": 2, "num_heads": 3, "relative_attention_num_buckets": 8,
         "relative_attention_max_distance": 12},
        {"dtype": torch.float32, "seed": 73, "patch": [2, 3], "untied": True}),
    "pix2struct-tied-float16": (
        "pix2struct", {"hidden_size": 16, "patch_embed_hidden_size": 12, "d_ff": 24, "d_kv": 4, "num_hidden_layers": 1, "num_attention_heads": 3,
                       "seq_len": 10, "dense_act_fn": "gelu", "layer_norm_eps": 1e-2},
        {"hidden_size": 16, "d_ff": 24, "d_kv": 8, "num_layers": 1, "num_heads": 2, "relative_attention_num_buckets": 6,
         "relative_attention_max_distance": 9, "dense_act_fn": "relu", "layer_norm_epsilon": 1e-2},
        {"dtype": torch.float16, "seed": 74, "patch": [2, 2]}),
}


def make_config(kind, vision, text, storage):
    tied = not storage.get("untied", False)
    architecture = {"blip": "BlipForConditionalGeneration", "pix2struct": "Pix2StructForConditionalGeneration"}[kind]
    ids = ({"bos_token_id": 38, "sep_token_id": 3, "eos_token_id": 2, "pad_token_id": 0, "max_position_embeddings": POSITIONS} if kind == "blip"
           else {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1})
    return {"architectures": [architecture], "model_type": kind, "tie_word_embeddings": tied,
            "vision_config": {"model_type": kind + "_vision_model", **vision},
            "text_config": {"model_type": kind + "_text_model", "vocab_size": VOCABULARY, "tie_word_embeddings": tied, **ids, **text}}


def preprocessor(kind, vision, storage):
    if kind == "pix2struct":
        height, width = storage["patch"]
        return {"image_processor_type": "Pix2StructImageProcessor", "is_vqa": False, "do_normalize": True, "max_patches": vision["seq_len"] - 2,
                "patch_size": {"height": height, "width": width}}
    side = vision["image_size"]
    return {"image_processor_type": "BlipImageProcessor", "do_resize": True, "size": {"height": side, "width": side}, "resample": 3}


def reference(config):
    """The reference's model, in double precision, with weights of its own."""
    whole = transformers.AutoConfig.for_model(**{key: value for key, value in config.items() if key != "architectures"})
    whole._attn_implementation = "eager"
    return getattr(transformers, config["architectures"][0])(whole).double().eval()


def is_copy(name, tied):
    return tied and name in ("text_decoder.cls.predictions.decoder.weight", "text_decoder.cls.predictions.decoder.bias", "decoder.lm_head.weight")


def make_weights(config, storage):
    """Every parameter of the reference, drawn anew: norms about 1, tables and products so that attention is selective."""
    generator = torch.Generator().manual_seed(storage["seed"])
    tied, weights = config["tie_word_embeddings"], {}
    for name, parameter in reference(config).named_parameters(remove_duplicate=False):
        if is_copy(name, tied) or (not tied and name == "text_decoder.cls.predictions.bias"):  # what no tied or untied file needs
            continue
        values = torch.randn(*parameter.shape, generator=generator)
        is_norm = any(part in name.lower() for part in ("norm",))
        is_table = any(part in name for part in ("embed_tokens", "embedder", "embeddings.weight", "position_embedding", "class_embedding",
                                                 "relative_attention_bias", "lm_head"))
        if is_norm and name.endswith(".weight"):
            values = 1 + 0.2 * values
        elif name.endswith(".bias"):
            values = 0.2 * values
        elif is_table:
            values = 0.5 * values
        else:
            scale = 1.4 if config["model_type"] == "blip" else 0.9  # Pix2Struct's scores have no scale
            values = values * (scale / math.sqrt(math.prod(parameter.shape[1:])))
        weights[name] = values
    return weights


def requests(config):
    """(seed, decoder ids, patches, columns): the longest answer first."""
    start = config["text_config"].get("bos_token_id", 0)
    ids = lambda seed, count: [start] + [3 + int((value + 1) * (VOCABULARY - 3) / 2) for value in seeded(seed, count - 1)]
    return [(seed, ids(seed + 100, count), patches, columns)
            for seed, count, patches, columns in ((1, POSITIONS, 9, 4), (2, 1, 1, 1), (3, 5, 6, 2))]


def pass_of_blip(model, config, seed, decoder_ids):
    side = config["vision_config"]["image_size"]
    shape = [3, side, side]
    pixels = torch.tensor(np.array(seeded(seed, math.prod(shape))).reshape(1, *shape))
    rows = model.vision_model(pixel_values=pixels).last_hidden_state
    out = model.text_decoder(input_ids=torch.tensor([decoder_ids]), encoder_hidden_states=rows, use_cache=False)
    return {"shape": shape}, rows[0], out.logits[0]


def pass_of_pix2struct(model, config, seed, decoder_ids, patches, columns):
    width = 2 + config["vision_config"]["patch_embed_hidden_size"]
    flat = np.array(seeded(seed, patches * width)).reshape(patches, width)
    flat[:, 0] = 1 + np.arange(patches) // columns
    flat[:, 1] = 1 + np.arange(patches) % columns
    padded = torch.tensor(np.concatenate([flat, np.zeros((PADDING, width))])[None])
    mask = (padded.sum(-1) != 0).double()
    assert mask.sum() == patches
    out = model(flattened_patches=padded, attention_mask=mask, decoder_input_ids=torch.tensor([decoder_ids]), use_cache=False)
    return {"shape": [patches, width], "columns": columns}, out.encoder_last_hidden_state[0][:patches], out.logits[0]


@torch.inference_mode()
def write(folder, config, weights, storage):
    """The answers of the weights as they are stored; returns how many."""
    model, tied = reference(config), config["tie_word_embeddings"]
    state = {name: tensor.to(storage["dtype"]).double() for name, tensor in weights.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and all(is_copy(name, tied) or name == "text_decoder.cls.predictions.bias" for name in missing), (missing, unexpected)
    decoder = model.text_decoder if config["model_type"] == "blip" else model
    assert (decoder.get_output_embeddings().weight is decoder.get_input_embeddings().weight) == tied
    rounded = lambda tensor: [[round(float(value), 6) for value in row] for row in tensor]
    lines = []
    for seed, decoder_ids, patches, columns in requests(config):
        if config["model_type"] == "blip":
            about, rows, logits = pass_of_blip(model, config, seed, decoder_ids)
        else:
            about, rows, logits = pass_of_pix2struct(model, config, seed, decoder_ids, patches, columns)
        lines.append({"seed": seed, **about, "decoder_ids": decoder_ids, "encoder": rounded(rows), "logits": rounded(logits)})
    (folder / "forward.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return len(lines)
