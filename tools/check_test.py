"""Tests of the order in which ./dev check runs its steps."""
import contextlib
import io
import threading
import unittest

import check
from check import Step
from results import Result


class TestedOnce(unittest.TestCase):
    def test_the_release_build_is_without_tests_that_run_with_sanitizers_alone(self):
        made = {"all": ["libx.a", "src/ops/all", "src/server/all", "src/text/all", "src/text/chat/all"], "src/ops/all": ["src/ops/ops_test"],
                "src/server/all": ["src/server/libserver.a", "src/server/server_test", "src/server/server_bench"], "src/text/all": ["src/text/chat/all"],
                "src/text/chat/all": ["src/text/chat/text_chat_test"]}
        self.assertEqual(check.release_targets(made.get), ["libx.a", "src/ops/ops_test", "src/server/libserver.a", "src/server/server_bench"])

    def test_these_folders_exist_and_the_debug_build_has_none_of_them(self):
        for folder in check.SANITIZED_ALONE:
            self.assertTrue((check.ROOT / "src" / folder / "CMakeLists.txt").exists(), folder)
        self.assertFalse(set(check.SANITIZED_ALONE) & set(check.LESS_UNDER_SANITIZERS))


class Lanes(unittest.TestCase):
    def run_all(self, steps):
        """Names of the steps with an outcome, in its order; what was printed is dropped."""
        self.ran = []

        def noted(step):
            def body():
                self.ran.append(step.name)
                return step.run()
            return Step(step.name, body, step.lane, step.needs, step.slow)
        with contextlib.redirect_stdout(io.StringIO()):
            return check.run_lanes([noted(step) for step in steps])

    def test_the_release_build_comes_first(self):
        self.run_all([Step("b", Result, "builds"), Step("build release", Result), Step("a", Result)])
        self.assertEqual(self.ran[0], "build release")
        self.assertEqual(set(self.ran), {"a", "b", "build release"})

    def test_a_step_waits_for_the_build_that_it_needs(self):
        began = threading.Event()

        def compiles():
            began.wait(10)  # until the lane of the suites is at work
            return Result()

        def first():
            began.set()
            return Result()
        outcomes = self.run_all([Step("suite", first), Step("tests", Result, needs="compile"), Step("compile", compiles, "builds")])
        self.assertLess(self.ran.index("compile"), self.ran.index("tests"))
        self.assertEqual(len(outcomes), 3)

    def test_what_was_not_built_is_not_run(self):
        outcomes = self.run_all([Step("compile", lambda: Result(failed=1), "builds"), Step("tests", Result, needs="compile"), Step("others", Result)])
        self.assertEqual(set(self.ran), {"compile", "others"})
        self.assertEqual(sum(result.failed for result, _ in outcomes), 1)

    def test_a_build_that_crashes_is_a_failed_one(self):
        def crashes():
            raise OSError("no space")
        outcomes = self.run_all([Step("compile", crashes, "builds"), Step("tests", Result, needs="compile")])
        self.assertEqual(self.ran, ["compile"])
        self.assertEqual(sum(result.failed for result, _ in outcomes), 1)

    def test_steps_bring_what_they_need(self):
        every = [Step("compile", Result, "builds"), Step("tests", Result, needs="compile"), Step("soak", Result, slow=True)]
        names = lambda wanted, slow: [step.name for step in check.chosen_steps(every, wanted, slow)]  # noqa: E731
        self.assertEqual(names(["tests"], False), ["compile", "tests"])
        self.assertEqual(names(["compile"], False), ["compile"])
        self.assertEqual(names([], False), ["compile", "tests"])
        self.assertEqual(names([], True), ["compile", "tests", "soak"])
        self.assertEqual(names(["soak"], False), ["soak"])

    def test_every_step_that_is_needed_is_in_another_lane(self):
        every = {step.name: step for step in check.steps(None, True, 1)}
        for step in every.values():
            if step.needs:
                self.assertNotEqual(every[step.needs].lane, step.lane)


if __name__ == "__main__":
    unittest.main()
