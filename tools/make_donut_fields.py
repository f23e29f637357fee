#!/usr/bin/env python3
"""Writes src/multimodal/testdata/donut_fields.jsonl: texts as Donut writes them, whole and broken, and what DonutProcessor.token2json makes of
them. Run in an environment with transformers 5.23:

    python3 tools/make_donut_fields.py
"""
import json
import random
from pathlib import Path
from types import SimpleNamespace

from transformers import DonutProcessor

FILE = Path(__file__).resolve().parent.parent / "src" / "multimodal" / "testdata" / "donut_fields.jsonl"
TOKENS = ["<yes/>", "<no/>", "<advertisement/>", "<sep/>"]  # of the vocabulary
PLAIN = ["<s_menu><s_nm>Coffee</s_nm><s_price>3.50</s_price><sep/><s_nm>Tea</s_nm></s_menu><s_total>6</s_total>",
         "<s_class><advertisement/></s_class>", "<s_class><unknown/></s_class>", "no field at all", "", "<s_a>", "</s_a>", "<s_a>open", "<s_",
         "<s_>nameless</s_>", "<s_a></s_a>", "<s_a> spaced  </s_a>  <s_b>\tx\n</s_b>", "<s_a>one<sep/>two<sep/></s_a>",
         "<S_A>upper</s_a>", "<s_a>x</S_A>", "</s_a><s_a>late</s_a>", "<s_a>1</s_a><sep/><s_a>2</s_a>", "<s_a>1</s_a><sep/>", "text <s_a>1</s_a> rest",
         "<s_a><s_a>same</s_a></s_a>", "<s_a>x</s_b></s_a>", "<s_a><s_b>cross</s_a></s_b>", "<s_a.b+c>regex</s_a.b+c>", "<s_question>Wer?</s_question><s_answer>Ärger</s_answer>",
         "<s_a>1</s_a><s_b>2</s_b><s_a>3</s_a>", "<s_a><s_b></s_b></s_a>", "<s_a><s_ </s_</s_a>"]


def random_text(rng):
    names = ["a", "b", "nm", "A", "x y", "é"]
    parts = []
    for _ in range(rng.randint(0, 14)):
        name = rng.choice(names[:rng.choice([2, 6])])
        parts.append(rng.choice([f"<s_{name}>", f"<s_{name}>", f"</s_{name}>", f"</s_{name}>", "<sep/>", rng.choice(TOKENS), "<other/>", "word", " ", "12.5", "<", ">", "\n",
                                 f"<s_{name}>v</s_{name}>"]))
    return "".join(parts)


def main():
    rng = random.Random(7)
    reader = SimpleNamespace(tokenizer=SimpleNamespace(get_added_vocab=lambda: {token: i for i, token in enumerate(TOKENS)}))
    reader.token2json = lambda *args, **named: DonutProcessor.token2json(reader, *args, **named)
    texts = PLAIN + [random_text(rng) for _ in range(400)]
    with FILE.open("w", encoding="utf-8") as out:
        out.write(json.dumps({"tokens": TOKENS}) + "\n")
        for text in texts:
            out.write(json.dumps({"text": text, "fields": reader.token2json(text)}, ensure_ascii=False) + "\n")
    print(f"{FILE}: {len(texts)} texts")


if __name__ == "__main__":
    main()
