#!/usr/bin/env python3
"""Writes published.jsonl: what transformers makes of the templates in templates/ and the conversations. Run by hand, with transformers 5.23:

    make_published.py > published.jsonl

The templates are written anew, with the constructs that published ones have (Zephyr, Mistral, Llama 3.1 and 3.2 Vision, Qwen2-VL and Qwen2.5-VL,
Qwen3, Qwen3-Coder, Gemma, Granite). src/text/chat/published_test.cc and differential.py read the file.
"""
import json
import logging
from pathlib import Path

import oracle

HERE = Path(__file__).resolve().parent


def cases():
    """(names, {template, messages, variables}) of each template and conversation."""
    conversations = json.loads((HERE / "conversations.json").read_text(encoding="utf-8"))
    for path in sorted((HERE / "templates").glob("*.jinja")):
        for name, conversation in conversations.items():
            yield {"template": path.name, "conversation": name}, {"template": path.read_text(encoding="utf-8"), **conversation}


def main():
    logging.disable(logging.CRITICAL)
    for names, case in cases():
        print(json.dumps({**names, **oracle.answer(case)}, ensure_ascii=False))


if __name__ == "__main__":
    main()
