import argparse
import contextlib
import io
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import against
import compare
import transept_side


class Against(unittest.TestCase):
    def test_medians_keep_what_every_round_has(self):
        rounds = [{"tokens_per_s": 1.0, "step_ms": 2.0}, {"tokens_per_s": 3.0, "step_ms": None}, {"tokens_per_s": 2.0, "step_ms": 1.0}]
        self.assertEqual(against.medians(rounds), {"tokens_per_s": (2.0, 1.0, 3.0)})

    def compare(self, ours, theirs, rounds=2, control=False):
        """(exit code, what was printed, the binaries in order) of two binaries with these tokens/s."""
        order = []

        def run(_options, _work, _model, _seed, binary):
            order.append("ours" if binary == transept_side.BINARY else "theirs")
            return {"tokens_per_s": ours if order[-1] == "ours" else theirs, "step_ms": 1.0}, {}

        with tempfile.NamedTemporaryFile() as file, contextlib.redirect_stdout(io.StringIO()) as printed, \
                mock.patch.object(compare, "run_transept", run), mock.patch.object(compare, "model_of", return_value=Path("model")), \
                mock.patch.object(compare, "settle"):
            options = argparse.Namespace(against=Path(file.name), workloads=None, filter="opus-mt_s32_t32_b1_greedy", rounds=rounds, tiny=False,
                                         control=control)
            return against.compare_binaries(options), printed.getvalue(), order

    def test_the_slower_fails_and_is_named(self):
        code, printed, _ = self.compare(97, 100)
        self.assertEqual(code, 1)
        self.assertIn("slower: opus-mt_s32_t32_b1_greedy 0.970 (least", printed)

    def test_as_fast_passes_and_rounds_turn_round(self):
        code, printed, order = self.compare(99, 100)
        self.assertEqual(code, 0)
        self.assertIn("no headline is slower", printed)
        self.assertEqual(order[:4], ["ours", "theirs", "theirs", "ours"])

    def test_a_control_is_the_binary_over_itself(self):
        code, printed, order = self.compare(97, 100, control=True)
        self.assertEqual(code, 1)
        self.assertRegex(printed, r"opus-mt_s32_t32_b1_greedy: tokens_per_s 0.970 .*\n  control, over itself: tokens_per_s 1.000 ")
        self.assertEqual(order, ["ours", "theirs", "theirs", "theirs", "theirs", "ours"])


if __name__ == "__main__":
    unittest.main()
