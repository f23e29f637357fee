"""The composite vision family of tests/models: tiny VisionEncoderDecoderModels with the traps of published ones, and what
transformers makes of seeded features in double precision. tests/make_models.py makes them.

forward.jsonl as of the speech families (tests/speech_family.py); "encoder" has the tower's rows, before any projection.
"""
import json
import math

import numpy as np
import torch
import transformers

from speech_family import seeded

VOCABULARY = 40

# name -> (fields of the encoder, of the decoder, how the checkpoint is stored). Patches and pictures that are no squares,
# heads whose size is no power of two, and sides that differ in width, depth and heads.
MODELS = {
    "trocr-float16": (  # as TrOCR-base is published: no bias in q, k and v, K and V of the tower's width
        {"model_type": "vit", "hidden_size": 18, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 28,
         "image_size": 12, "patch_size": 6, "qkv_bias": False},
        {"model_type": "trocr", "d_model": 12, "decoder_layers": 2, "decoder_attention_heads": 2, "decoder_ffn_dim": 20,
         "max_position_embeddings": 18, "cross_attention_hidden_size": 18, "tie_word_embeddings": False},
        {"dtype": torch.float16, "seed": 61}),
    "trocr-small-bfloat16": (  # as TrOCR-small: DeiT, computed positions (behind the padding); and a copy of the tied table
        {"model_type": "deit", "hidden_size": 20, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 24,
         "image_size": [12, 18], "patch_size": [4, 6], "layer_norm_eps": 1e-3, "hidden_act": "gelu_new"},
        {"model_type": "trocr", "d_model": 16, "decoder_layers": 1, "decoder_attention_heads": 2, "decoder_ffn_dim": 24,
         "max_position_embeddings": 12, "activation_function": "relu", "scale_embedding": True, "layernorm_embedding": False,
         "use_learned_position_embeddings": False, "pad_token_id": 0},
        {"dtype": torch.bfloat16, "seed": 62, "copies": True}),
    "vit-gpt2-float32": (  # a pooler, the names of 5.x, an inner width; scores scaled by layer
        {"model_type": "vit", "hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
         "image_size": [8, 12], "patch_size": 4},
        {"model_type": "gpt2", "n_embd": 15, "n_layer": 2, "n_head": 3, "n_inner": 20, "n_positions": 14,
         "scale_attn_by_inverse_layer_idx": True, "layer_norm_epsilon": 1e-3},
        {"dtype": torch.float32, "seed": 63, "pooler": True, "by_class": True}),
    "vit-mbart-float16": (  # Donut's decoder; sides of one width: nothing is projected
        {"model_type": "vit", "hidden_size": 20, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
         "image_size": [16, 8], "patch_size": 8},
        {"model_type": "mbart", "d_model": 20, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 24,
         "max_position_embeddings": 14, "scale_embedding": True},
        {"dtype": torch.float16, "seed": 64}),
    "donut-float16": (  # as Nougat: rows of the tower are projected. 15 x 11 patches, then 8 x 6: filled up, shifted, merged
        {"model_type": "donut-swin", "image_size": [30, 21], "patch_size": 2, "embed_dim": 6, "depths": [2, 2], "num_heads": [2, 4],
         "window_size": 4, "mlp_ratio": 2.0, "num_layers": 2, "hidden_size": 12},
        {"model_type": "mbart", "d_model": 16, "decoder_layers": 1, "decoder_attention_heads": 2, "decoder_ffn_dim": 24,
         "max_position_embeddings": 12, "scale_embedding": True},
        {"dtype": torch.float16, "seed": 65, "by_class": True}),
}

# Published files, and those that transformers 5.x writes, have these names; its classes have the others.
PUBLISHED = [("layers.", "encoder.layer."), ("attention.q_proj", "attention.attention.query"),
             ("attention.k_proj", "attention.attention.key"), ("attention.v_proj", "attention.attention.value"),
             ("attention.o_proj", "attention.output.dense"), ("mlp.fc1", "intermediate.dense"), ("mlp.fc2", "output.dense")]


def make_config(encoder, decoder):
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    return {"architectures": ["VisionEncoderDecoderModel"], "model_type": "vision-encoder-decoder", "is_encoder_decoder": True,
            "tie_word_embeddings": False, **ids, "decoder_start_token_id": 2, "encoder": {**encoder, "num_channels": 3},
            "decoder": {"vocab_size": VOCABULARY, "is_decoder": True, "add_cross_attention": True, **ids, **decoder}}


