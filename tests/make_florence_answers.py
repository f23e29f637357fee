#!/usr/bin/env python3
"""Makes src/multimodal/testdata/florence_answers.jsonl: random texts of Florence-2's grammar, near it and off it, and what
transformers' Florence2Processor.post_process_generation makes of them.

    python3 -m venv .venv && .venv/bin/pip install torch transformers
    .venv/bin/python tests/make_florence_answers.py       # the same bytes every time
"""
import json
import random
from pathlib import Path

from transformers.models.florence2.processing_florence2 import Florence2PostProcessor, Florence2Processor

OUTPUT = Path(__file__).resolve().parent.parent / "src/multimodal/testdata/florence_answers.jsonl"
TASKS = ["<OCR>", "<OCR_WITH_REGION>", "<CAPTION>", "<OD>", "<DENSE_REGION_CAPTION>", "<CAPTION_TO_PHRASE_GROUNDING>",
         "<REFERRING_EXPRESSION_SEGMENTATION>", "<REGION_TO_SEGMENTATION>", "<OPEN_VOCABULARY_DETECTION>", "<REGION_PROPOSAL>", "<OTHER>"]
KINDS = ("ocr", "phrase_grounding", "pure_text", "description_with_bboxes", "description_with_polygons", "polygons", "bboxes",
         "description_with_bboxes_or_polygons")
BANNED = ["it", "the image", "a", "you"]
WORDS = ["a cat", "it", "the image", "café", " two words ", "you", "日本", "line\nend", "\n", " ", "x", "\u00a0a\u2003", "\t", "1<2", "a > b", "",
         "\u200b", "loc_5>", "it "]
MARKS = ["<sep>", "<poly>", "</poly>", "<od>", "</od>", "<box>", "</box>", "<bbox>", "<ground>", "<obj>", "<s>", "</s>", "<pad>", "<", ">",
         "<loc_", "<loc_>", "<loc_x>", "<loc_12", "<and>", "<<s>s>"]


def processor():
    """The parts of Florence2Processor that this needs: its own tables, and no files."""
    class Tokenizer:
        image_token, image_token_id, all_special_tokens = "<image>", 0, []

    class Images:
        image_seq_length = 1

    made = object.__new__(Florence2Processor)
    config = {kind: {} for kind in KINDS} | {"phrase_grounding": {"banned_grounding_tokens": BANNED}}
    try:
        Florence2Processor.__init__(made, Images(), Tokenizer(), post_processor_config=config)
    except Exception:  # the base class wants real parts, and comes last
        assert isinstance(made.post_processor, Florence2PostProcessor)
    return made


def places(rng, count):
    return "".join(f"<loc_{rng.choice([rng.randrange(1000), rng.randrange(1000), 0, 999])}>" for _ in range(count))


def piece(rng):
    kind = rng.randrange(10)
    if kind < 4:
        return places(rng, rng.choice([1, 2, 3, 4, 4, 4, 5, 6, 8, 8, 9, 12]))
    if kind < 7:
        return rng.choice(WORDS)
    if kind < 8:
        return "<poly>" + "<sep>".join(places(rng, rng.choice([2, 4, 6, 7])) for _ in range(rng.randrange(1, 4))) + "</poly>"
    return rng.choice(MARKS)


def text(rng):
    if rng.randrange(4) == 0:  # as the models write
        label = lambda: rng.choice(["a cat", "dog", "it", "café"])
        unit = rng.choice([lambda: label() + places(rng, 4), lambda: label() + places(rng, 8), lambda: label() + places(rng, 8), lambda: places(rng, 4),
                           lambda: places(rng, 10) + "<sep>" + places(rng, 8), lambda: label() + "<poly>" + places(rng, 6) + "<sep>" + places(rng, 8) + "</poly>"])
        return "</s><s>" + "".join(unit() for _ in range(rng.randrange(1, 5))) + "</s>"
    return "".join(piece(rng) for _ in range(rng.randrange(0, 12)))


def main():
    rng, made, lines = random.Random(20), processor(), []
    while len(lines) < 500:
        task, words = rng.choice(TASKS), text(rng)
        size = (rng.choice([1, 7, 640, 1000, rng.randrange(1, 33000)]), rng.choice([1, 480, 999, rng.randrange(1, 33000)]))
        answer = made.post_process_generation(text=words, task=task, image_size=size)
        lines.append(json.dumps({"task": task, "text": words, "size": size, "answer": answer}, ensure_ascii=False))
    OUTPUT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(len(lines), "answers")


main()
