#!/usr/bin/env python3
"""Writes the seeds of quantization_fuzz: a quantization_config, a zero byte, and a safetensors file with one quantised matrix.

    tools/make_quantization_seeds.py

A seed of each format, with the sizes that the target asks for (src/quantized/quantization_fuzz.cc). Codes are counted up, scales are 1.
"""

import json
import struct
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "tests/fuzz/quantization_fuzz"
BYTES = {"F32": 4, "F16": 2, "I64": 8, "I32": 4, "I8": 1, "U8": 1, "F8_E4M3": 1}
ONES = {"F32": struct.pack("<f", 1), "F16": b"\x00\x3c"}


def safetensors(tensors):
    """tensors: {name: (dtype, shape, data or None)}."""
    header, data = {}, b""
    for name, (dtype, shape, given) in tensors.items():
        count = 1
        for dim in shape:
            count *= dim
        size = count * BYTES[dtype]
        own = given if given is not None else ONES[dtype] * count if dtype in ONES else bytes(i % 251 for i in range(size))
        assert len(own) == size, name
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + size]}
        data += own
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def words(values):
    return struct.pack(f"<{len(values)}i", *values)


def compressed(form, weights, targets=("Linear",)):
    return {"quant_method": "compressed-tensors", "format": form, "ignore": ["lm_head", "re:.*\\.(out|fc[12])$"], "kv_cache_scheme": None,
            "config_groups": {"group_0": {"targets": list(targets), "weights": weights, "input_activations": None}}}


def state(shape, block):
    return json.dumps({"quant_type": "nf4", "blocksize": block, "shape": shape, "nested_blocksize": 256, "nested_offset": 0.5}).encode()


def seeds():
    group = [0] * 16 + [1] * 16 + [2] * 16 + [3] * 16
    shuffled = [group[i * 27 % 64] for i in range(64)]
    yield "packed", compressed("pack-quantized", {"num_bits": 4, "strategy": "group", "group_size": 16, "symmetric": False}), {
        "a.b.weight_packed": ("I32", [12, 8], None), "a.b.weight_scale": ("F16", [12, 4], None),
        "a.b.weight_shape": ("I64", [2], struct.pack("<2q", 12, 64)), "a.b.weight_zero_point": ("I32", [2, 4], None),
        "a.b.weight_g_idx": ("I32", [64], words(shuffled))}
    yield "integers", compressed("int-quantized", {"num_bits": 8, "strategy": "channel"}, ["re:a\\..*"]), {
        "a.b.weight": ("I8", [12, 40], None), "a.b.weight_scale": ("F32", [12, 1], None)}
    static = compressed("int-quantized", {"num_bits": 8, "strategy": "channel"})
    static["config_groups"]["group_0"]["input_activations"] = {"num_bits": 4, "symmetric": False, "strategy": "tensor", "dynamic": False}
    yield "rounded_inputs", static, {
        "a.b.weight": ("I8", [12, 40], None), "a.b.weight_scale": ("F32", [12, 1], None), "a.b.input_scale": ("F32", [1], struct.pack("<f", 0.1)),
        "a.b.input_zero_point": ("I8", [1], b"\xfd")}
    yield "floats", compressed("float-quantized", {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [8, 16]}), {
        "a.b.weight": ("F8_E4M3", [12, 40], None), "a.b.weight_scale": ("F32", [2, 3], None)}
    yield "gptq", {"quant_method": "gptq", "bits": 3, "group_size": 16, "desc_act": True, "checkpoint_format": "gptq"}, {
        "a.b.qweight": ("I32", [6, 32], None), "a.b.qzeros": ("I32", [4, 3], None), "a.b.scales": ("F16", [4, 32], None),
        "a.b.g_idx": ("I32", [64], words(shuffled))}
    yield "awq", {"quant_method": "awq", "bits": 4, "group_size": 16, "version": "gemm", "zero_point": True}, {
        "a.b.qweight": ("I32", [48, 3], None), "a.b.qzeros": ("I32", [3, 3], None), "a.b.scales": ("F16", [3, 24], None)}
    yield "bitsandbytes8", {"quant_method": "bitsandbytes", "load_in_8bit": True}, {
        "a.b.weight": ("I8", [12, 40], None), "a.b.SCB": ("F32", [12], None), "a.b.weight_format": ("U8", [], b"\0")}
    nested = state([7, 5], 16)
    yield "bitsandbytes4", {"quant_method": "bitsandbytes", "load_in_4bit": True}, {
        "a.b.weight": ("U8", [18, 1], None), "a.b.weight.absmax": ("U8", [3], None), "a.b.weight.quant_map": ("F32", [16], None),
        "a.b.weight.nested_absmax": ("F32", [1], None), "a.b.weight.nested_quant_map": ("F32", [256], None),
        "a.b.weight.quant_state.bitsandbytes__nf4": ("U8", [len(nested)], nested)}
    yield "fp8", {"quant_method": "fp8", "weight_block_size": [8, 16]}, {
        "a.b.weight": ("F8_E4M3", [12, 40], None), "a.b.weight_scale_inv": ("F32", [2, 3], None)}
    yield "quanto", {"quant_method": "quanto", "weights": "int8"}, {
        "a.b.weight._data": ("I8", [12, 40], None), "a.b.weight._scale": ("F32", [12, 1], None)}
    yield "quanto_floats", {"quant_method": "quanto", "weights": "none"}, {"a.b.weight": ("F32", [12, 40], None)}
    yield "several_groups", {**compressed("mixed-precision", {"num_bits": 8}), "config_groups": {
        name: {"targets": targets, "format": "naive-quantized", "weights": {"num_bits": 8, "strategy": "tensor"}}
        for name, targets in [("x", ["a.b"]), ("y", ["re:(a+|b?)*[^.]{1,3}\\w$"]), ("z", ["Embedding"])]}}, {
        "a.b.weight": ("I8", [12, 40], None), "a.b.weight_scale": ("F32", [1], None)}


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, config, tensors in seeds():
        (FOLDER / name).write_bytes(json.dumps(config).encode() + b"\0" + safetensors(tensors))


if __name__ == "__main__":
    main()