def preprocessor(encoder):
    """preprocessor_config.json: pictures of the tower's size."""
    size = encoder["image_size"]
    height, width = size if isinstance(size, (list, tuple)) else (size, size)
    kind = {"vit": "ViT", "deit": "DeiT", "donut-swin": "Donut"}[encoder["model_type"]]
    own = {"DeiT": {"do_center_crop": False}, "Donut": {"do_align_long_axis": False, "do_thumbnail": True, "do_pad": True}}
    return {"image_processor_type": kind + "ImageProcessor", "do_resize": True, "size": {"height": height, "width": width},
            "resample": 2, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
            "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], **own.get(kind, {})}


def reference(config):
    """The reference's model, in double precision, with weights of its own."""
    side = lambda fields: transformers.AutoConfig.for_model(**fields)
    whole = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(side(config["encoder"]), side(config["decoder"]))
    whole._attn_implementation = "eager"
    model = transformers.VisionEncoderDecoderModel(config=whole).double().eval()
    positions = model.decoder.model.decoder.embed_positions if config["decoder"]["model_type"] == "trocr" else None
    if hasattr(positions, "weights"):  # computed, in the precision of the moment
        positions.weights = positions.weights.double()
    return model


def make_weights(config, storage):
    """Every parameter of the reference, drawn anew: norms about 1, tables and products so that attention is selective."""
    generator = torch.Generator().manual_seed(storage["seed"])
    model, weights = reference(config), {}
    tied = config["decoder"].get("tie_word_embeddings", True)
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if tied and name in ("decoder.output_projection.weight", "decoder.lm_head.weight"):
            continue
        if name.startswith("encoder.pooler.") and not storage.get("pooler"):
            continue
        shape = parameter.shape
        values = torch.randn(*shape, generator=generator)
        is_norm = any(part in name for part in ("norm", ".ln_"))
        is_table = any(part in name for part in ("embed_", "wte", "wpe", "position_embeddings", "_token", "output_projection"))
        if is_norm and name.endswith(".weight"):
            values = 1 + 0.2 * values
        elif name.endswith(".bias"):
            values = 0.2 * values
        elif is_table:
            values = 0.5 * values
        else:  # GPT-2's are [inputs, outputs]
            inputs = shape[0] if ".transformer.h." in name else math.prod(shape[1:])
            values = values * (1.4 / math.sqrt(inputs))
        weights[name] = values
    return weights


def stored_names(weights, storage):
    """The weights by the names that the file has, and what it has besides."""
    stored = {}
    for name, tensor in weights.items():
        if name.startswith("encoder.") and not storage.get("by_class"):
            for ours, theirs in PUBLISHED:
                name = name.replace(ours, theirs)
        stored[name] = tensor
    if storage.get("copies"):
        stored["decoder.output_projection.weight"] = stored["decoder.model.decoder.embed_tokens.weight"].clone()
    return stored


def requests(config):
    """(seed, decoder ids): the longest answer first."""
    ids = lambda seed, count: [2] + [3 + int((value + 1) * (VOCABULARY - 3) / 2) for value in seeded(seed, count - 1)]
    decoder = config["decoder"]
    most = decoder.get("max_position_embeddings", decoder.get("n_positions"))
    return [(seed, ids(seed + 100, count)) for seed, count in ((1, most), (2, 1), (3, 5))]


@torch.inference_mode()
def write(folder, config, weights, storage):
    """The answers of the weights as they are stored; returns how many."""
    model = reference(config)
    state = {name: tensor.to(storage["dtype"]).double() for name, tensor in weights.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    allowed = ("decoder.output_projection.weight", "decoder.lm_head.weight")
    assert not unexpected and all(name in allowed or "pooler" in name or name.endswith("_index") for name in missing), (missing, unexpected)
    tied = config["decoder"].get("tie_word_embeddings", True)
    assert (model.get_output_embeddings().weight is model.get_input_embeddings().weight) == tied
    size = config["encoder"]["image_size"]
    shape = [3, *(size if isinstance(size, list) else [size, size])]
    lines = []
    for seed, decoder_ids in requests(config):
        features = torch.tensor(np.array(seeded(seed, math.prod(shape))).reshape(1, *shape))
        out = model(pixel_values=features, decoder_input_ids=torch.tensor([decoder_ids]), use_cache=False)
        rounded = lambda tensor: [[round(float(value), 6) for value in row] for row in tensor]
        lines.append({"seed": seed, "shape": shape, "decoder_ids": decoder_ids, "encoder": rounded(out.encoder_last_hidden_state[0]),
                      "logits": rounded(out.logits[0])})
    (folder / "forward.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return len(lines)
