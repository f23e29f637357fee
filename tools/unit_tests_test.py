"""Cases of one binary share processes, and each still counts by itself."""
import os
import tempfile
import threading
import unittest
from pathlib import Path

from unit_tests import broken_case, list_parts, read_report, run_part, unbuilt

# As a binary of gtest: each case is a word, which says how it ends.
BINARY = '''#!/usr/bin/env python3
import os, sys
arguments = dict(argument.split("=", 1) for argument in sys.argv[1:])
report, cases = arguments["--gtest_output"].removeprefix("xml:"), []
for name in arguments["--gtest_filter"].split(":"):
    group, word = name.split(".")
    print(f"[ RUN      ] {name}", flush=True)
    if word == "dies" or (word == "wants_all" and "TRANSEPT_TEST_ALL" not in os.environ):
        print("Segmentation fault", flush=True)
        os._exit(11)
    inside = {"fails": '<failure message="x.cc:3&#10;left 1, right 2"/>', "fails_once": "" if os.path.exists(os.path.join(os.path.dirname(__file__), "again")) else '<failure message="x.cc:3"/>', "skips": '<skipped message="x_test.cc:9&#10;no ../shared/golden/text/bart&#10;"/>'}.get(word, "")
    cases.append(f'<testcase classname="{group}" name="{word}" status="run" result="{"skipped" if word == "skips" else "completed"}" time="0.5">{inside}</testcase>')
    print(f"[       OK ] {name} (0 ms)", flush=True)
open(report, "w").write(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
for name in arguments["--gtest_filter"].split(":"):
    again = os.path.join(os.path.dirname(__file__), "again")
    if name.endswith(".untold_always") or (name.endswith(".untold") and not os.path.exists(again)):
        open(again, "w").close()
        print("LeakSanitizer has encountered a fatal error.", flush=True)
        sys.exit(1)
leaks = any(name.endswith(".leaks") for name in arguments["--gtest_filter"].split(":"))
sys.exit(1 if leaks or any("failure" in case for case in cases) else 0)
'''


def test_of(name, binary="/b", label="net"):
    return {"name": name, "command": [binary, f"--gtest_filter={name}"],
            "properties": [{"name": "LABELS", "value": [label]}, {"name": "WORKING_DIRECTORY", "value": "/"}]}


class Parts(unittest.TestCase):
    def test_every_case_is_in_one_part(self):
        names = [f"A.c{i}" for i in range(95)]
        parts = list_parts({"tests": [test_of(name) for name in names] + [test_of("B.x", "/other")]}, cases=40)
        self.assertEqual([len(part.names) for part in parts], [32, 32, 31, 1])
        self.assertEqual(sorted(name for part in parts for name in part.names), sorted([*names, "B.x"]))

    def test_labels_and_names_choose(self):
        listed = {"tests": [test_of("A.a"), test_of("A.b", label="server"), test_of("B.a", label="server")]}
        self.assertEqual([part.names for part in list_parts(listed, ("server",))], [("A.b", "B.a")])
        self.assertEqual([part.names for part in list_parts(listed, (), "A")], [("A.a", "A.b")])
        self.assertEqual(list_parts(listed, (), "nothing"), [])

    def test_what_is_not_built_has_no_cases_and_is_named(self):
        listed = {"tests": [test_of("A.a"), {"name": "text_unicode_test_NOT_BUILT", "properties": [{"name": "WORKING_DIRECTORY", "value": "/"}]}]}
        self.assertEqual([part.names for part in list_parts(listed, ("net",))], [("A.a",)])
        self.assertEqual([part.names for part in list_parts(listed)], [("A.a",)])
        self.assertEqual((unbuilt(listed), unbuilt(listed, ("net",)), unbuilt(listed, ("text/unicode",))),
                         (["text_unicode_test"], [], ["text_unicode_test"]))


class Runs(unittest.TestCase):
    def run_cases(self, *words, environment=None):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        binary = folder / "a_test"
        binary.write_text(BINARY)
        os.chmod(binary, 0o755)
        [part] = list_parts({"tests": [test_of(f"A.{word}", str(binary)) for word in words]})
        return run_part(part, folder / "log", threading.Lock(), environment or {})

    def test_cases_have_the_environment_given(self):
        self.assertEqual([self.run_cases("wants_all", environment=given)[0].passed for given in ({}, {"TRANSEPT_TEST_ALL": "1"})], [0, 1])

    def test_cases_count_one_by_one(self):
        result, reasons = self.run_cases("fine", "fails", "skips", "also_fine")
        self.assertEqual((result.passed, result.failed, result.skipped), (2, 1, 1))
        self.assertEqual(result.notes[0], "failed: A.fails")
        self.assertIn("left 1, right 2", result.notes[2])
        self.assertEqual(dict(reasons), {"no ../shared": 1})
        self.assertEqual(result.seconds["A"], 2.0)

    def test_a_case_that_ends_its_process_fails_alone(self):
        result, _ = self.run_cases("fine", "dies", "also_fine")
        self.assertEqual((result.passed, result.failed), (2, 1))
        self.assertIn("A.dies: it ended its process (exit code 11)", result.notes[0])
        self.assertTrue(any("Segmentation fault" in note for note in result.notes))
        result, _ = self.run_cases("dies")
        self.assertEqual((result.passed, result.failed), (0, 1))

    def test_the_case_that_was_begun_last_is_the_broken_one(self):
        ended = "[ RUN      ] A.a\n[       OK ] A.a (0 ms)\n[ RUN      ] A.b\n[  FAILED  ] A.b (0 ms)\n[ RUN      ] A.c\n[  SKIPPED ] A.c (0 ms)\n"
        names = ["A.a", "A.b", "A.c", "A.d", "A.e"]
        self.assertEqual(broken_case(ended, names), "A.d")
        self.assertEqual(broken_case(ended + "[ RUN      ] A.e\n", names), "A.e")

    def test_an_end_that_is_no_success_is_a_failure(self):
        result, _ = self.run_cases("fine", "leaks")
        self.assertEqual((result.passed, result.failed), (2, 1))
        self.assertIn("a_test: exit code 1, 0 of 2 cases not run", result.notes[0])

    def test_a_search_for_leaks_that_broke_off_is_made_once_more(self):
        result, _ = self.run_cases("good", "untold")
        self.assertEqual((result.passed, result.failed), (2, 0))
        result, _ = self.run_cases("good", "untold_always")
        self.assertEqual((result.passed, result.failed), (2, 1))
        result, _ = self.run_cases("fails_once", "untold")
        self.assertEqual((result.passed, result.failed), (1, 1), "a case that failed is not run until it passes")

    def test_a_report_without_cases_is_read(self):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as report:
            report.write("<testsuites/>")
            report.flush()
            result, done, _ = read_report(report.name)
            self.assertEqual((result.passed, done), (0, []))


if __name__ == "__main__":
    unittest.main()
