"""translations.py, and the same with CTranslate2 in its import line, over the bundled model: tokens, beams, scores."""
import json
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from common_python import ROOT

import transept

PEER = os.environ.get("PEER_PYTHON", "")
MODEL = ROOT / "models" / "g2p"
SCRIPT = Path(__file__).parent / "translations.py"
OURS, THEIRS = "from transept import Translator", "from ctranslate2 import Translator"
WORDS, SOME = 400, 30


def translations(python, script, model, asked):
    done = subprocess.run([python, str(script), str(model)], input=json.dumps(asked), capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{script.name}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def equal(ours, theirs):
    return sum(a == b for a, b in zip(ours, theirs))


class SameTranslations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = Path(os.environ["TRANSEPT_SCRATCH"])
        script = folder / "peer_translations.py"
        source = SCRIPT.read_text(encoding="utf-8")
        assert source.count(OURS) == 1
        script.write_text(source.replace(OURS, THEIRS), encoding="utf-8")
        converted = folder / "g2p-float32"
        subprocess.run([PEER, "-c", "import sys, ctranslate2_models as m; m.convert_bart(*sys.argv[1:])", str(MODEL), str(converted)],
                       cwd=SCRIPT.parent, check=True)
        shutil.copy(MODEL / "tokenizer.json", converted)  # tokens are spelled by it
        words = (MODEL / "words_test.txt").read_text(encoding="utf-8").split()[:WORDS]
        with transept.LLM(MODEL, threads=1) as llm:
            tokenizer = llm.get_tokenizer()
            sources = [tokenizer.convert_ids_to_tokens(tokenizer.encode(word), decoder_side=False) for word in words]
            answers = llm.generate(words[:SOME], transept.SamplingParams(temperature=0, max_tokens=60))
            ends = llm.info["eos_token_ids"]
            targets = [tokenizer.convert_ids_to_tokens([i for i in a.outputs[0].token_ids if i not in ends]) for a in answers]
        asked = {"sources": sources, "prefixes": [target[:2] for target in targets], "targets": targets}
        cls.theirs = translations(PEER, script, converted, asked)
        cls.ours = translations(sys.executable, SCRIPT, MODEL, asked)
        # CTranslate2's own folder, read as it is.
        cls.converted = translations(sys.executable, SCRIPT, converted, asked)

    def test_greedy_answers(self):
        for ours in (self.ours, self.converted):
            self.assertEqual(ours["greedy"], self.theirs["greedy"])

    def test_beams_and_their_scores(self):
        for ours in (self.ours, self.converted):
            self.assertEqual([beams[0] for beams in ours["beams"]], [beams[0] for beams in self.theirs["beams"]])
            same = equal(ours["beams"], self.theirs["beams"])
            print(f"\n{same} of {WORDS} words have the same four beams")
            self.assertGreaterEqual(same, WORDS * 99 // 100)
            for beams, own, others in zip(ours["beams"], ours["beam_scores"], self.theirs["beam_scores"]):
                for a, b in zip(own[:1], others[:1]):
                    self.assertAlmostEqual(a, b, 3, beams[0])

    def test_prefixes_and_bans(self):
        self.assertEqual(self.ours["prefixed"], self.theirs["prefixed"])
        self.assertEqual(self.ours["banned"], self.theirs["banned"])

    def same_numbers(self, name):
        for ours in (self.ours, self.converted):
            self.assertEqual(len(ours[name]), len(self.theirs[name]))
            for own, others in zip(ours[name], self.theirs[name]):
                self.assertEqual(len(own), len(others), name)
                for a, b in zip(own, others):
                    self.assertAlmostEqual(a, b, 3, name)

    def test_sources_and_targets_that_are_cut(self):
        for ours in (self.ours, self.converted):
            self.assertEqual(ours["cut"], self.theirs["cut"])
            self.assertEqual(ours["cut_tokens"], self.theirs["cut_tokens"])
        self.same_numbers("cut_log_probs")

    def test_sources_of_nothing(self):
        for ours in (self.ours, self.converted):
            self.assertEqual(ours["nothing"], self.theirs["nothing"])
            self.assertEqual(ours["nothing_scored"], self.theirs["nothing_scored"])
        self.same_numbers("nothing_scores")
        self.same_numbers("nothing_log_probs")

    def test_prefixes_of_tokens_as_they_come(self):
        for ours in (self.ours, self.converted):
            self.assertEqual(ours["kept_steps"], self.theirs["kept_steps"])
            self.assertEqual(ours["kept_last"], self.theirs["kept_last"])
        self.same_numbers("kept_log_probs")

    def test_scores_of_targets(self):
        self.assertEqual(self.ours["scored"], self.theirs["scored"])
        self.same_numbers("log_probs")

    def test_tokens_as_they_come(self):
        self.assertEqual(self.ours["steps"], self.theirs["steps"])
        self.assertEqual(self.ours["last"], self.theirs["last"])
        for own, others in zip(self.ours["step_log_probs"], self.theirs["step_log_probs"]):
            for a, b in zip(own, others):
                self.assertAlmostEqual(a, b, 3)

    def test_speed_is_told(self):
        for search in ("greedy", "beam"):
            ours, theirs = WORDS / self.ours[f"{search}_seconds"], WORDS / self.theirs[f"{search}_seconds"]
            print(f"\nwords a second, {search}, one thread: Transept {ours:.0f}, CTranslate2 {theirs:.0f}, {ours / theirs:.2f} times")


if __name__ == "__main__":
    unittest.main()
