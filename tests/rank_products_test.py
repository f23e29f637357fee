"""Ranks and stages answer as one process: each two of backend, instruction level, weights, KV type, pool and shape meet at least once, over the models of
tests/models and a wide one. `./dev test --ranks` does so for each model. Needs build/release/transept."""
import itertools
import re
import subprocess
import sys
import unittest
from unittest import mock

import rank_products
from cli_test import BINARY, ROOT


class QuickWays(unittest.TestCase):
    def test_every_two_values_that_a_model_allows_meet(self):
        allowed = {"a": {"TP 2", "PP 2"}, "b": {"TP 2", "PP 2", "PP 2 x TP 2"}}
        models = {name: mock.Mock(folder=name, failures=[], may_be=lambda shape, weights, name=name: shape in allowed[name] and weights != "int4")
                  for name in allowed}
        with mock.patch.object(rank_products, "Model", lambda options, folder: models[folder]):
            found, never, failures = rank_products.quick_ways(None, list(models), ["generic", "avx2"])
        self.assertEqual(failures, [])
        self.assertEqual(len(never), 4 + 4)  # int4 in 4 shapes, TP 4 of 4 other weights
        ways = [way for of_model in found.values() for way in of_model]
        met = {pair for way in ways for pair in itertools.combinations(sorted(way.items()), 2)}
        axes = {**rank_products.axes_of(["generic", "avx2"]), "shape": ["TP 2", "PP 2", "PP 2 x TP 2"]}
        axes["weights"] = [weights for weights in axes["weights"] if weights != "int4"]
        for one, other in itertools.combinations(sorted(axes), 2):
            for values in itertools.product(axes[one], axes[other]):
                self.assertIn(((one, values[0]), (other, values[1])), met)
        for name, of_model in found.items():
            self.assertLessEqual({way["shape"] for way in of_model}, allowed[name])
        self.assertEqual(set(found), set(models), "models take turns")


class Answers(unittest.TestCase):
    def test_have_the_digits_of_one_process(self):
        done = subprocess.run([sys.executable, ROOT / "tests" / "rank_products.py", "--quick", "--transept", BINARY], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-1000:])
        passed, failed = map(int, re.search(r"^(\d+) passed, (\d+) failed$", done.stdout, re.MULTILINE).groups())
        self.assertEqual(failed, 0)
        self.assertGreaterEqual(passed, 20)  # weights and shapes alone are 5 x 4
        self.assertNotIn("refused: every model", done.stdout)


if __name__ == "__main__":
    unittest.main()
