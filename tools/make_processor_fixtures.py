#!/usr/bin/env python3
"""Writes src/multimodal/testdata/image_processors.jsonl: what the PIL processors of transformers 5.23 make of small pictures.

    tools/make_processor_fixtures.py     # needs transformers==5.23.0, torch, pillow<13 in the interpreter's environment; tests do not

A line is {"files": {name: JSON}, "model_type", "picture": [width, height, seed], "shape", "extras", "stride", "values": every
stride-th, "sums": of eight equal parts}, or {"files", "model_type", "picture", "refused": the reference's words}. The pictures are
those of src/media/resize_testing.h, make_picture; a fourth number frames them with as many white pixels. And the seeds of the fuzzer
tests/fuzz/image_processor_fuzz/: two sides, a byte, the switches.
"""
import importlib
import json
import math
import pathlib

import numpy as np
import PIL
import transformers
from PIL import Image
from make_resize_fixtures import make_picture

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "src" / "multimodal" / "testdata" / "image_processors.jsonl"
SEEDS = ROOT / "tests" / "fuzz" / "image_processor_fuzz"
SHOWN = 40
MODULES = {"ViT": "vit", "DeiT": "deit", "CLIP": "clip", "Blip": "blip", "Donut": "donut", "Nougat": "nougat", "Pix2Struct": "pix2struct",
           "Mllama": "mllama", "Qwen2VL": "qwen2_vl"}
BY_MODEL = {"florence2": "CLIP", "qwen2_5_vl": "Qwen2VL", "blip": "Blip"}
PICTURES = [[33, 20, 1], [17, 41, 2], [24, 24, 3], [70, 9, 4], [1, 1, 5]]


def processor(name, switches):
    module = importlib.import_module(f"transformers.models.{MODULES[name]}.image_processing_pil_{MODULES[name]}")
    return getattr(module, f"{name}ImageProcessorPil").from_dict(switches)


def picture(width, height, seed, frame=0):
    inner = make_picture(width, height, seed)
    if not frame:
        return inner
    outer = Image.new("RGB", (width + 2 * frame, height + frame), (255, 255, 255))
    outer.paste(inner, (frame, 0))
    return outer


def features(name, switches, image):
    made = processor(name, switches)(image)
    extras = []
    if name == "Pix2Struct":
        mask = np.asarray(made["attention_mask"][0]) != 0
        values = np.asarray(made["flattened_patches"][0])[mask]
    elif name == "Mllama":
        values = made["pixel_values"][0, 0, :made["num_tiles"][0][0]]
        extras = made["aspect_ratio_ids"][0].tolist()
    elif name == "Qwen2VL":
        values, extras = made["pixel_values"], made["image_grid_thw"][0].tolist()
    else:
        values = made["pixel_values"][0]
    return np.asarray(values, dtype=np.float32), extras


