"""T5 and its relatives in tests/models: one tiny model each with the traps of published checkpoints. tests/make_models.py
makes them; the reference's answers follow transformers 4 where 5 differs (what scales the output, and what ties)."""
import math

import torch
import transformers
from transformers import AutoConfig

LONGEST = 150  # encoder inputs: T5 has no limit of its own; beyond every max_distance here

# name -> (config.json's own fields, how the checkpoint is stored, generation_config.json's own fields). Heads of 5 to 12
# columns whose sum is not d_model; layers of the two sides differ; distances end at 128 (not written), 20, 64 and 40.
MODELS = {
    "t5-float32": (  # v1.0: tied, and so scaled; every tied copy written out; no relative_attention_max_distance
        {"model_type": "t5", "d_model": 28, "d_kv": 6, "num_heads": 4, "d_ff": 48, "num_layers": 2, "feed_forward_proj": "relu",
         "relative_attention_num_buckets": 32, "n_positions": 512, "tie_word_embeddings": True},
        {"dtype": torch.float32, "written_out": True, "seed": 32},
        {"max_length": 40}),
    "t5-madlad-float16": (  # v1.1 as MADLAD-400 is published: gated, untied, the table only in the decoder's name
        {"model_type": "t5", "d_model": 20, "d_kv": 12, "num_heads": 2, "d_ff": 40, "num_layers": 3, "num_decoder_layers": 2,
         "feed_forward_proj": "gated-gelu", "dense_act_fn": "gelu_new", "is_gated_act": True,
         "relative_attention_max_distance": 20, "tie_word_embeddings": False},
        {"dtype": torch.float16, "shards": 2, "table": "decoder.embed_tokens.weight", "seed": 22},
        {"max_length": 36, "num_beams": 4, "early_stopping": True, "length_penalty": 0.6}),
    "mt5-bfloat16": (
        {"model_type": "mt5", "d_model": 25, "d_kv": 5, "num_heads": 4, "d_ff": 56, "num_layers": 3, "num_decoder_layers": 1,
         "feed_forward_proj": "gated-silu", "relative_attention_num_buckets": 16, "relative_attention_max_distance": 64,
         "layer_norm_epsilon": 1e-5, "tie_word_embeddings": False},
        {"dtype": torch.bfloat16, "seed": 23},
        {"max_length": 30, "no_repeat_ngram_size": 3}),
    "umt5-float32": (  # a bias of its own in every layer; published without a model_type
        {"model_type": None, "d_model": 24, "d_kv": 7, "num_heads": 4, "d_ff": 40, "num_layers": 2, "num_decoder_layers": 2,
         "feed_forward_proj": "gated-gelu", "relative_attention_num_buckets": 20, "relative_attention_max_distance": 40,
         "tie_word_embeddings": False},
        {"dtype": torch.float32, "seed": 24},
        {"max_length": 44}),
}

ARCHITECTURES = {"t5": "T5ForConditionalGeneration", "mt5": "MT5ForConditionalGeneration", None: "UMT5ForConditionalGeneration"}


def make_config(fields, vocabulary):
    fields = {"architectures": [ARCHITECTURES[fields["model_type"]]], "is_encoder_decoder": True, "vocab_size": vocabulary,
              "dropout_rate": 0.0, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, **fields}
    return {key: value for key, value in fields.items() if value is not None}


def is_t5(config):
    return config["architectures"][0] in ARCHITECTURES.values()


def make_weights(config, storage):
    """Scales chosen so that attention is selective and answers vary."""
    generator = torch.Generator().manual_seed(storage["seed"])
    draw = lambda *shape, scale: torch.randn(*shape, generator=generator) * scale
    width, heads, weights = config["d_model"], config["num_heads"], {}
    inner, gated = heads * config["d_kv"], config["feed_forward_proj"].startswith("gated")

    def linear(name, outputs, inputs, gain):
        weights[f"{name}.weight"] = draw(outputs, inputs, scale=gain / math.sqrt(inputs))

    def norm(name):
        weights[f"{name}.weight"] = 1 + draw(width, scale=0.1)

    def attention(name):
        for part, gain in (("q", 1.0), ("k", 1.0), ("v", 1.5)):
            linear(f"{name}.{part}", inner, width, gain)
        linear(f"{name}.o", width, inner, 1.0)

    def table(name, scale):
        weights[name] = draw(config["vocab_size"], width, scale=scale)
        weights[name][config["eos_token_id"]] *= 3.0  # the end token comes now and then

    table(storage.get("table", "shared.weight"), 0.3 if config["tie_word_embeddings"] else 1.2)  # tied, a token calls for itself
    for side in ("encoder", "decoder"):
        layers = config.get("num_decoder_layers", config["num_layers"]) if side == "decoder" else config["num_layers"]
        for i in range(layers):
            layer, last = f"{side}.block.{i}.layer", 2 if side == "decoder" else 1
            attention(f"{layer}.0.SelfAttention")
            norm(f"{layer}.0.layer_norm")
            if i == 0 or "model_type" not in config:
                bias = draw(config.get("relative_attention_num_buckets", 32), heads, scale=1.0)
                weights[f"{layer}.0.SelfAttention.relative_attention_bias.weight"] = bias
            if side == "decoder":
                attention(f"{layer}.1.EncDecAttention")
                norm(f"{layer}.1.layer_norm")
            for name in ("wi_0", "wi_1") if gated else ("wi",):
                linear(f"{layer}.{last}.DenseReluDense.{name}", config["d_ff"], width, 1.5)
            linear(f"{layer}.{last}.DenseReluDense.wo", width, config["d_ff"], 1.5)
            norm(f"{layer}.{last}.layer_norm")
        norm(f"{side}.final_layer_norm")
    if not config["tie_word_embeddings"]:
        table("lm_head.weight", 0.5)
    return weights


def load_model(folder, state, raw):
    """The reference, its tables as the file has them, scaled as transformers 4 does: where the head is tied."""
    architecture = raw["architectures"][0]
    config_class = getattr(transformers, architecture.removesuffix("ForConditionalGeneration") + "Config")
    config = AutoConfig.from_pretrained(folder) if "model_type" in raw else config_class.from_pretrained(folder)
    model = getattr(transformers, architecture)(config)
    tied = raw["tie_word_embeddings"]
    model.config.tie_word_embeddings = model.config.scale_decoder_outputs = tied
    shared = next(state[name] for name in ("shared.weight", "decoder.embed_tokens.weight") if name in state)
    model.shared.weight = torch.nn.Parameter(shared)
    model.encoder.embed_tokens = model.decoder.embed_tokens = model.shared
    model.lm_head = torch.nn.Linear(config.d_model, config.vocab_size, bias=False)
    tables = {"shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}
    state = {name: tensor for name, tensor in state.items() if name not in tables}
    state.setdefault("lm_head.weight", shared)
    missing, unexpected = model.double().load_state_dict(state, strict=False)
    assert not unexpected and set(missing) <= tables, (missing, unexpected)
    assert torch.equal(model.lm_head.weight, shared) == tied
    return model.double().eval()
