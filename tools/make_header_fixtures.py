#!/usr/bin/env python3
"""Writes src/multimodal/testdata/picture_headers.jsonl: questions above pictures as Pix2Struct's processor of transformers 5.23 draws them.

    tools/make_header_fixtures.py     # needs transformers==5.23.0, torch, pillow==12.3.0 in the interpreter's environment, and Debian's
                                      # fonts-dejavu-core; tests need the font alone

A line is {"question", "picture": [width, height, seed], "lines", "header": [width, height, SHA-256 of the RGB bytes], "whole": the same of
the picture below the question}; some have "shape", "stride" and "values" of Pix2StructImageProcessorPil's patches, too. The pictures are
those of src/media/resize_testing.h, make_picture. The layout is Pillow's basic one (tests/images/headers.py).
"""
import hashlib
import json
import pathlib
import sys

import numpy as np
import PIL
import transformers
from PIL import ImageFont
from make_resize_fixtures import make_picture
from transformers.models.pix2struct import image_processing_pil_pix2struct as reference

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "images"))

import headers

OUT = ROOT / "src" / "multimodal" / "testdata" / "picture_headers.jsonl"
SHOWN = 40
SWITCHES = {"is_vqa": True, "max_patches": 60, "patch_size": {"height": 8, "width": 8}}
QUESTIONS = [
    "Generate underlying data table of the figure below:",  # DePlot's
    "What is the value of the AVATAR bar? To. LT, Wo Ye",
    "a",
    "  leading space, a\ttab,\tand a line\nend  in   it  ",
    "Which of these well-known mother-in-law jokes -- if any--is the e-mail of 2010-11? x--y a-b-c-d, half ½-½ " * 3,
    "naïve café, Größe, Łódź, Ж, αβγ, e\u0301, \u05e9\u05dc\u05d5\u05dd and \u65e5\u672c",
    "zero\u200bwidth \u202eright to left\u202c, soft\u00adhyphen, nul\u0000bell\u0007 box\u2028line\u00a0space",
    "W" * 85 + " " + "i" * 100 + "-" + "l" * 90,
    "-" * 90 + " a",
    "ÀÉÎ\u0302\u0302 over jgy\nÀÉÎ under",
    "word " * 90,
]
PICTURES = [[33, 20, 1], [1200, 40, 2], [25, 20, 3], [930, 31, 4]]
WITH_VALUES = 3


def digest(image):
    return [*image.size, hashlib.sha256(image.tobytes()).hexdigest()]


def use_basic_layout():
    given = ImageFont.truetype
    reference.ImageFont.truetype = lambda *args, **kwargs: given(*args, **{**kwargs, "layout_engine": ImageFont.Layout.BASIC})


def reference_whole(question, picture):
    made = reference.Pix2StructImageProcessorPil().render_header(np.asarray(picture).transpose(2, 0, 1), question, font_path=headers.FONT)
    return made.transpose(1, 2, 0).tobytes()


def patches(question, picture):
    given = reference.render_text
    reference.render_text = lambda text, **kwargs: given(text, **{**kwargs, "font_path": headers.FONT})
    made = reference.Pix2StructImageProcessorPil.from_dict(SWITCHES)(picture, header_text=question)
    reference.render_text = given
    mask = np.asarray(made["attention_mask"][0]) != 0
    values = np.asarray(made["flattened_patches"][0], dtype=np.float32)[mask]
    flat = values.reshape(-1)
    stride = max(1, flat.size // SHOWN)
    return {"shape": list(values.shape), "stride": stride, "values": [float(f"{value:.9g}") for value in flat[::stride]]}


def row(number, question):
    where = PICTURES[number % len(PICTURES)]
    picture = make_picture(*where)
    header, whole = headers.drawn(question, headers.FONT), headers.below(question, picture, headers.FONT)
    if header.tobytes() != reference.render_text(question, font_path=headers.FONT).tobytes():
        sys.exit(f"{question!r}: tests/images/headers.py does not draw what transformers draws")
    if whole.tobytes() != reference_whole(question, picture):
        sys.exit(f"{question!r}: tests/images/headers.py does not lay out what transformers lays out")
    made = {"question": question, "picture": where, "lines": headers.wrapped(question), "header": digest(header), "whole": digest(whole)}
    return {**made, **(patches(question, picture) if number < WITH_VALUES else {})}


def main():
    if not PIL.__version__.startswith("12.") or not transformers.__version__.startswith("5.23"):
        sys.exit(f"Pillow {PIL.__version__}, transformers {transformers.__version__}: 12 and 5.23 are the reference")
    use_basic_layout()
    rows = [row(number, question) for number, question in enumerate(QUESTIONS)]
    OUT.write_text("".join(json.dumps(made) + "\n" for made in rows))
    print(f"{OUT.relative_to(ROOT)}: {len(rows)} rows")


if __name__ == "__main__":
    main()