def case(name, switches, place, files=None, model_type="any"):
    row = {"files": files or {"preprocessor_config.json": switches}, "model_type": model_type, "picture": place}
    try:
        values, extras = features(name, switches, picture(*place))
    except (ValueError, TypeError) as why:
        return row | {"refused": f"{type(why).__name__}: {why}"[:200]}
    flat = values.reshape(-1).astype(np.float64)
    stride = max(1, flat.size // SHOWN)
    return row | {"shape": list(values.shape), "extras": extras, "stride": stride, "values": [float(f"{x:.9g}") for x in flat[::stride]],
                  "sums": [float(f"{part.sum():.9g}") for part in np.array_split(flat, 8)]}


def named(name, **switches):
    return name, {"image_processor_type": f"{name}ImageProcessor", **switches}


def square(side):
    return {"height": side, "width": side}


def plain_cases():
    odd = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.25, 0.3]}
    yield named("ViT", size=square(12))
    yield named("ViT", size={"height": 9, "width": 14}, resample=3, **odd)
    yield named("ViT", size=[10, 7], resample=0, do_rescale=False)
    yield named("ViT", size=11, resample=1, do_normalize=False)
    yield named("ViT", size=8, resample=4, do_normalize=False, do_rescale=False)
    yield named("ViT", size={"shortest_edge": 8, "longest_edge": 19}, resample=5, rescale_factor=0.0078125)
    yield named("ViT", size={"shortest_edge": 6}, image_mean=0.3, image_std=0.7)
    yield named("ViT", size={"max_height": 10, "max_width": 16})
    yield named("ViT", size=9, default_to_square=False)
    yield named("ViT", do_resize=False, do_center_crop=True, crop_size=square(21))
    yield named("ViT", size=6, do_pad=True, pad_size={"height": 8, "width": 11})
    yield named("ViT", size=6, do_pad=True, pad_size=5)
    yield named("ViT", size=6, do_pad=True)
    yield named("ViT", size={"longest_edge": 9})
    yield named("DeiT", size=square(16), crop_size=square(11))
    yield named("DeiT", size=[9, 13], crop_size={"height": 14, "width": 6}, **odd)
    yield named("DeiT", size=8, do_center_crop=False)
    yield named("CLIP", size=12, crop_size=10)
    yield named("CLIP", size={"shortest_edge": 9}, crop_size={"height": 12, "width": 8}, resample=2)
    yield named("CLIP", size=square(14), do_center_crop=False, do_convert_rgb=None, image_seq_length=17, **odd)
    yield named("Blip", size=square(13))
    yield named("Blip", size=10, do_rescale=False, do_convert_rgb=False)


def page_cases():
    for name in ("Donut", "Nougat"):
        yield named(name, size={"height": 30, "width": 22})
        yield named(name, size=[20, 26], do_align_long_axis=True)
        yield named(name, size={"height": 18, "width": 27}, do_align_long_axis=True, resample=3)
        yield named(name, size={"height": 24, "width": 24}, resample=0)
        yield named(name, size={"height": 40, "width": 50}, do_resize=False)
        yield named(name, size={"height": 16, "width": 12}, do_resize=False)
        yield named(name, size={"height": 16, "width": 12}, do_pad=False)
        yield named(name, size={"height": 16, "width": 12}, do_thumbnail=False)
        yield named(name, size={"height": 21, "width": 16}, do_rescale=False, do_normalize=False)
    yield named("Donut", size={"height": 21, "width": 16}, do_center_crop=True, crop_size={"height": 12, "width": 19})
    yield named("Nougat", size={"height": 21, "width": 16}, do_crop_margin=False)


def patch_cases():
    yield named("Pix2Struct", max_patches=12, patch_size=square(4))
    yield named("Pix2Struct", max_patches=40, patch_size={"height": 2, "width": 5})
    yield named("Pix2Struct", max_patches=7, patch_size=3, do_normalize=False)
    yield named("Pix2Struct", max_patches=1, patch_size=square(8), is_vqa=False)
    for tiles in (1, 4, 6):
        yield named("Mllama", size=square(8), max_image_tiles=tiles)
    yield named("Mllama", size=square(30), resample=3, do_normalize=False)
    yield named("Mllama", size={"height": 8, "width": 9})
    yield named("Mllama", size=square(8), do_pad=False)
    pixels = {"patch_size": 3, "merge_size": 2, "temporal_patch_size": 2}
    yield named("Qwen2VL", min_pixels=200, max_pixels=900, **pixels)
    yield named("Qwen2VL", size={"shortest_edge": 2000, "longest_edge": 4000}, **pixels)
    yield named("Qwen2VL", size={"min_pixels": 5, "max_pixels": 6}, min_pixels=100, max_pixels=400, resample=2, **pixels)
    yield named("Qwen2VL", size={"min_pixels": 100, "max_pixels": 400}, **pixels)
    yield named("Qwen2VL", size={"longest_edge": 500}, min_pixels=90, **pixels)
    yield named("Qwen2VL", min_pixels=100, max_pixels=400, patch_size=4, merge_size=1, temporal_patch_size=1, do_normalize=False)
    yield named("Qwen2VL", do_resize=False, patch_size=4, merge_size=2)


