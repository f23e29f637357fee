"""Which changed files hold code that changed; how builds are configured."""
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import repo
from repo import has_new_code


def difference(*lines):
    return ["--- a/src/net/x.cc", "+++ b/src/net/x.cc", "@@ -1 +1 @@", *lines]


class NewCode(unittest.TestCase):
    def test_includes_comments_and_empty_lines_are_none(self):
        self.assertFalse(has_new_code("src/net/x.cc", difference('-#include "net/a.h"', '+#include "net/b.h"', "+", "-// before", "+  // after")))

    def test_a_line_of_code_is(self):
        for line in ("+int a;", "-int a;", "+#define A 1", "+int a;  // with a comment"):
            self.assertTrue(has_new_code("src/net/x.h", difference("+// a comment", line)), line)

    def test_of_other_files_every_line_counts(self):
        self.assertTrue(has_new_code("tools/x.py", difference("+# a comment")))


class Configuration(unittest.TestCase):
    def test_portable_builds_have_the_release_builds_choice(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(repo, "ROOT", Path(folder)):
            self.assertIn("-DTRANSEPT_UNITY=ON", repo.configure_command("release"))
            self.assertIn("-DTRANSEPT_UNITY=ON", repo.configure_command("portable"))
            cache = Path(folder) / "build" / "release" / "CMakeCache.txt"
            cache.parent.mkdir(parents=True)
            for choice in ("OFF", "ON"):
                cache.write_text(f"//Compile several\nTRANSEPT_UNITY:BOOL={choice}\n")
                self.assertEqual(repo.configure_command("release"), ["cmake", "--preset", "release"])
                self.assertIn(f"-DTRANSEPT_UNITY={choice}", repo.configure_command("portable"))


if __name__ == "__main__":
    unittest.main()
