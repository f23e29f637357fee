#!/usr/bin/env python3
"""The table of `transept inspect`'s figures in docs/sizes.md: models of published shapes, whose folders are made here with a
configuration and a header of weights, and holes in the place of the weights. Needs build/release/transept."""
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from repo import ROOT
from speed_picture import SIZES, with_table

sys.path.insert(0, str(ROOT / "bench"))
from shapes import SHAPES, WHISPER_POSITIONS

BINARY = ROOT / "build" / "release" / "transept"
WHISPER = SHAPES["whisper-small"]
# Published shapes beside those of the benchmarks. decoder: layers of the decoder, where they are fewer.
MODELS = {"whisper-tiny": SHAPES["whisper-tiny"], "whisper-base": SHAPES["whisper-base"], "whisper-small": WHISPER,
          "whisper-medium": {**WHISPER, "d_model": 1024, "layers": 24, "heads": 16, "ffn": 4096},
          "whisper-large-v3-turbo": {**WHISPER, "d_model": 1280, "layers": 32, "decoder": 4, "heads": 20, "ffn": 5120, "mels": 128, "vocab": 51866},
          "whisper-large-v3": {**WHISPER, "d_model": 1280, "layers": 32, "heads": 20, "ffn": 5120, "mels": 128, "vocab": 51866},
          "opus-mt": SHAPES["opus-mt"], "t5-base": SHAPES["t5-base"], "bart-large-cnn": SHAPES["bart-large-cnn"]}
LONGEST = {"t5": 1024}  # tokens of a request, where the family has no limit
KINDS = [("float32", ["--dtype", "float32"]), ("float16", ["--dtype", "float16"]), ("int8", ["--quantization", "int8"])]


def sides_of(shape):
    return (("encoder", shape["layers"]), ("decoder", shape.get("decoder", shape["layers"])))


def bart_like_tensors(shape):
    """(name, sizes) of the weights of a BART, Marian or Whisper."""
    family, width, ffn = shape["family"], shape["d_model"], shape["ffn"]
    norm = lambda name: ((f"{name}.weight", [width]), (f"{name}.bias", [width]))
    yield ("model.decoder.embed_tokens.weight" if family == "whisper" else "model.shared.weight"), [shape["vocab"], width]
    if family == "marian":
        yield "final_logits_bias", [1, shape["vocab"]]
    if family == "whisper":
        for name, channels in (("conv1", shape.get("mels", 80)), ("conv2", width)):
            yield f"model.encoder.{name}.weight", [width, channels, 3]
            yield f"model.encoder.{name}.bias", [width]
    for side, layers in sides_of(shape):
        positions = shape["positions"] + 2 * (family == "bart")
        yield f"model.{side}.embed_positions.weight", [WHISPER_POSITIONS if family == "whisper" and side == "encoder" else positions, width]
        if family != "marian":
            yield from norm(f"model.{side}." + ("layer_norm" if family == "whisper" else "layernorm_embedding"))
        for i in range(layers):
            layer = f"model.{side}.layers.{i}"
            for attention in ("self_attn", "encoder_attn")[:1 + (side == "decoder")]:
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    yield f"{layer}.{attention}.{part}.weight", [width, width]
                    if family != "whisper" or part != "k_proj":
                        yield f"{layer}.{attention}.{part}.bias", [width]
                yield from norm(f"{layer}.{attention}_layer_norm")
            for name, outputs, inputs in (("fc1", ffn, width), ("fc2", width, ffn)):
                yield f"{layer}.{name}.weight", [outputs, inputs]
                yield f"{layer}.{name}.bias", [outputs]
            yield from norm(f"{layer}.final_layer_norm")


