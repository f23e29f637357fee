"""The Florence-2 family of tests/models: tiny models with the traps of published ones, by transformers' names and by
Microsoft's, and what transformers makes of seeded features in double precision. tests/make_models.py makes them.

forward.jsonl as of the other vision families (tests/vision_family.py), with "ids" of the encoder; "encoder" has a row for each
of them, and "tower" the rows of the picture that stand among them.
"""
import json
import math

import numpy as np
import torch
import transformers

from speech_family import seeded

VOCABULARY = 40
IMAGE = 36

# name -> (fields of vision_config, of text_config, how the checkpoint is stored, pictures [height, width] of the requests).
# Maps that windows and strides do not divide, groups that are no heads, norms on either side of a convolution.
MODELS = {
    "florence2-float16": (
        {"depths": [1, 2], "patch_size": [5, 3], "patch_stride": [3, 2], "patch_padding": [2, 1], "patch_prenorm": [False, True],
         "embed_dim": [12, 18], "num_heads": [2, 3], "num_groups": [3, 2], "window_size": 3, "mlp_ratio": 1.5, "qkv_bias": True,
         "projection_dim": 16, "max_temporal_embeddings": 3, "max_position_embeddings": 6},
        {"d_model": 16, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 4,
         "encoder_ffn_dim": 24, "decoder_ffn_dim": 20, "max_position_embeddings": 24, "scale_embedding": True},
        {"dtype": torch.float16, "seed": 71},
        [(22, 16), (3, 20), (22, 16)]),
    "florence2-bfloat16-original": (  # as Microsoft publishes it: names, a transposed projection, a bias of the output layer
        {"depths": [1, 1], "patch_size": [3, 3], "patch_stride": [2, 1], "patch_padding": [1, 0], "patch_prenorm": [False, False],
         "embed_dim": [8, 14], "num_heads": [2, 2], "num_groups": [4, 7], "window_size": 2, "mlp_ratio": 4.0, "qkv_bias": True,
         "projection_dim": 12, "max_temporal_embeddings": 4, "max_position_embeddings": 5},
        {"d_model": 12, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 3, "decoder_attention_heads": 2,
         "encoder_ffn_dim": 20, "decoder_ffn_dim": 24, "max_position_embeddings": 20, "activation_function": "relu"},
        {"dtype": torch.bfloat16, "seed": 72, "original": True},
        [(11, 8), (6, 9), (11, 8)]),
}

SPECIAL = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}


def make_config(vision, text):
    """As transformers writes it."""
    return {"architectures": ["Florence2ForConditionalGeneration"], "model_type": "florence2", "is_encoder_decoder": True,
            "tie_word_embeddings": True, **SPECIAL, "decoder_start_token_id": 2, "image_token_id": IMAGE, "vocab_size": VOCABULARY,
            "text_config": {"model_type": "bart", "vocab_size": VOCABULARY, "is_encoder_decoder": True, **SPECIAL,
                            "decoder_start_token_id": 2, "forced_eos_token_id": 2, **text},
            "vision_config": {"model_type": "florence_vision", "in_channels": 3, **vision}}


def original_config(config):
    """As Microsoft writes it."""
    vision = dict(config["vision_config"])
    moments, sides = vision.pop("max_temporal_embeddings"), vision.pop("max_position_embeddings")
    vision |= {"model_type": "davit", "dim_embed": vision.pop("embed_dim"), "image_feature_source": ["spatial_avg_pool", "temporal_avg_pool"],
               "image_pos_embed": {"type": "learned_abs_2d", "max_pos_embeddings": sides},
               "visual_temporal_embedding": {"type": "COSINE", "max_temporal_embeddings": moments}}
    for key in ("in_channels", "mlp_ratio", "qkv_bias"):
        del vision[key]
    out = {**config, "vision_config": vision, "projection_dim": vision["projection_dim"],
           "text_config": {**config["text_config"], "model_type": "florence2_language"}}
    del out["image_token_id"], out["tie_word_embeddings"]
    return out


