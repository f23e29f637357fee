"""Tests of which sources share a call of the compiler."""
import tempfile
import unittest
from pathlib import Path

import unity_groups


def groups(**sources):
    """Names of the files of each group, from name=text."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in sources.items():
            (Path(folder) / name.replace("_h", ".h") if name.endswith("_h") else Path(folder) / f"{name}.cc").write_text(text)
        return [[source.path.stem for source in group] for _, _, found in unity_groups.groups_of_tree(Path(folder)) for group in found]


def unnamed(code):
    return f"namespace transept {{\nnamespace {{\n\n{code}\n\n}}  // namespace\n}}  // namespace transept\n"


class Groups(unittest.TestCase):
    def together(self, one, other, **more):
        self.assertEqual(groups(a=one, b=other, **more), [["a", "b"]])

    def apart(self, one, other, **more):
        self.assertEqual(groups(a=one, b=other, **more), [])

    def test_sources_without_own_names(self):
        self.together("int one() { return 1; }\n", "int two() { return 2; }\n")

    def test_one_name_twice(self):
        for declaration in ("int find(int a) {\n  return a;\n}", "struct Reader {\n  int a;\n};", "class Reader final : Base {};", "enum class Kind : uint8_t { kA };",
                            "constexpr int kMost = 3, kLeast = 1;", "std::vector<int> find(int a);", "template <typename T>\nbool find(T a) {\n  return a;\n}",
                            "using Call = int(int);", "MATCHER_P(IsOdd, what, \"\") { return arg; }", "int table[4] = {1};"):
            self.apart(unnamed(declaration), unnamed(declaration))

    def test_a_name_behind_the_first_function(self):
        self.apart(unnamed("int one() {\n  return 1;\n}\n\nstruct Reader {};"), unnamed("int two() {\n  return 2;\n}\n\nstruct Reader {};"))

    def test_what_one_declares_and_another_uses(self):
        self.apart(unnamed("int find(int a) { return a; }"), "int two() { return find(2); }\n")
        self.apart("int two() { int find = 2; return find; }\n", unnamed("int find(int a) { return a; }"))

    def test_members_and_qualified_names_are_others(self):
        self.together(unnamed("int find(int a) { return a; }"), "int two() { return x.find(2) + y->find(1) + std::find(3); }\n")

    def test_comments_and_literals_use_nothing(self):
        self.together(unnamed("int find(int a) { return a; }"), '// find it\nauto two = "find", three = R"(find)"; /* find */\n')

    def test_what_a_header_declares(self):
        self.apart(unnamed("int find(int a) { return a; }"), '#include "c.h"\n', c_h='#include "d.h"\n', d_h="int find(int a);\n")
        self.together(unnamed("int find(int a) { return a; }"), '#include "c.h"\n', c_h="struct A {\n  int find(int a);\n};\n")

    def test_imported_names_may_be_said_twice(self):
        self.together(unnamed("using ::testing::HasSubstr;"), unnamed("using ::testing::HasSubstr;\nauto a = HasSubstr(1);"))
        self.apart(unnamed("using ::testing::HasSubstr;"), unnamed("using ::other::HasSubstr;"))
        self.apart(unnamed("using ::testing::HasSubstr;"), "auto a = HasSubstr(1);\n")
        self.together("namespace fs = std::filesystem;\n", "namespace fs = std::filesystem;\n")

    def test_an_imported_name_of_a_header(self):
        for space, verdict in (("transept::testing", self.together), ("transept::other", self.apart), ("transept", self.apart)):
            verdict(unnamed("using testing::Folder;"), '#include "c.h"\ntesting::Folder two;\n', c_h=f"namespace {space} {{\n\nclass Folder {{\n}};\n}}\n")
        self.apart(unnamed("using testing::Folder;"), unnamed("class Folder {};"))

    def test_macros_and_whole_namespaces(self):
        self.apart("#define MOST 3\n", "int two = MOST;\n")
        self.apart("using namespace transept;\n", "int two = 2;\n")
        self.together(unnamed("using namespace std::chrono_literals;"), "int two = 2;\n")

    def test_tests_and_kernels(self):
        self.assertEqual(groups(a="", b="", a_test="", b_test="", a_avx2="", b_avx2="", a_fuzz="", main=""), [["a", "b"], ["a_test", "b_test"]])

    def test_gtests_macros_are_no_names(self):
        self.together(unnamed("TEST(A, One) {}\nTEST_F(B, Two) {}"), unnamed("TEST(C, One) {}\nTEST_F(D, Two) {}"))

    def test_long_ones_stand_alone(self):
        lines = "\n" * (unity_groups.MAX_LINES // 2 + 1)
        self.apart(lines, lines)


if __name__ == "__main__":
    unittest.main()
