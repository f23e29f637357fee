"""A BART of random weights that is as wide as ranks need for every type: 4 heads, inputs that bfloat16 divides into 4 leaves, and over 4096 ids.
tests/models are narrower. Standard library only, the same bytes every time. It knows ids alone."""
import json
import math
import random

from speech_model import write_safetensors

WIDTH, HEADS, FFN, LAYERS, POSITIONS, VOCABULARY = 128, 4, 256, 2, 96, 4200
OFFSET = 2  # BART's positions begin behind as many rows that nothing reads


def tensors(rng):
    """name -> (shape, values)"""
    found = {}

    def put(name, *shape, scale):
        found[name] = (shape, [rng.gauss(0, scale) for _ in range(math.prod(shape))])

    def linear(name, outputs, inputs):
        put(f"{name}.weight", outputs, inputs, scale=1.5 / math.sqrt(inputs))
        put(f"{name}.bias", outputs, scale=0.1)

    def norm(name):
        found[f"{name}.weight"] = ((WIDTH,), [1.0] * WIDTH)
        put(f"{name}.bias", WIDTH, scale=0.1)

    put("model.shared.weight", VOCABULARY, WIDTH, scale=0.3)
    put("final_logits_bias", 1, VOCABULARY, scale=0.1)
    for side in ("encoder", "decoder"):
        put(f"model.{side}.embed_positions.weight", POSITIONS + OFFSET, WIDTH, scale=0.3)
        norm(f"model.{side}.layernorm_embedding")
        for at in (f"model.{side}.layers.{layer}" for layer in range(LAYERS)):
            for kind in ("self_attn", "encoder_attn") if side == "decoder" else ("self_attn",):
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    linear(f"{at}.{kind}.{part}", WIDTH, WIDTH)
                norm(f"{at}.{kind}_layer_norm")
            linear(f"{at}.fc1", FFN, WIDTH)
            linear(f"{at}.fc2", WIDTH, FFN)
            norm(f"{at}.final_layer_norm")
    return found


def make_model(folder):
    """The folder as Hugging Face has it."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"architectures": ["BartForConditionalGeneration"], "model_type": "bart", "is_encoder_decoder": True, "vocab_size": VOCABULARY,
              "max_position_embeddings": POSITIONS, "scale_embedding": False, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2,
              "decoder_start_token_id": 2, "forced_eos_token_id": None, "d_model": WIDTH, "encoder_layers": LAYERS, "decoder_layers": LAYERS,
              "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS, "encoder_ffn_dim": FFN, "decoder_ffn_dim": FFN,
              "activation_function": "gelu"}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    write_safetensors(folder / "model.safetensors", tensors(random.Random(32)))
    return config
