"""Faults are planted where conditions are, one at a time, and a survivor needs its reason."""
import tempfile
import unittest
from pathlib import Path

from mutate import Mutant, choose, explanations, mutants_of

PATH = Path("src/net/x.cc")


def lines_after(source):
    return [mutant.after for mutant in mutants_of(PATH, source)]


class Flips(unittest.TestCase):
    def test_comparisons_and_junctions(self):
        self.assertEqual(lines_after("return a == b && c < d;"), ["return a != b && c < d;", "return a == b || c < d;", "return a == b && c <= d;"])
        self.assertEqual(lines_after("return n + 1;"), ["return n + 0;"])
        self.assertEqual(lines_after("  return true;"), ["  return false;"])

    def test_a_check_is_dropped(self):
        self.assertEqual(lines_after("if (is_bad(x)) return error();"), ["if (false && (is_bad(x))) return error();"])
        self.assertEqual(lines_after("} else if (!ok) {"), ["} else if (false && (!ok)) {"])

    def test_what_is_no_condition_stays(self):
        for source in ("// a == b", 'log("a == b");', "std::vector<int> a;", "T&& x", "#if A == B", "static_assert(a == b);", "assert(a < b);",
                       'auto s = R"(a == b)";', "/* a == b\n c < d */", "if (auto error = check()) return error;", "if (const int n = f(); n) {"):
            self.assertEqual(lines_after(source), [], source)

    def test_a_condition_over_two_lines_is_flipped_within_a_line_alone(self):
        self.assertEqual(lines_after("if (a == b &&\n    c) {"), ["if (a != b &&"])

    def test_lines_are_counted_from_one(self):
        self.assertEqual(mutants_of(PATH, "int a;\nreturn x != y;"), [Mutant(PATH, 2, "return x != y;", "return x == y;")])


class Choice(unittest.TestCase):
    def test_a_seed_gives_the_same_faults_every_time(self):
        first = choose("net", [], 1)
        self.assertGreater(len(first), 20)
        self.assertEqual(first, choose("net", [], 1))
        self.assertNotEqual(first[:20], choose("net", [], 2)[:20])
        self.assertTrue(all(mutant.path.parent == Path("src/net") and "_test" not in mutant.path.name for mutant in first))

    def test_a_file_or_a_line_can_be_named(self):
        of_file = choose("net", ["mime.cc"], 1) or choose("net", ["http_head.cc"], 1)
        self.assertGreater(len(of_file), 1)
        place = of_file[0]
        self.assertIn(place, choose("net", [f"{place.path.name}:{place.line}"], 1))


class Reasons(unittest.TestCase):
    def test_a_reason_belongs_to_a_line_and_its_flip(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "mutants.txt"
            file.write_text("# why\n\nsrc/net/x.cc|if (a || b)|if (a && b)|b implies a\n")
            known = explanations(file)
        self.assertEqual(known[Mutant(PATH, 7, "  if (a || b)", "  if (a && b)").key()], "b implies a")

    def test_every_reason_is_of_a_line_that_exists(self):
        for key in explanations():
            path, rest = key.split("|", 1)
            source = (Path(__file__).resolve().parent.parent / path).read_text(encoding="utf-8")
            self.assertTrue(any(mutant.key() == key for mutant in mutants_of(Path(path), source)), rest)


if __name__ == "__main__":
    unittest.main()
