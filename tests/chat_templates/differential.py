"""What run.py runs: each template by chat_template_probe and by transformers, the same text to the byte or an error of both."""
import json
import random
import subprocess
import unittest
from collections import Counter
from pathlib import Path

import grammar
import make_published

HERE = Path(__file__).resolve().parent
# What is refused although Python has an answer: it prints an address, or goes beyond 64 bits.
REFUSALS = ("printing a value of type", "comparing methods", "beyond 64 bits")
SHOWN = 5  # differences that a failure prints

programs = {}


def use(probe, python, templates, seed):
    programs.update(ours=[str(probe)], reference=[str(python), str(HERE / "oracle.py")], templates=templates, seed=seed)


def read_lines(name):
    """Of a file of JSON: str.splitlines() would cut texts at U+2028."""
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").split("\n") if line]


def answers(name, cases):
    """A program's answer to each case."""
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run(programs[name], input=lines, capture_output=True, text=True, encoding="utf-8")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    if len(found) != len(cases):
        last = cases[len(found)]["template"] if len(found) < len(cases) else ""
        raise RuntimeError(f"{name} ended with {done.returncode} at\n{last}\n{done.stderr[-2000:]}")
    return found


def verdict(reference, ours):
    if "error" in reference:
        return "an error of both" if "error" in ours else "an error of the reference alone"
    if "error" in ours:
        refused = ours["code"] == "UNIMPLEMENTED" and any(words in ours["error"] for words in REFUSALS)
        return "refused" if refused else "an error of ours alone"
    return "the same" if reference["text"] == ours["text"] else "another text"


class ChatTemplates(unittest.TestCase):
    def compare(self, cases):
        """Counts of verdicts; fails on any but sameness and refusals."""
        counts, shown = Counter(), []
        for case, reference, ours in zip(cases, answers("reference", cases), answers("ours", cases)):
            found = verdict(reference, ours)
            counts[found] += 1
            if found not in ("the same", "an error of both", "refused") and len(shown) < SHOWN:
                shown.append(f"{found}\n{json.dumps(case, ensure_ascii=False)}\nreference: {reference}\nours:      {ours}")
        print(f"{len(cases)} templates: " + ", ".join(f"{count} {found}" for found, count in counts.most_common()))
        self.assertFalse(shown, "\n\n".join(["", *shown]))
        return counts

    def test_random_templates(self):
        cases = [grammar.case(random.Random(f"{programs['seed']}-{i}")) for i in range(programs["templates"])]
        counts = self.compare(cases)
        self.assertGreater(counts["the same"], 0.75 * len(cases))  # else the grammar says little
        self.assertLess(counts["refused"], 0.02 * len(cases))

    def test_published_constructs(self):
        named = list(make_published.cases())
        self.assertEqual(self.compare([case for _, case in named])["refused"], 0)
        published = read_lines("published.jsonl")
        expected = [{**names, **answer} for (names, _), answer in zip(named, answers("reference", [case for _, case in named]))]
        self.assertEqual(published, expected, "published.jsonl is not what make_published.py makes")

    def test_semantics(self):
        """The texts of semantics.jsonl are the reference's."""
        variables, *rows = read_lines("semantics.jsonl")
        cases = [{"template": row["template"], "messages": [], **variables} for row in rows]
        for row, answer in zip(rows, answers("reference", cases)):
            self.assertEqual(row.get("text"), answer.get("text"), row["template"])
        self.assertEqual(self.compare(cases)["refused"], 0)
