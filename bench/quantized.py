#!/usr/bin/env python3
"""Types of weights beside each other, in alternating rounds: int4 codes of checkpoints beside int8 and float16, bfloat16 encodes beside float32's.
`./dev bench quant` runs all rows.

    bench/quantized.py [--filter NAME,...] [--rounds N] [--json FILE] [--torch PYTHON]

Checkpoints are random, of published shapes, made once below .cache/bench; of them W4A16 ones are made, as compressed-tensors writes them
(pack-quantized, groups of 128, the output layer left alone). --torch: a Python with torch and transformers, whose bfloat16 encode is timed in the same
rounds. Each figure is of a process of its own, with two threads. Alone on the machine, please. A step of whisper-small reads 1500 positions of cross
keys and values for each sequence, which no type of weights makes smaller: 110 MB in float32, 28 MB in int8, beside 139 MB of int8 weights.
"""
import argparse
import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from machine import ROOT, cpu_model, num_processors
from transept_side import BINARY

CACHE = ROOT / ".cache" / "bench"
GROUP = 128
THREADS = 2
TORCH = """
import statistics, sys, time, torch
from transformers import WhisperConfig, WhisperModel
torch.set_num_threads(int(sys.argv[2]))
encoder = WhisperModel(WhisperConfig.from_pretrained(sys.argv[1])).encoder.to(torch.bfloat16).eval()
features = torch.randn(1, encoder.config.num_mel_bins, 3000).to(torch.bfloat16)
times = []
with torch.inference_mode():
    for _ in range(6):
        begin = time.perf_counter()
        encoder(features)
        times.append(time.perf_counter() - begin)
print(statistics.median(times[1:]) * 1000)
"""


def folder(shape):
    path = CACHE / f"{shape}-shape" / "hf"
    if not path.exists():
        subprocess.run([sys.executable, "bench/checkpoints.py", shape], cwd=ROOT, check=True, stdout=sys.stderr)  # which needs numpy
    return path


def is_packed(name, weight):
    """Linear layers of both sides; embeddings, positions, convolutions and the output layer stay."""
    leaf = name.removesuffix(".weight").split(".")[-1]
    return name.endswith(".weight") and weight.ndim == 2 and leaf in {
        "q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2", "q", "k", "v", "o", "wi", "wi_0", "wi_1", "wo"}


