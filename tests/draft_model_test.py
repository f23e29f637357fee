"""Draft models through the command line: answers are those without, and what does not fit is refused by name. Needs
build/release/transept."""
import json
import shutil
import tempfile
import unittest
from pathlib import Path

from cli_test import ROOT, lines, run

MODELS = ROOT / "tests" / "models"


def drafts_of(model):
    return ["--speculative-config", json.dumps({"method": "model", "model": str(model), "num_speculative_tokens": 4})]


def answers(out):
    return {line["id"]: line.get("outputs") for line in lines(out)}


class DraftModelTest(unittest.TestCase):
    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)

    def test_a_draft_model_changes_no_answer(self):
        ways = [[], ["--kv-cache-memory", "1MiB"], ["--share-identical-inputs", "off"], ["--max-num-seqs", "3", "--preemption-mode", "swap"]]
        for target, draft in [("bart-float32", "bart-float16-sharded"), ("bart-float32", "bart-float32"),
                              ("t5-float32", "t5-madlad-float16"), ("marian-float16", "marian-float16")]:
            generate = ["generate", MODELS / target, "--input", MODELS / target / "requests.jsonl", "--quiet"]
            wanted = run(*generate)
            self.assertGreater(len(answers(wanted[1])), 5, wanted[2])
            for flags in ways if target == draft else ways[:1]:
                got = run(*generate, *drafts_of(MODELS / draft), *flags)
                self.assertEqual(got[0], wanted[0], (target, draft, flags, got[2]))
                self.assertEqual(answers(got[1]), answers(wanted[1]), (target, draft, flags))

    def test_a_model_that_drafts_for_itself_is_right(self):
        for model, flags in [(MODELS / "bart-float32", ["--input-len", "8"]), (MODELS / "whisper-transcribes", [])]:
            own_kv = ["--kv-cache-dtype", "float32"]  # else the draft's is int8
            code, out, err = run("bench", "latency", model, *flags, "--output-len", "40", "--json", "--log-level", "info", *own_kv, *drafts_of(model))
            self.assertEqual(code, 0, err)
            report = json.loads(out)
            self.assertGreater(report["num_accepted_tokens"], 0)
            self.assertEqual(report["num_accepted_tokens"], report["num_draft_tokens"], "a model knows what it will say")
            self.assertIn(f"draft model: {model}: its encoder is the model's own", err)
            self.assertRegex(err, r"draft model: KV cache: .* blocks of 16 tokens")

    def test_what_does_not_fit_is_refused_by_name(self):
        for target, draft, words in [("bart-float32", MODELS / "t5-float32", "a model of another family (t5)"),
                                     ("bart-float32", "nowhere-at-all", "--speculative-config: model: model nowhere-at-all"),
                                     ("bart-float32", self.scratch, f"--speculative-config: model: {self.scratch}"),
                                     ("whisper-float16", MODELS / "whisper-bfloat16-distilled", "its encoder takes other inputs"),
                                     ("qwen2-vl-float32", MODELS / "qwen2-vl-float32",
                                      "--speculative-config: method model: qwen2_vl models")]:
            code, out, err = run("generate", MODELS / target, "x", *drafts_of(draft), env={"TRANSEPT_OFFLINE": "1"})
            self.assertEqual((code, out), (2, ""), (draft, err))
            self.assertIn(words, err, draft)


if __name__ == "__main__":
    unittest.main()