def t5_tensors(shape):
    width, ffn = shape["d_model"], shape["ffn"]
    yield "shared.weight", [shape["vocab"], width]
    for side, layers in sides_of(shape):
        yield f"{side}.final_layer_norm.weight", [width]
        yield f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight", [32, shape["heads"]]
        attentions = ("SelfAttention", "EncDecAttention")[:1 + (side == "decoder")]
        for i in range(layers):
            block = f"{side}.block.{i}.layer"
            for j, attention in enumerate(attentions):
                yield from ((f"{block}.{j}.{attention}.{part}.weight", [width, width]) for part in "qkvo")
                yield f"{block}.{j}.layer_norm.weight", [width]
            last = f"{block}.{len(attentions)}"
            yield f"{last}.DenseReluDense.wi.weight", [ffn, width]
            yield f"{last}.DenseReluDense.wo.weight", [width, ffn]
            yield f"{last}.layer_norm.weight", [width]


def config_of(shape):
    family = shape["family"]
    common = {"model_type": family, "is_encoder_decoder": True, "vocab_size": shape["vocab"], "d_model": shape["d_model"], "pad_token_id": 1,
              "eos_token_id": 2, "bos_token_id": 0, "decoder_start_token_id": 2}
    if family == "t5":
        return {**common, "d_kv": shape["d_model"] // shape["heads"], "d_ff": shape["ffn"], "num_layers": shape["layers"], "num_heads": shape["heads"],
                "relative_attention_num_buckets": 32, "feed_forward_proj": "relu", "tie_word_embeddings": True, "n_positions": shape["positions"]}
    for side, layers in sides_of(shape):
        common.update({f"{side}_layers": layers, f"{side}_attention_heads": shape["heads"], f"{side}_ffn_dim": shape["ffn"]})
    if family == "whisper":
        return {**common, "num_mel_bins": shape.get("mels", 80), "max_source_positions": WHISPER_POSITIONS, "max_target_positions": shape["positions"]}
    marian = {"activation_function": "swish", "scale_embedding": True, "static_position_embeddings": True}
    return {**common, "max_position_embeddings": shape["positions"], **(marian if family == "marian" else {"activation_function": "gelu"})}


def make_folder(folder, shape):
    """A model without weights: the header of a file in float32, and a hole as long as they are."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config_of(shape)))
    if shape["family"] == "whisper":
        (folder / "preprocessor_config.json").write_text(json.dumps({
            "feature_extractor_type": "WhisperFeatureExtractor", "feature_size": shape.get("mels", 80), "sampling_rate": 16000, "hop_length": 160,
            "chunk_length": 30, "n_fft": 400}))
    header, end = {}, 0
    for name, sizes in (t5_tensors if shape["family"] == "t5" else bart_like_tensors)(shape):
        count = 4
        for size in sizes:
            count *= size
        header[name] = {"dtype": "F32", "shape": sizes, "data_offsets": [end, end + count]}
        end += count
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)


def inspect(binary, folder, shape, flags):
    """What `transept inspect` says, as JSON."""
    length = ["--max-model-len", str(LONGEST[shape["family"]])] if shape["family"] in LONGEST else []
    done = subprocess.run([str(binary), "inspect", str(folder), "--json", "--quick", "--quiet", *length, *flags], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{folder.name}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def mib(count):
    return f"{count / 2**20:.0f}" if count >= 10 * 2**20 else f"{count / 2**20:.1f}"


def inspected_table(binary):
    lines = ["| model | weights, millions | float32, MiB | float16 | int8 | KV of the longest request, float32 | KV, int8 |", "|---|---|---|---|---|---|---|"]
    memory = Path("/dev/shm")  # a disk would be read for the holes
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        for model, shape in MODELS.items():
            folder = Path(name) / model
            make_folder(folder, shape)
            kept = [inspect(binary, folder, shape, flags) for _, flags in KINDS]
            small = inspect(binary, folder, shape, ["--kv-cache-dtype", "int8"])
            millions = sum(part["weights"] for part in kept[0]["storage"]) / 1e6
            requests = [told["memory"]["kv_cache_bytes_of_longest_request"] for told in (kept[0], small)]
            lines.append("| " + " | ".join([model, f"{millions:.0f}", *(mib(told["memory"]["weights_bytes"]) for told in kept), *map(mib, requests)]) + " |")
    return "\n".join(lines) + "\n"


def main():
    SIZES.write_text(with_table(SIZES.read_text(encoding="utf-8"), "inspected", inspected_table(BINARY)), encoding="utf-8")


if __name__ == "__main__":
    main()