def other_cases():
    for name, frames in (("Nougat", [[20, 31, 6, 5], [40, 12, 7, 9]]), ("Donut", [[20, 31, 6, 5]])):
        for frame in frames:
            yield case(*named(name, size={"height": 26, "width": 20}), frame)
    yield case(*named("Nougat", size={"height": 12, "width": 9}), [120, 160, 8, 3])  # reducing gap
    yield case(*named("Nougat", size={"height": 40, "width": 9}, do_resize=False), [120, 160, 8])
    yield case(*named("Qwen2VL", min_pixels=100, max_pixels=400, patch_size=3), [202, 1, 9])
    for place in ([97, 5, 11], [3, 64, 12], [40, 41, 13], [9, 130, 14], [200, 180, 15]):
        yield case(*named("Mllama", size=square(8)), place)
        yield case(*named("Qwen2VL", min_pixels=100, max_pixels=400, patch_size=3), place)
        yield case(*named("Pix2Struct", max_patches=30, patch_size=square(4)), place)
    old = {"feature_extractor_type": "ViTFeatureExtractor", "size": 9, "resample": 2, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    yield case("ViT", old, [12, 15, 1])
    old = {"feature_extractor_type": "DonutFeatureExtractor", "size": [14, 20], "do_align_long_axis": True}
    yield case("Donut", old, [25, 15, 1])
    fast = {"image_processor_type": "BlipImageProcessorFast", "size": 8, "data_format": "channels_first", "device": None, "return_tensors": None}
    yield case("Blip", fast, [9, 12, 1])
    for model_type, name in BY_MODEL.items():
        small = {"size": square(9)} if name != "Qwen2VL" else {"min_pixels": 64, "max_pixels": 400, "patch_size": 2}
        yield case(name, small, [14, 11, 2], model_type=model_type)
    nested = {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 7}, "crop_size": square(6)}
    files = {"processor_config.json": {"image_processor": nested, "processor_class": "CLIPProcessor"}, "preprocessor_config.json": {"size": 5}}
    yield case("CLIP", nested, [14, 11, 2], files)
    flat = {"image_processor_type": "CLIPImageProcessor", "size": 8, "crop_size": 8}
    yield case("CLIP", flat, [14, 11, 2], {"processor_config.json": {"processor_class": "CLIPProcessor"}, "preprocessor_config.json": flat})
    yield case("CLIP", flat | {"use_square_size": True, "crop_size": 4}, [14, 11, 2])


def rows():
    for cases in (plain_cases(), page_cases(), patch_cases()):
        for number, (name, switches) in enumerate(cases):
            for place in PICTURES[number % 3::3]:
                yield case(name, switches, place)
    yield from other_cases()


def main():
    if not PIL.__version__.startswith("12.") or not transformers.__version__.startswith("5.23."):
        raise SystemExit(f"Pillow {PIL.__version__}, transformers {transformers.__version__}: 12 and 5.23 are the reference")
    lines = list(rows())
    if any(not math.isfinite(value) for line in lines for value in line.get("values", [])):
        raise SystemExit("a value that is not finite")
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text("".join(json.dumps(line) + "\n" for line in lines))
    SEEDS.mkdir(exist_ok=True)
    for name in MODULES:
        switches = next(line["files"]["preprocessor_config.json"] for line in lines
                        if line["files"].get("preprocessor_config.json", {}).get("image_processor_type") == f"{name}ImageProcessor")
        (SEEDS / name.lower()).write_bytes(bytes([40, 30, 1]) + json.dumps(switches).encode())


if __name__ == "__main__":
    main()
