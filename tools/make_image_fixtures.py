#!/usr/bin/env python3
"""Writes src/media/testdata/images: small images of every kind that src/media/image_reader.h reads, and what Pillow makes of
them; and with them the seeds of the fuzzer tests/fuzz/image_reader_fuzz/.

    python3 -m venv V && V/bin/pip install pillow==12.3.0 && V/bin/python tools/make_image_fixtures.py     # tests need none of it

expected.jsonl has a file a line: {"file", "format", "channels", "orientation", "width" and "height" of the result, "white": SHA-256 of the
RGB bytes on white as transformers 5.23 lays them, "drop": the same with alpha dropped}. tests/images/oracle.py says how.
"""
import hashlib
import json
import random
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "images"))

import files
import oracle
from pictures import picture, samples
from random_files import saved

FOLDER = ROOT / "src" / "media" / "testdata" / "images"
SEEDS = ROOT / "tests" / "fuzz" / "image_reader_fuzz"
FORMATS = {".jpg": "JPEG", ".png": "PNG", ".webp": "WebP"}
PNG_COLORS = {0: "grey", 2: "rgb", 3: "palette", 4: "grey_alpha", 6: "rgb_alpha"}


def seeded(name):
    return random.Random(name)


def jpegs():
    """name -> (content, channels, orientation)"""
    out = {}
    photo = picture(seeded("photo"), 37, 27, "RGB")
    for name, subsampling in (("444", 0), ("422", 1), ("420", 2)):
        out[f"photo_{name}.jpg"] = saved(photo, "JPEG", quality=80, subsampling=subsampling), 3, 1
    out["progressive.jpg"] = saved(photo, "JPEG", quality=80, progressive=True), 3, 1
    out["restarts.jpg"] = saved(photo, "JPEG", quality=80, restart_marker_blocks=2), 3, 1
    out["grey.jpg"] = saved(picture(seeded("grey"), 30, 21, "L"), "JPEG", quality=80), 1, 1
    out["cmyk.jpg"] = saved(picture(seeded("cmyk"), 20, 19, "CMYK"), "JPEG", quality=80), 4, 1

    one = (1, 1)
    for name, samplings, options in (
            ("440", [(1, 2), one, one], {}), ("411", [(4, 1), one, one], {}), ("441", [(1, 4), one, one], {}),
            ("odd", [(2, 2), (2, 1), (1, 2)], {}), ("more_color", [one, (2, 2), one], {}),
            ("scan_each", [(2, 2), one, one], {"interleaved": False}), ("scan_each_restarts", [(2, 1), one, one], {"interleaved": False, "restart": 2}),
            ("rgb_adobe", [one] * 3, {"adobe": 0}), ("rgb_ids", [one] * 3, {"ids": [82, 71, 66]}), ("ycck", [(2, 2), one, one, (2, 2)], {"adobe": 2}),
            ("cmyk_adobe", [one] * 4, {"adobe": 0}), ("grey_2x2", [(2, 2)], {})):
        out[f"coefficients_{name}.jpg"] = files.jpeg(seeded(name), 35, 29, samplings, **options), len(samplings), 1

    small = saved(picture(seeded("turned"), 13, 9, "RGB"), "JPEG", quality=90)
    for i in range(1, 9):
        data = files.exif(i, "<>"[i % 2], (3, 4)[i // 2 % 2])
        out[f"turned_{i}.jpg"] = files.with_segments(small, files.exif_segment(data)), 3, i
    good = files.exif(6)
    for name, segments, orientation in (
            ("exif_in_two", [files.exif_segment(good[:14]), files.exif_segment(good[14:])], 6),
            ("exif_0", [files.exif_segment(files.exif(0))], 1), ("exif_9", [files.exif_segment(files.exif(9))], 1),
            ("exif_float", [files.exif_segment(files.exif(2, kind=11, count=2))], 1),
            ("exif_bytes", [files.exif_segment(files.exif(6, kind=1))], 1),
            ("exif_cut", [files.exif_segment(good[:-8])], 1), ("exif_header_alone", [files.exif_segment(good[:8])], 1),
            ("exif_short", [files.exif_segment(b"II*")], 1), ("exif_wrong_magic", [files.exif_segment(b"XX" + good[2:])], 1),
            ("exif_far_directory", [files.exif_segment(good[:4] + b"\xff\xff\xff\xff" + good[8:])], 1),
            ("exif_far_text", [files.exif_segment(files.exif(6, entries=[(0x010f, 2, 100, b"\xff\xff\0\0")]))], 1),
            ("exif_unknown_type", [files.exif_segment(files.exif(6, entries=[(0x010f, 99, 100, b"\xff\xff\0\0")]))], 6),
            ("exif_twice_in_one", [files.exif_segment(files.exif(3, entries=[(0x0112, 3, 1, b"\6\0\0\0")]))], 3),
            ("xmp", [files.xmp_segment(files.xmp(8))], 8), ("xmp_element", [files.xmp_segment(files.xmp(5, "tiff:Orientation>{}<"))], 5),
            ("xmp_after_exif", [files.exif_segment(good), files.xmp_segment(files.xmp(3))], 6),
            ("xmp_beside_none", [files.exif_segment(files.exif(6, tag=0x0113)), files.xmp_segment(files.xmp(3))], 3)):
        out[f"{name}.jpg"] = files.with_segments(small, *segments), 3, orientation
    out["trailing.jpg"] = small + b"trailing bytes", 3, 1
    return out


def png_of(name, width, height, depth, color, interlaced=False, before=(), **options):
    rng = seeded(name)
    before = list(before)
    most = (1 << depth) - 1
    if color == 3 and not any(chunk[0] == b"PLTE" for chunk in before):
        before.insert(0, (b"PLTE", rng.randbytes(3 << depth)))
    return files.png(samples(rng, width, height, files.CHANNELS[color], most), width, height, depth, color, interlaced, before, **options)


def pngs():
    out = {}
    for color, name in PNG_COLORS.items():
        for depth in files.DEPTHS[color]:
            for way in ("", "_interlaced"):
                full = f"{name}{depth}{way}.png"
                out[full] = png_of(full, 19, 14, depth, color, bool(way)), 3 if color == 3 else files.CHANNELS[color], 1
    for width, height in ((1, 1), (1, 5), (5, 1), (2, 3), (4, 4), (3, 9)):
        name = f"interlaced_{width}x{height}.png"
        out[name] = png_of(name, width, height, 8, 2, True), 3, 1

    # A transparent value is one that the picture has: the values are 0 to the most in order.
    for depth, key in ((1, 1), (2, 0), (2, 3), (4, 0), (8, 77), (16, 300)):
        rows = [[(x + 7 * y) % min(1 << depth, 400) for x in range(20)] for y in range(20)]
        out[f"key_grey{depth}_{key}.png"] = files.png(rows, 20, 20, depth, 0, before=[(b"tRNS", key.to_bytes(2, "big"))]), 1, 1
    for depth, scale in ((8, 1), (16, 257)):
        rows = [[v * scale for x in range(8) for v in (x, y, 5)] for y in range(8)]
        key = b"".join((v * scale).to_bytes(2, "big") for v in (3, 4, 5))
        out[f"key_rgb{depth}.png"] = files.png(rows, 8, 8, depth, 2, before=[(b"tRNS", key)]), 3, 1
    indices = [[(x + y) % 8 for x in range(9)] for y in range(9)]
    palette = (b"PLTE", bytes(range(0, 240, 10)))
    for name, alphas in (("one", b"\xff\xff\0\xff"), ("many", b"\x80\0\xff\x33\x01\xfe\x7f\xc0"), ("line_feed", b"\xff\0\n"), ("opaque", b"\xff" * 8),
                         ("few", b"\x40"), ("none", b"")):
        out[f"palette_alpha_{name}.png"] = files.png(indices, 9, 9, 8, 3, before=[palette, (b"tRNS", alphas)]), 4, 1
    out["palette_short.png"] = files.png(indices, 9, 9, 4, 3, before=[(b"PLTE", bytes(range(100, 112)))]), 3, 1
    out["palette_beside_rgb.png"] = png_of("beside", 6, 6, 8, 2, before=[palette]), 3, 1

    small = [[10 * x + y for x in range(7)] for y in range(5)]
    for i in range(1, 9):
        data = (b"eXIf", files.exif(i, "<>"[i % 2]))
        where = {"after" if i % 3 == 0 else "before": [data]}
        out[f"turned_{i}.png"] = files.png(small, 7, 5, 8, 0, i % 2 == 0, **where), 1, i
    packet = b"XML:com.adobe.xmp\0\0\0en\0\0" + files.xmp(6)
    out["xmp.png"] = files.png(small, 7, 5, 8, 0, before=[(b"iTXt", packet)]), 1, 6
    out["many_parts.png"] = files.png(small, 7, 5, 8, 0, idats=40), 1, 1
    whole = files.png(small, 7, 5, 8, 0, level=0)
    crc = whole.index(b"IEND") - 5
    out["wrong_checksum_of_data.png"] = whole[:crc] + bytes([whole[crc] ^ 1]) + whole[crc + 1:], 1, 1
    out["no_end.png"] = whole[:-12], 1, 1
    out["no_checksum_nor_end.png"] = whole[:-16], 1, 1
    out["trailing.png"] = whole + b"trailing bytes", 1, 1
    image = picture(seeded("apng"), 12, 10, "RGBA")
    for name, default in (("frame", False), ("default", True)):
        out[f"animated_{name}.png"] = saved(image, "PNG", save_all=True, append_images=[image.rotate(180)], default_image=default), 4, 1
    return out


def webps():
    out = {}
    rgb, rgba = picture(seeded("webp"), 33, 26, "RGB"), picture(seeded("webp alpha"), 31, 22, "RGBA")
    out["lossy.webp"] = saved(rgb, "WEBP", quality=70), 3, 1
    out["lossless.webp"] = saved(rgb, "WEBP", lossless=True), 3, 1
    out["lossy_alpha.webp"] = saved(rgba, "WEBP", quality=70), 4, 1
    out["lossy_alpha_rough.webp"] = saved(rgba, "WEBP", quality=70, alpha_quality=20), 4, 1
    out["lossless_alpha.webp"] = saved(rgba, "WEBP", lossless=True), 4, 1
    out["lossless_alpha_exact.webp"] = saved(rgba, "WEBP", lossless=True, exact=True), 4, 1
    cells = picture(seeded("cells"), 4, 4, "RGB").resize((90, 70), 0).quantize(12).convert("RGB")
    out["lossless_few_colors.webp"] = saved(cells, "WEBP", lossless=True, quality=100, method=6), 3, 1
    chunks = files.riff_chunks(out["lossy_alpha.webp"][0])
    plain = rgba.getchannel("A").tobytes()
    out["lossy_alpha_plain.webp"] = files.riff([(name, b"\0" + plain if name == b"ALPH" else data) for name, data in chunks]), 4, 1
    out["animated.webp"] = saved(rgb, "WEBP", save_all=True, append_images=[rgb.rotate(180)], lossless=True), 4, 1
    out["animated_alpha.webp"] = saved(rgba, "WEBP", save_all=True, append_images=[rgba.rotate(180)], quality=60), 4, 1
    for name, image, alpha, options in (("opaque", rgb, False, {"quality": 60}), ("alpha", rgba, True, {"lossless": True}),
                                        ("alpha_not_said", rgba, False, {"lossless": True})):
        frame = (4, 6, *image.size, saved(image, "WEBP", **options))
        out[f"animated_part_{name}.webp"] = files.animation(image.width + 7, image.height + 9, [frame], alpha), 4 if alpha else 3, 1
    small, clear = picture(seeded("turned webp"), 13, 9, "RGB"), picture(seeded("turned webp alpha"), 13, 9, "RGBA")
    for i in range(1, 9):
        image = clear if i % 3 == 0 else small
        out[f"turned_{i}.webp"] = saved(image, "WEBP", lossless=i % 2 == 0, exif=files.exif(i, "<>"[i % 2])), 4 if i % 3 == 0 else 3, i
    out["exif_with_name.webp"] = saved(small, "WEBP", exif=b"Exif\0\0" + files.exif(6)), 3, 6
    out["xmp.webp"] = saved(small, "WEBP", xmp=files.xmp(7)), 3, 7
    out["exif_not_said.webp"] = files.riff([(name, bytes([data[0] & ~8]) + data[1:] if name == b"VP8X" else data)
                                            for name, data in files.riff_chunks(out["exif_with_name.webp"][0])]), 3, 1
    out["trailing.webp"] = out["lossy.webp"][0] + b"trailing bytes", 3, 1
    return out


def expected(name, content, channels, orientation):
    row = {"file": name, "format": FORMATS[Path(name).suffix], "channels": channels, "orientation": orientation}
    for key, white in (("white", True), ("drop", False)):
        (row["width"], row["height"]), pixels = oracle.rgb(content, white)
        row[key] = hashlib.sha256(pixels).hexdigest()
    return row


def main():
    images = {**jpegs(), **pngs(), **webps()}
    for folder in (FOLDER, SEEDS):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    with open(FOLDER / "expected.jsonl", "w", encoding="utf-8") as rows:
        for name, (content, channels, orientation) in sorted(images.items()):
            (FOLDER / name).write_bytes(content)
            if len(content) < 1500 and not re.match(r"turned_[1-57-8]|exif_", name):
                (SEEDS / name).write_bytes(content)
            rows.write(json.dumps(expected(name, content, channels, orientation)) + "\n")


if __name__ == "__main__":
    main()