def pack(weight, np):
    """[n, k] float32 as weight_packed, weight_scale and weight_shape: code + 8 in four bits, the first lowest."""
    n, k = weight.shape
    groups = weight.reshape(n, k // GROUP, GROUP)
    scales = (np.abs(groups).max(axis=2) / 7).astype(np.float16)
    codes = np.clip(np.rint(groups / np.maximum(scales.astype(np.float32), 1e-12)[:, :, None]), -8, 7).astype(np.int32) + 8
    codes = codes.reshape(n, k // 8, 8).astype(np.uint32)
    packed = np.zeros((n, k // 8), dtype=np.uint32)
    for i in range(8):
        packed |= codes[:, :, i] << np.uint32(4 * i)
    return packed.view(np.int32), scales, np.array([n, k], dtype=np.int64)


def w4a16_folder(shape):
    """The folder of the shape in 4-bit codes, its other tensors in float16."""
    path = CACHE / f"{shape}-shape" / "w4a16-g128"
    if path.exists():
        return path
    import numpy as np
    from safetensors.numpy import load_file, save_file
    hf = folder(shape)
    tensors = {}
    for name, weight in load_file(hf / "model.safetensors").items():
        if not is_packed(name, weight):
            tensors[name] = weight.astype(np.float16) if weight.dtype == np.float32 else weight
            continue
        stem = name.removesuffix(".weight")
        for part, value in zip(("weight_packed", "weight_scale", "weight_shape"), pack(weight, np)):
            tensors[f"{stem}.{part}"] = value
    making = path.with_name("making")
    making.mkdir(exist_ok=True)
    for file in hf.iterdir():
        if file.suffix == ".json" and not file.name.endswith(".index.json"):
            (making / file.name).write_bytes(file.read_bytes())
    config = json.loads((hf / "config.json").read_text())
    weights = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": GROUP, "symmetric": True, "dynamic": False}
    config["quantization_config"] = {
        "quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed",
        "ignore": ["lm_head", "proj_out"], "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None}}}
    (making / "config.json").write_text(json.dumps(config))
    save_file(tensors, making / "model.safetensors", metadata={"format": "pt"})
    making.rename(path)
    return path


def bench(model, *flags):
    command = [str(BINARY), "bench", "latency", str(model), "--json", "--threads", str(THREADS), *map(str, flags)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout)


@dataclass
class Row:
    """Of each side a function that gives its figure; a ratio above 1 says that the first is faster. unit: "ms" or "tokens/s"."""
    name: str
    least: float
    unit: str
    sides: dict


def tokens(model, *flags):
    return lambda: bench(model, "--output-len", 128, "--repeats", 3, *flags)["decode_tokens_per_s"]


def encode(model, *flags):
    return lambda: bench(model, "--output-len", 2, "--repeats", 5, *flags)["encode_ms"]


def torch_encode(python, model):
    return lambda: float(subprocess.run([python, "-c", TORCH, str(model), str(THREADS)], check=True, capture_output=True, text=True).stdout)


def rows(torch_python):
    all_rows = []
    for shape, kv in (("t5-base", "float32"), ("whisper-small", "float32"), ("whisper-small", "int8")):
        plain, codes = folder(shape), w4a16_folder(shape)
        for batch, least in ((1, 1.4), (32 if shape == "t5-base" else 8, 0.9)):
            flags = ("--batch-size", batch, "--kv-cache-dtype", kv)
            all_rows.append(Row(f"{shape}, KV in {kv}, batch {batch}, W4A8 beside int8", least, "tokens/s", {
                "int4": tokens(codes, "--quantization", "int4", *flags), "int8": tokens(plain, "--quantization", "int8", *flags)}))
        all_rows.append(Row(f"{shape}, KV in {kv}, batch 1, codes in float beside float16", 1.5, "tokens/s", {
            "codes": tokens(codes, "--kv-cache-dtype", kv), "float16": tokens(plain, "--dtype", "float16", "--kv-cache-dtype", kv)}))
    for shape in ("whisper-tiny", "whisper-base", "whisper-small"):
        sides = {"bfloat16": encode(folder(shape), "--dtype", "bfloat16"), "float32": encode(folder(shape))}
        if torch_python:
            sides["torch's bfloat16"] = torch_encode(torch_python, folder(shape))
        all_rows.append(Row(f"{shape}, encode, bfloat16 beside float32", 1.6, "ms", sides))
    return all_rows


def measure(row, num_rounds):
    """{side: a figure a round}"""
    figures = {side: [] for side in row.sides}
    for _ in range(num_rounds):
        for side, run in row.sides.items():
            figures[side].append(run())
    return figures


def ratios(row, figures, other):
    ours = next(iter(row.sides))
    pairs = zip(figures[ours], figures[other])
    return sorted(b / a if row.unit == "ms" else a / b for a, b in pairs)


def line(row, figures):
    parts = [f"{side} {statistics.median(values):.4g} ({min(values):.4g} to {max(values):.4g}) {row.unit}" for side, values in figures.items()]
    told = []
    for other in list(row.sides)[1:]:
        of = ratios(row, figures, other)
        told.append(f"{statistics.median(of):.2f} ({of[0]:.2f} to {of[-1]:.2f})")
    return f"| {row.name} | {'; '.join(parts)} | {'; '.join(told)} | {row.least} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--filter", default="", help="rows whose names have one of these in them")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--torch", metavar="PYTHON")
    args = parser.parse_args()
    wanted = [name for name in args.filter.split(",") if name]
    print(f"{cpu_model()}, {num_processors()} processors, {THREADS} threads, medians (ranges) of {args.rounds} alternating rounds\n")
    print("| row | figures | ratio | at least |\n|---|---|---|---|")
    results = {}
    for row in rows(args.torch):
        if wanted and not any(name in row.name for name in wanted):
            continue
        results[row.name] = measure(row, args.rounds)
        print(line(row, results[row.name]), flush=True)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
