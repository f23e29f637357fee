"""GGUF files of a T5, written by llama.cpp's gguf package in each type that it quantises, and read back by it."""
import math

import gguf
import torch
from models import Made, write_folder, write_requests

WIDTH, HEADS, FFN, LAYERS, VOCABULARY = 64, 4, 128, 2, 320
CONFIG = {"architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "is_encoder_decoder": True, "vocab_size": VOCABULARY, "d_model": WIDTH,
          "d_kv": WIDTH // HEADS, "num_heads": HEADS, "d_ff": FFN, "num_layers": LAYERS, "num_decoder_layers": LAYERS, "feed_forward_proj": "relu",
          "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128, "n_positions": 512, "tie_word_embeddings": True,
          "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
TYPES = ("F16", "BF16", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0")
ATTENTION = {"SelfAttention": "attn", "EncDecAttention": "cross_attn"}


def tensors():
    """{Hugging Face's name: (llama.cpp's, float32 values)}"""
    random, found = torch.Generator().manual_seed(30), {}

    def put(name, other, *shape):
        scale = 1 if len(shape) == 1 else 1.5 / math.sqrt(shape[1])
        found[name] = (other, torch.ones(shape) + 0.1 * torch.randn(shape, generator=random) if len(shape) == 1 else
                       scale * torch.randn(shape, generator=random))
    put("shared.weight", "token_embd.weight", VOCABULARY, WIDTH)
    for side, short in (("encoder", "enc"), ("decoder", "dec")):
        put(f"{side}.final_layer_norm.weight", f"{short}.output_norm.weight", WIDTH)
        put(f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight", f"{short}.blk.0.attn_rel_b.weight", 32, HEADS)
        for layer in range(LAYERS):
            at, other = f"{side}.block.{layer}.layer", f"{short}.blk.{layer}"
            kinds = ["SelfAttention"] + (["EncDecAttention"] if side == "decoder" else [])
            for place, kind in enumerate(kinds):
                put(f"{at}.{place}.layer_norm.weight", f"{other}.{ATTENTION[kind]}_norm.weight", WIDTH)
                for part in "qkvo":
                    put(f"{at}.{place}.{kind}.{part}.weight", f"{other}.{ATTENTION[kind]}_{part}.weight", WIDTH, WIDTH)
            put(f"{at}.{len(kinds)}.layer_norm.weight", f"{other}.ffn_norm.weight", WIDTH)
            put(f"{at}.{len(kinds)}.DenseReluDense.wi.weight", f"{other}.ffn_up.weight", FFN, WIDTH)
            put(f"{at}.{len(kinds)}.DenseReluDense.wo.weight", f"{other}.ffn_down.weight", WIDTH, FFN)
    return found


def write_gguf(path, kind, found):
    """The file; {Hugging Face's name: the numbers that the library reads from it}."""
    writer, numbers = gguf.GGUFWriter(str(path), "t5"), {}
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(FFN)
    writer.add_block_count(LAYERS)
    writer.add_decoder_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_key_length(WIDTH // HEADS)
    writer.add_relative_attn_buckets_count(32)
    writer.add_decoder_start_token_id(0)
    writer.add_tokenizer_model("t5")
    writer.add_token_list([f"t{i}" for i in range(VOCABULARY)])
    writer.add_token_scores([-1.0] * VOCABULARY)
    writer.add_token_types([1] * VOCABULARY)
    writer.add_eos_token_id(1)
    writer.add_pad_token_id(0)
    for other, values in found.values():
        is_plain = values.dim() == 1 or values.shape[1] % 32
        form = gguf.GGMLQuantizationType["F32" if is_plain else kind]
        writer.add_tensor(other, gguf.quants.quantize(values.numpy(), form), raw_dtype=form)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    read = {tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type) for tensor in gguf.GGUFReader(str(path)).tensors}
    for name, (other, values) in found.items():
        numbers[name] = torch.from_numpy(read[other].copy()).reshape(values.shape)
    return numbers


def file_of(kind):
    def make(_, folder):
        found, stored = tensors(), folder / "stored"
        stored.mkdir()
        numbers = write_gguf(stored / "model.gguf", kind, found)
        plain = write_folder(folder / "plain", CONFIG, {name: values for name, (_, values) in found.items()})
        return Made(stored, write_folder(folder / "widened", CONFIG, numbers), plain, write_requests(folder / "requests.jsonl", "gguf", CONFIG))
    return make


GGUF = {f"gguf-{kind}": file_of(kind) for kind in TYPES}
