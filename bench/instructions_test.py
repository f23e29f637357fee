import unittest

import instructions

# As callgrind writes it with --dump-line=no: names once, then by number; after calls= the cost of what was called.
CALLGRIND = """# callgrind format
events: Ir
summary: 175

ob=(1) /usr/lib/x
fl=(1) ???
fn=(10) outer(int)
0 30
cob=(2) /usr/lib/y
cfi=(2) file.c
cfn=(11) inner
calls=3 38
0 100
0 5

fn=(11)
0 90
cfn=(12) leaf
calls=1 0
0 10

fn=(12)
0 10

fn=(10)
+3 40
totals: 175
"""


class Parse(unittest.TestCase):
    def test_counts_a_functions_own_instructions(self):
        self.assertEqual(instructions.functions_of(CALLGRIND), {"outer(int)": 75, "inner": 90, "leaf": 10})

    def test_the_sum_is_callgrinds(self):
        self.assertEqual(sum(instructions.functions_of(CALLGRIND).values()), 175)


class Judge(unittest.TestCase):
    before = {"instructions": 1000, "functions": {"gemm": 800, "step": 150}}

    def test_up_to_five_per_cent_is_good(self):
        self.assertTrue(instructions.judge(self.before, {"gemm": 840, "step": 209})[0])
        self.assertTrue(instructions.judge(self.before, {"gemm": 100})[0])

    def test_more_fails_and_names_what_grew_first(self):
        good, lines = instructions.judge(self.before, {"gemm": 810, "step": 260, "new": 30, "old": 10})
        self.assertFalse(good)
        self.assertIn("+11.0 %", lines[0])
        self.assertIn("step (150 -> 260)", lines[1])
        self.assertEqual([line.split()[1] for line in lines[1:]], ["step", "gemm"], "new ones are below what was kept")
        _, lines = instructions.judge(self.before, {"gemm": 800, "new": 900})
        self.assertIn("new (not among the largest -> 900)", lines[1])

    def test_keeps_the_largest(self):
        kept = instructions.entry({f"f{i}": i for i in range(100)})
        self.assertEqual(len(kept["functions"]), instructions.KEPT_FUNCTIONS)
        self.assertIn("f99", kept["functions"])
        self.assertEqual(kept["instructions"], 4950)


if __name__ == "__main__":
    unittest.main()
