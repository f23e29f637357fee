"""The include check passes what is right and names what is wrong."""
import unittest

from check_includes import check_folder, check_test_headers, circles, read_deps, read_floors

FLOORS = {"base": 1, "tensor": 2, "text": 2, "core": 3, "ops": 3}


def check(folder, files, deps=(), test_deps=()):
    return check_folder(folder, FLOORS, list(deps), list(test_deps), files)


class Floors(unittest.TestCase):
    def test_table(self):
        table = "| floor | folders |\n|---|---|\n| F1 | `base` | x |\n| F2 | `tensor`, `text` | `y` |\n"
        self.assertEqual(read_floors(table), {"base": 1, "tensor": 2, "text": 2})

    def test_deps(self):
        cmake = "# transept_library(DEPS no)\ntransept_library(DEPS base tensor\n  LINK absl::status TEST_DEPS text)"
        self.assertEqual(read_deps(cmake), (["base", "tensor"], ["text"]))
        self.assertEqual(read_deps("transept_library(LINK absl::status)"), ([], []))


class Includes(unittest.TestCase):
    def test_down_and_own_folder_pass(self):
        text = '#include "core/prompt.h"\n#include "base/json.h"\n#include <vector>\n#include "absl/status/status.h"\n'
        self.assertEqual(check("core", {"prompt.cc": text}, ["base"]), [])

    def test_up_fails(self):
        found = check("tensor", {"x.h": '\n#include "core/prompt.h"\n'}, ["base"])
        self.assertEqual(len(found), 1)
        self.assertIn("src/tensor/x.h:2", found[0])
        self.assertIn("strictly down", found[0])

    def test_same_floor_fails_even_when_declared(self):
        found = check("core", {"x.h": '#include "ops/gemm.h"\n'}, ["ops"])
        self.assertTrue(any("CMakeLists.txt" in problem for problem in found))

    def test_undeclared_fails(self):
        self.assertIn("DEPS", check("core", {"x.h": '#include "tensor/tensor.h"\n'}, ["base"])[0])

    def test_test_deps_are_for_tests(self):
        include = '#include "text/tokenizer.h"\n'
        self.assertEqual(check("core", {"x_test.cc": include, "x_fuzz.cc": include}, ["base"], ["text"]), [])
        self.assertEqual(len(check("core", {"x.cc": include}, ["base"], ["text"])), 1)

    def test_wrapped_library_stays_in_its_room(self):
        include = "#include <nlohmann/json.hpp>\n"
        self.assertEqual(check("base", {"json_parse.cc": include}), [])
        self.assertEqual(len(check("core", {"x.cc": include}, ["base"])), 1)

    def test_locks_come_from_base(self):
        self.assertEqual(check("base", {"mutex.h": "#include <mutex>\n"}), [])
        for header in ("mutex", "shared_mutex", "condition_variable"):
            self.assertEqual(len(check("core", {"x_test.cc": f"#include <{header}>\n"}, ["base"])), 1)

    def test_unknown_folders_fail(self):
        self.assertEqual(len(check("attic", {})), 1)
        self.assertEqual(len(check("core", {"x.cc": '#include "attic/x.h"\n'})), 1)
        self.assertEqual(len(check("core", {"x.cc": '#include "prompt.h"\n'})), 1)


class Circles(unittest.TestCase):
    def test_a_circle_through_sources_is_found(self):
        files = {"net/a.h": "", "net/a.cc": '#include "net/a.h"\n#include "net/b.h"\n', "net/b.h": '#include "net/a.h"\n'}
        found = circles(files)
        self.assertEqual(len(found), 1)
        self.assertIn("net/a.cc includes net/b.h, net/b.h includes net/a.h", found[0])

    def test_a_circle_of_three_is_one_problem(self):
        files = {"net/a.h": '#include "net/b.h"\n', "net/b.h": "", "net/b.cc": '#include "net/c.h"\n',
                 "net/c.h": '#include "net/a.h"\n', "net/d.h": '#include "net/a.h"\n'}
        self.assertEqual(len(circles(files)), 1)

    def test_two_circles_are_two(self):
        files = {f"net/{x}.h": f'#include "net/{y}.h"\n' for x, y in ("ab", "ba", "cd", "dc")}
        self.assertEqual(len(circles(files)), 2)

    def test_what_goes_one_way_passes(self):
        files = {"net/a.h": '#include "net/b.h"\n#include "net/c.h"\n', "net/b.h": '#include "net/c.h"\n', "net/c.h": "",
                 "net/c.cc": '#include "net/c.h"\n'}
        self.assertEqual(circles(files), [])

    def test_tests_may_include_what_they_like(self):
        files = {"net/a.h": "", "net/a_test.cc": '#include "net/b.h"\n', "net/b.h": '#include "net/a.h"\n'}
        self.assertEqual(circles(files), [])


class TestHeaders(unittest.TestCase):
    def test_a_product_source_that_includes_one_is_refused(self):
        files = {"net/fake_testing.h": "", "net/a.cc": '#include "net/fake_testing.h"\n', "net/a_test.cc": '#include "net/fake_testing.h"\n'}
        self.assertEqual(check_test_headers(files), ["src/net/a.cc: includes net/fake_testing.h, which is for tests"])

    def test_one_that_only_tests_include_must_be_named_so(self):
        files = {"net/fake.h": "", "net/a_test.cc": '#include "net/fake.h"\n', "net/a_fuzz.cc": '#include "net/fake.h"\n'}
        self.assertIn("net/fake_testing.h", check_test_headers(files)[0])

    def test_what_is_named_so_or_used_by_the_product_passes(self):
        files = {"net/fake_testing.h": '#include "net/a.h"\n', "net/a.h": "", "net/a.cc": '#include "net/a.h"\n',
                 "net/a_test.cc": '#include "net/fake_testing.h"\n#include "net/a.h"\n',
                 "net/bench_support.h": "", "net/a_bench.cc": '#include "net/bench_support.h"\n'}
        self.assertEqual(check_test_headers(files), [])


if __name__ == "__main__":
    unittest.main()
