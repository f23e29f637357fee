"""The text rules pass what is right and name what is wrong."""
import unittest
from pathlib import Path

from check_text import page_problems, pages_outside_the_site, problems_of, record_gaps, undocumented_packages, unguarded_mutexes, vague_words


def count(name, text):
    return len(list(problems_of(Path(name), text)))


class Text(unittest.TestCase):
    def test_sizes(self):
        self.assertEqual(count("src/a/x.cc", "\n" * 600), 0)
        self.assertEqual(count("src/a/x.cc", "\n" * 601), 1)
        self.assertEqual(count("src/a/x_avx512.cc", "\n" * 800), 0)
        self.assertEqual(count("src/a/x_avx512.cc", "\n" * 801), 1)
        self.assertEqual(count("docs/long.md", "\n" * 5000), 0)

    def test_switched_off_tests(self):
        self.assertEqual(count("src/a/x_test.cc", "TEST(A, DISABLED_b) {}\n"), 1)
        self.assertEqual(count("src/a/x_test.cc", "GTEST_SKIP();\n"), 1)
        self.assertEqual(count("src/a/x_test.cc", 'GTEST_SKIP() << "flaky";\n'), 1)
        self.assertEqual(count("src/a/x_test.cc", 'GTEST_SKIP() << "no ../shared here";\n'), 0)
        self.assertEqual(count("src/a/x_test.cc", 'GTEST_SKIP()\n    << "this processor has no " << isa;\n'), 0)

    def test_machine_paths(self):
        self.assertEqual(count("docs/a.md", "see /ho" + "me/me/x\n"), 1)
        self.assertEqual(count("docs/a.md", "see src/home/x and build/work/\n"), 0)

    def test_names_of_package_hosts(self):
        self.assertEqual(count("docs/a.md", "from deb.deb" + "ian.org\n"), 1)
        self.assertEqual(count("tools/a.py", "# py" + "pi.org\n"), 1)
        self.assertEqual(count("docs/a.md", "from Debian's archive, PyPI and npm\n"), 0)

    def test_left_undone(self):
        self.assertEqual(count("src/a/x.cc", "// TO" + "DO: later\n"), 1)

    def test_headers_and_pages_name_the_thing(self):
        def problems(name, text):
            return list(vague_words(Path(name), text))
        self.assertEqual(len(problems("src/a/x.h", "int a;  // Nobody reads it\nint b;\n// for whoever calls")), 2)
        self.assertEqual(len(problems("docs/a.md", "somebody")), 1)
        for name in ("src/a/x.cc", "docs/decisions/1.md", "docs/glossary.md"):
            self.assertEqual(problems(name, "// nobody"), [], name)
        self.assertEqual(problems("src/a/x.h", "bool nobody;"), [])

    def test_pages_have_lines_and_cells_that_can_be_read(self):
        def problems(name, text):
            return list(page_problems(Path(name), text))
        self.assertEqual(problems("docs/a.md", "x" * 160 + "\n| a | " + "x" * 130 + " |\n"), [])
        self.assertEqual(problems("docs/a.md", "x" * 161), ["docs/a.md:1: 161 characters, more than 160"])
        self.assertEqual(problems("docs/a.md", "\n| a | " + "x" * 150 + " |\n"), ["docs/a.md:2: a cell of a table is a paragraph: make it a list"])
        self.assertEqual(problems("bench/RESULTS.md", "x" * 300), [])
        self.assertEqual(problems("src/a/x.cc", "x" * 300), [])

    def test_mutexes_say_what_they_are_for(self):
        def problems(text, name="src/a/x.h"):
            return list(unguarded_mutexes(Path(name), text))
        self.assertEqual(problems("  mutable Mutex mutex_;\n  int a_ ABSL_GUARDED_BY(mutex_) = 0;\n"), [])
        self.assertEqual(problems("  Mutex stop_;  // orders the ends\n"), [])
        self.assertEqual(len(problems("  Mutex mutex_;\n  int a_ = 0;\n")), 1)
        self.assertEqual(len(problems("  Mutex mutex_;\n  int a_ ABSL_GUARDED_BY(other_mutex_) = 0;\n")), 1)
        self.assertEqual(problems("  Mutex mutex_;\n", "src/a/x_testing.h"), [])

    def test_records_have_no_gap(self):
        self.assertEqual(record_gaps(["0001-a.md", "0003-b.md", "README.md"]), ["docs/decisions: record 2 is missing"])
        self.assertEqual(record_gaps(["0001-a.md", "0002-b.md"]), [])

    def test_packages(self):
        self.assertEqual(undocumented_packages("# c\n[build]\ncmake\nninja-build\n", "| `cmake` |"),
                         ["docs/dependencies.md: says nothing about ninja-build"])

    def test_pages_of_the_site(self):
        paths = [Path(name) for name in ("docs/a.md", "docs/b/c.md", "docs/c.md", "docs/decisions/0001-x.md", "docs/a.png", "README.md")]
        self.assertEqual(pages_outside_the_site(paths, "nav:\n  - A: a.md\n  - \"B: c\": b/c.md\n"), ["mkdocs.yml: lacks c.md"])


if __name__ == "__main__":
    unittest.main()
