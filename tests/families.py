"""The BART-like families of tests/models: what a family's checkpoint is made of, and one tiny model each with the traps of
its published checkpoints. tests/make_models.py makes them."""
import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Layout:
    """What a checkpoint of the family holds, and how its decoder begins."""
    architecture: str
    model_type: str
    pre_norm: bool = False        # a norm behind the last layer of either side
    embedding_norm: bool = False
    offset: int | None = None     # rows of the learned position table before position 0; None: sinusoidal
    default: str = "start"        # start, bos or language: what stands in the default decoder prompt behind the start token


LAYOUTS = {layout.model_type: layout for layout in (
    Layout("BartForConditionalGeneration", "bart", embedding_norm=True, offset=2, default="bos"),
    Layout("MBartForConditionalGeneration", "mbart", pre_norm=True, embedding_norm=True, offset=2, default="language"),
    Layout("MarianMTModel", "marian"),
    Layout("PegasusForConditionalGeneration", "pegasus", pre_norm=True),
    Layout("M2M100ForConditionalGeneration", "m2m_100", pre_norm=True, default="language"),
    Layout("BlenderbotForConditionalGeneration", "blenderbot", pre_norm=True, offset=0),
    Layout("BlenderbotSmallForConditionalGeneration", "blenderbot-small", embedding_norm=True, offset=0),
    Layout("PLBartForConditionalGeneration", "plbart", embedding_norm=True, offset=2, default="language"),
)}


def sizes(width, encoder, decoder):
    """Fields of config.json; encoder and decoder: (layers, heads, width of the feed-forward)."""
    fields = {"d_model": width}
    for side, (layers, heads, ffn) in (("encoder", encoder), ("decoder", decoder)):
        fields |= {f"{side}_layers": layers, f"{side}_attention_heads": heads, f"{side}_ffn_dim": ffn}
    return fields


# name -> (config.json's own fields, how the checkpoint is stored, generation_config.json's own fields). Heads of 5 to 9
# columns, as many as not on the two sides; language families name their language by forced_bos_token_id. "table" is the
# spread of the scaled token table: where it is tied to the output layer, a small one makes every token as likely.
MODELS = {
    "mbart-bfloat16": (
        {"model_type": "mbart", **sizes(36, (2, 4, 40), (2, 6, 56)), "activation_function": "gelu", "scale_embedding": True,
         "decoder_start_token_id": 7, "normalize_before": True, "add_final_layer_norm": True, "normalize_embedding": True},
        {"dtype": torch.bfloat16, "final_logits_bias": True, "table": 1.5, "seed": 11},
        {"forced_bos_token_id": 9, "forced_eos_token_id": 2, "num_beams": 5, "early_stopping": True}),
    "marian-float16": (  # sinusoidal tables and every tied copy written out
        {"model_type": "marian", **sizes(28, (2, 4, 40), (3, 4, 40)), "activation_function": "swish", "scale_embedding": True,
         "decoder_start_token_id": 1, "static_position_embeddings": True, "share_encoder_decoder_embeddings": True,
         "decoder_vocab_size": 420},
        {"dtype": torch.float16, "final_logits_bias": True, "stored_positions": True, "written_out": True, "table": 1.5, "seed": 12},
        {"num_beams": 4, "bad_words_ids": [[1]], "renormalize_logits": True, "forced_eos_token_id": 2, "max_length": 40}),
    "marian-two-vocabularies": (  # its own table on each side, of an odd width; no position tables; bare keys
        {"model_type": "marian", **sizes(21, (1, 3, 24), (2, 3, 32)), "activation_function": "relu", "scale_embedding": False,
         "decoder_start_token_id": 1, "share_encoder_decoder_embeddings": False, "decoder_vocab_size": 450},
        {"dtype": torch.float32, "final_logits_bias": True, "bare": True, "seed": 13},
        {}),
    "marian-shortlist": (  # with a lexical shortlist beside it
        {"model_type": "marian", **sizes(26, (1, 2, 40), (2, 2, 40)), "activation_function": "relu", "scale_embedding": True,
         "decoder_start_token_id": 1, "share_encoder_decoder_embeddings": True, "decoder_vocab_size": 420},
        {"dtype": torch.float32, "final_logits_bias": True, "table": 1.5, "seed": 23, "shortlist": {"first": 16, "most": 12}},
        {"num_beams": 3, "bad_words_ids": [[1]], "max_length": 40}),
    "pegasus-untied": (
        {"model_type": "pegasus", **sizes(30, (1, 5, 48), (3, 3, 40)), "activation_function": "relu", "scale_embedding": True,
         "decoder_start_token_id": 1, "tie_word_embeddings": False, "extra_pos_embeddings": 1, "static_position_embeddings": True},
        {"dtype": torch.bfloat16, "seed": 14},
        {"num_beams": 3, "length_penalty": 0.6, "min_length": 4}),
    "m2m100-float32": (  # an odd width: the last column of the position table is 0
        {"model_type": "m2m_100", **sizes(27, (2, 3, 32), (2, 3, 40)), "activation_function": "relu", "scale_embedding": True},
        {"dtype": torch.float32, "table": 1.5, "seed": 15},
        {"forced_bos_token_id": 11, "max_length": 30}),
    "blenderbot-float16": (
        {"model_type": "blenderbot", **sizes(28, (1, 4, 40), (3, 4, 48)), "activation_function": "gelu", "scale_embedding": True,
         "decoder_start_token_id": 0, "layernorm_variant": "prelayernorm"},
        {"dtype": torch.float16, "final_logits_bias": True, "written_out": True, "table": 1.5, "seed": 16},
        {"num_beams": 6, "length_penalty": 0.65, "min_length": 5, "no_repeat_ngram_size": 3, "encoder_no_repeat_ngram_size": 3}),
    "blenderbot-small-float32": (
        {"model_type": "blenderbot-small", **sizes(25, (2, 5, 32), (2, 5, 32)), "activation_function": "gelu",
         "scale_embedding": True, "decoder_start_token_id": 0, "layernorm_variant": "xlm"},
        {"dtype": torch.float32, "final_logits_bias": True, "table": 1.5, "seed": 17},
        {}),
    "plbart-bfloat16": (  # the decoder begins with the language: it stands once, and is not forced again
        {"model_type": "plbart", **sizes(35, (2, 5, 40), (1, 7, 40)), "activation_function": "gelu", "scale_embedding": True,
         "decoder_start_token_id": 9, "normalize_before": False, "add_final_layer_norm": False, "normalize_embedding": True},
        {"dtype": torch.bfloat16, "final_logits_bias": True, "bare": True, "table": 1.5, "seed": 18},
        {"forced_bos_token_id": 9}),
}


