"""Counts are read as they were written."""
import tempfile
import unittest
from pathlib import Path

from results import Result, must_have_run
from suites import python_test, read_closing_line

class Counts(unittest.TestCase):
    def test_closing_lines(self):
        result = read_closing_line("FAIL x\nskipped: 3 of beams\n12 passed, 1 failed, 3 skipped\n", 1)
        self.assertEqual((result.passed, result.failed, result.skipped), (12, 1, 3))
        self.assertEqual(result.notes, ["skipped: 3 of beams"])

    def test_a_crash_is_a_failure(self):
        self.assertEqual(read_closing_line("", 1).failed, 1)
        self.assertEqual(read_closing_line("Traceback\nBoom", -11).failed, 1)
        self.assertEqual(read_closing_line("5 passed, 0 failed", 1).failed, 1)

    def test_a_suite_that_vanished_is_a_failure(self):
        self.assertEqual(read_closing_line("", 0).failed, 1)
        self.assertEqual(read_closing_line("nothing to do", 0).failed, 1)
        self.assertEqual(must_have_run(read_closing_line("0 passed, 0 failed", 0)).failed, 1)
        self.assertEqual(must_have_run(Result(skipped=1)).failed, 0)
        self.assertEqual(must_have_run(Result(passed=2)).failed, 0)

    def test_a_file_whose_tests_vanished_is_a_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "gone_test.py"
            path.write_text("class Gone:\n    def test_it(self):\n        pass\n")
            result = python_test(path, Path(folder) / "log", "", None)
            self.assertEqual((result.passed, result.failed), (0, 1))
            self.assertIn("gone_test.py", result.notes[0])
            self.assertEqual(python_test(path, Path(folder) / "log", "another", None).failed, 0)


if __name__ == "__main__":
    unittest.main()
