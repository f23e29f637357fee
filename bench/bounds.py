#!/usr/bin/env python3
"""The least time that this machine allows for a workload: operations over the peak of their type, bytes over the read
bandwidth of a block as large, whichever is more.

    bench/bounds.py [--workloads FILE...] [--quantization int8] [--dtype bfloat16] [--kv-cache-dtype int8]

Counted are matrix products, attention, the exponentials of its softmax, and one read of the weights and caches that a step
needs; all else is free and overlaps. So it is a bound and no forecast. Peaks are measured at the start (machine_bench).
"""
import argparse
import bisect
import json
from pathlib import Path

import machine
import workloads
from shapes import WHISPER_MELS, WHISPER_POSITIONS, shape_of

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "int8": 1}
# Peaks that a type's products may run at. int8 weights leave attention in 16 bits.
UNITS = {"float32": ["float32"], "bfloat16": ["amx_bfloat16", "bfloat16", "float32"], "float16": ["float16", "float32"],
         "int8": ["amx_int8", "int8", "float32"]}
ATTENTION_UNITS = ["amx_bfloat16", "bfloat16", "float16", "float32"]
EXP_OPERATIONS = 20  # float32 operations of one exponential: reduction and a polynomial


def read_bandwidth(peaks, num_bytes):
    """Bytes a second for a block of that size that is read over and over: between the two nearest sizes measured."""
    points = sorted((size * 2**20, speed) for size, speed in ((int(k), v) for k, v in peaks["read"].items()))
    at = bisect.bisect_left(points, (num_bytes, 0))
    if at == 0:
        return points[0][1]
    if at == len(points):
        return points[-1][1]
    (low, slow), (high, fast) = points[at - 1], points[at]
    return slow + (num_bytes - low) / (high - low) * (fast - slow)


def operations_per_s(peaks, units):
    return max(peaks["operations"][unit] for unit in units if unit in peaks["operations"])


def decoder_weights(shape):
    """Numbers that a step reads: the layers but for cross K and V, and the output matrix."""
    d = shape["d_model"]
    return shape["layers"] * (6 * d * d + 2 * d * shape["ffn"]) + shape["vocab"] * d


def encoder_weights(shape):
    """The encoder's layers, and cross K and V of the decoder's."""
    d = shape["d_model"]
    return shape["layers"] * (4 * d * d + 2 * d * shape["ffn"]) + shape["layers"] * 2 * d * d


def attention_units(weights):
    return UNITS["float32"] if weights == "float32" else ATTENTION_UNITS


def step_bound(shape, source, past, groups, beams, weights, cache, peaks):
    """{seconds, by}: one decode step. Beams read the cross keys and values of their group once, and their own of the past."""
    d, layers, rows = shape["d_model"], shape["layers"], groups * beams
    num_weights = decoder_weights(shape)
    num_bytes = num_weights * BYTES[weights] + 2 * d * layers * (groups * source + rows * past) * BYTES[cache]
    by_bytes = num_bytes / read_bandwidth(peaks, num_bytes)
    attention = 4 * rows * (source + past) * d * layers
    by_operations = (2 * rows * num_weights / operations_per_s(peaks, UNITS[weights])
                     + attention / operations_per_s(peaks, attention_units(weights)))
    return {"seconds": max(by_bytes, by_operations), "by": "bytes" if by_bytes >= by_operations else "operations",
            "bytes": num_bytes, "operations": 2 * rows * num_weights + attention}


def encode_bound(shape, source, groups, weights, peaks):
    """{seconds, by}: encoding so many inputs, and their cross keys and values."""
    d, layers = shape["d_model"], shape["layers"]
    num_weights = encoder_weights(shape)
    products = 2 * groups * source * num_weights
    attention = 4 * groups * source * source * d * layers
    if shape["family"] == "whisper":  # its two convolutions, which stay in 16 bits
        attention += 2 * groups * (2 * source * 3 * WHISPER_MELS * d + source * 3 * d * d)
    exponentials = groups * shape["heads"] * source * source * layers * EXP_OPERATIONS
    by_operations = (products / operations_per_s(peaks, UNITS[weights])
                     + attention / operations_per_s(peaks, attention_units(weights))
                     + exponentials / operations_per_s(peaks, ["float32"]))
    num_bytes = num_weights * BYTES[weights]
    by_bytes = num_bytes / read_bandwidth(peaks, num_bytes)
    return {"seconds": max(by_bytes, by_operations), "by": "bytes" if by_bytes >= by_operations else "operations",
            "bytes": num_bytes, "operations": products + attention}


def bound(work, shape, weights, cache, peaks):
    """{encode_ms, step_ms, step_by, tokens_per_s, call_ms} at best. A clip's call is as long as its speech: no such figure."""
    source = work.get("source_tokens", WHISPER_POSITIONS)
    groups = workloads.groups(work)
    target = workloads.mean_target_tokens(work) if work["task"] != "transcribe" else 64
    encode = encode_bound(shape, source, groups, weights, peaks)
    step = step_bound(shape, source, target / 2, groups, work["beam"], weights, cache, peaks)
    figures = {"encode_ms": encode["seconds"] * 1e3, "encode_by": encode["by"], "step_ms": step["seconds"] * 1e3, "step_by": step["by"]}
    if work["task"] != "transcribe":
        seconds = encode["seconds"] + target * step["seconds"]
        figures["tokens_per_s"] = groups * target / seconds
        if work["task"] != "clients":  # whose call is all of their requests
            figures["call_ms"] = seconds * 1e3
    return figures


def clip_bound(shape, windows, steps, beams, weights, cache, peaks):
    """Seconds at least of a clip that took so many windows and steps."""
    encode = encode_bound(shape, WHISPER_POSITIONS, 1, weights, peaks)["seconds"]
    step = step_bound(shape, WHISPER_POSITIONS, 64, 1, beams, weights, cache, peaks)["seconds"]
    return windows * encode + steps * step


def weights_dtype(dtype, quantization, weight_bytes=None):
    """The type that products run in: what most of the weights are kept in, where a report says it (weight_bytes: {type: bytes});
    else the quantisation's, else the arithmetic's. `auto` counts as float32."""
    if weight_bytes:
        return max(weight_bytes, key=weight_bytes.get)
    if quantization == "int8":
        return "int8"
    return dtype if dtype in BYTES else "float32"


def cache_dtype(kv_cache_dtype, weights):
    if kv_cache_dtype in BYTES:
        return kv_cache_dtype
    return "float32" if weights == "int8" else weights


def add_dtype_flags(parser):
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--quantization", default="none")
    parser.add_argument("--kv-cache-dtype", default="auto")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", nargs="+", type=Path)
    parser.add_argument("--threads", type=int, default=machine.num_processors())
    add_dtype_flags(parser)
    options = parser.parse_args()
    weights = weights_dtype(options.dtype, options.quantization)
    peaks = machine.measure(options.threads)
    print(json.dumps(peaks))
    for work in workloads.load(options.workloads):
        figures = bound(work, shape_of(work["shape"]), weights, cache_dtype(options.kv_cache_dtype, weights), peaks)
        print(f"{work['name']:<40}", "  ".join(f"{key} {value if isinstance(value, str) else f'{value:.3f}'}" for key, value in figures.items()))


if __name__ == "__main__":
    main()