def make_config(fields, vocabulary, positions):
    layout = LAYOUTS[fields.get("model_type", "bart")]
    return {"architectures": [layout.architecture], "model_type": layout.model_type, "is_encoder_decoder": True,
            "vocab_size": vocabulary, "max_position_embeddings": positions, "scale_embedding": False,
            "dropout": 0.0, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2,
            "forced_eos_token_id": None, **fields}


def make_weights(config, storage):
    """Names without `model.`; scales chosen so that attention is selective and answers vary."""
    generator = torch.Generator().manual_seed(storage["seed"])
    draw = lambda *shape, scale: torch.randn(*shape, generator=generator) * scale
    layout, width, positions, weights = LAYOUTS[config["model_type"]], config["d_model"], config["max_position_embeddings"], {}

    def linear(name, outputs, inputs, gain=1.0):
        weights[f"{name}.weight"] = draw(outputs, inputs, scale=gain / math.sqrt(inputs))
        weights[f"{name}.bias"] = draw(outputs, scale=0.1)

    def norm(name):
        weights[f"{name}.weight"] = 1 + draw(width, scale=0.1)
        weights[f"{name}.bias"] = draw(width, scale=0.1)

    def attention(name):
        for part, gain in (("k_proj", 2.5), ("v_proj", 1.5), ("q_proj", 2.5), ("out_proj", 1.0)):
            linear(f"{name}.{part}", width, width, gain)

    def table(name, rows):
        weights[name] = draw(rows, width, scale=storage.get("table", 0.5) / (math.sqrt(width) if config["scale_embedding"] else 1))
        weights[name][2] *= 2.4  # the end token comes now and then

    shared = config.get("share_encoder_decoder_embeddings", True)
    decoder_vocabulary = config["vocab_size"] if shared else config["decoder_vocab_size"]
    if shared:
        table("shared.weight", config["vocab_size"])
    else:
        table("encoder.embed_tokens.weight", config["vocab_size"])
        table("decoder.embed_tokens.weight", decoder_vocabulary)
    for side in ("encoder", "decoder"):
        if layout.offset is not None:
            weights[f"{side}.embed_positions.weight"] = draw(positions + layout.offset, width, scale=0.5)
        elif storage.get("stored_positions"):
            weights[f"{side}.embed_positions.weight"] = sinusoidal(positions, width)
        if layout.embedding_norm:
            norm(f"{side}.layernorm_embedding")
        for i in range(config[f"{side}_layers"]):
            layer = f"{side}.layers.{i}"
            attention(f"{layer}.self_attn")
            norm(f"{layer}.self_attn_layer_norm")
            if side == "decoder":
                attention(f"{layer}.encoder_attn")
                norm(f"{layer}.encoder_attn_layer_norm")
            linear(f"{layer}.fc1", config[f"{side}_ffn_dim"], width, 1.5)
            linear(f"{layer}.fc2", width, config[f"{side}_ffn_dim"], 1.5)
            norm(f"{layer}.final_layer_norm")
        if layout.pre_norm:
            norm(f"{side}.layer_norm")
    if not config.get("tie_word_embeddings", True):
        weights["lm_head.weight"] = draw(decoder_vocabulary, width, scale=0.5)
        weights["lm_head.weight"][2] *= 2.4
    if storage.get("final_logits_bias"):
        weights["final_logits_bias"] = draw(1, decoder_vocabulary, scale=0.5)
    return weights


def sinusoidal(positions, width):
    """Marian's and Pegasus's table: sines, then cosines, of position / 10000^(2i / width)."""
    wavelengths = 10000.0 ** (torch.arange(0, width, 2, dtype=torch.double) / width)
    angles = torch.arange(positions, dtype=torch.double)[:, None] / wavelengths
    return torch.cat([angles.sin(), angles[:, :width // 2].cos()], dim=1).float()


def write_out_copies(weights):
    """Every tied copy that published checkpoints hold."""
    for side in ("encoder", "decoder"):
        weights[f"{side}.embed_tokens.weight"] = weights["shared.weight"].clone()