def preprocessor(pictures):
    height, width = pictures[0]
    size = {"height": height, "width": width}
    return {"image_processor_type": "CLIPImageProcessor", "do_resize": True, "size": size, "resample": 3, "do_center_crop": False,
            "crop_size": size, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
            "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}


def reference(config, storage):
    """The reference's model, in double precision. Microsoft's placeholder has no row of its own; the reference's has one."""
    whole = transformers.Florence2Config(**{key: value for key, value in config.items() if key != "architectures"})
    if storage.get("original"):
        whole.image_token_id = VOCABULARY
        whole.text_config.vocab_size = whole.vocab_size = VOCABULARY + 1
    whole._attn_implementation = "eager"
    return transformers.Florence2ForConditionalGeneration(whole).double().eval()


def make_weights(config, storage):
    """Every parameter of the reference, drawn anew: norms about 1, tables and products so that attention is selective."""
    generator = torch.Generator().manual_seed(storage["seed"])
    model, weights = reference(config, storage), {}
    tensors = dict(model.named_parameters(remove_duplicate=True))
    tensors |= {name: buffer for name, buffer in model.named_buffers() if name.endswith("pos_idx_to_embed")}
    for name, tensor in tensors.items():
        if "embed_tokens" in name or name == "lm_head.weight":
            continue
        shape = list(tensor.shape)
        if name.endswith("shared.weight"):
            shape[0] = VOCABULARY
        values = torch.randn(*shape, generator=generator)
        if "norm" in name and name.endswith(".weight"):
            values = 1 + 0.2 * values
        elif name.endswith(".bias"):
            values = 0.2 * values
        elif any(part in name for part in ("embed_positions", "embeddings", "shared", "pos_idx")):
            values = 0.5 * values
        elif len(shape) == 4 and shape[1] == 1:  # depthwise
            values = 0.3 * values
        else:
            values = values * (1.4 / math.sqrt(math.prod(shape[1:])))
        weights[name] = values
    if storage.get("original"):
        weights["final_logits_bias"] = 0.3 * torch.randn(1, VOCABULARY, generator=generator)
    return weights


def stored_names(weights, storage):
    """The weights by the names that the file has."""
    if not storage.get("original"):
        return weights
    stored = {}
    for name, tensor in weights.items():
        name = name.removeprefix("model.").replace("language_model.", "language_model.model.")
        if name == "final_logits_bias":
            name = "language_model." + name
        if name == "multi_modal_projector.image_projection.weight":
            name, tensor = "image_projection", tensor.T.contiguous()
        name = name.replace("multi_modal_projector.image_position_embed", "image_pos_embed").removeprefix("multi_modal_projector.")
        if name.startswith("vision_tower.convs"):
            name = name.replace(".conv.", ".proj.")
        if name.startswith("vision_tower.blocks"):
            for ours, theirs in ((".conv1.", ".conv1.fn.dw."), (".conv2.", ".conv2.fn.dw."), (".ffn.", ".ffn.fn.net."), (".norm2.", ".ffn.norm."),
                                 ("spatial_block.norm1.", "spatial_block.window_attn.norm."), ("channel_block.norm1.", "channel_block.channel_attn.norm."),
                                 ("_attn.qkv.", "_attn.fn.qkv."), ("_attn.proj.", "_attn.fn.proj.")):
                name = name.replace(ours, theirs)
        stored[name] = tensor
    stored["language_model.lm_head.weight"] = stored["language_model.model.shared.weight"].clone()
    stored["language_model.model.encoder.embed_tokens.weight"] = stored["language_model.model.shared.weight"].clone()
    return stored


def load(model, weights, storage):
    state = {name: tensor.to(storage["dtype"]).double() for name, tensor in weights.items()}
    bias = state.pop("final_logits_bias", None)
    shared = "model.language_model.shared.weight"
    if storage.get("original"):  # a row for the placeholder, which nothing reads
        state[shared] = torch.cat([state[shared], torch.zeros(1, state[shared].shape[1], dtype=torch.double)])
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and all("embed_tokens" in name or name == "lm_head.weight" for name in missing), (missing, unexpected)
    model.tie_weights()
    assert model.lm_head.weight is model.model.language_model.shared.weight
    return bias


@torch.inference_mode()
def write(folder, config, weights, storage, pictures):
    """The answers of the weights as they are stored; returns how many."""
    model = reference(config, storage)
    bias = load(model, weights, storage)
    image = model.config.image_token_id
    ids = lambda seed, count: [3 + int((value + 1) * (IMAGE - 3) / 2) for value in seeded(seed, count)]
    lines = []
    for seed, (height, width) in enumerate(pictures, start=1):
        shape = [3, height, width]
        pixels = torch.tensor(np.array(seeded(seed, math.prod(shape))).reshape(1, *shape))
        tower = model.model.get_image_features(pixels).pooler_output[0]
        words = [0, *ids(seed + 50, 2 * seed - 1), 2]
        # Places need not stand side by side.
        encoder_ids = [image] * (len(tower) - 1) + words[:1] + [image] + words[1:] if seed == 3 else [image] * len(tower) + words
        decoder_ids = [2, *ids(seed + 100, 4 * seed - 3)]
        out = model(input_ids=torch.tensor([encoder_ids]), pixel_values=pixels, decoder_input_ids=torch.tensor([decoder_ids]), use_cache=False)
        logits = out.logits[0][:, :VOCABULARY] + (0 if bias is None else bias)
        rounded = lambda tensor: [[round(float(value), 6) for value in row] for row in tensor]
        lines.append({"seed": seed, "shape": shape, "ids": encoder_ids, "decoder_ids": decoder_ids, "tower": rounded(tower),
                      "encoder": rounded(out.encoder_last_hidden_state[0]), "logits": rounded(logits)})
    (folder / "forward.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return len(lines)
