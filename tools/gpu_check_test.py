"""./dev gpu-check's choice of a device, what its parts make of outputs, and its page; the tool itself on lavapipe needs
build/release/transept and the packages of ./dev setup."""
import contextlib
import io
import json
import os
import tempfile
import unittest
import unittest.mock
from pathlib import Path
from types import SimpleNamespace

import gpu_check
import gpu_parts
import gpu_report
import vulkan_drivers
from device_suites import name_of

LAVAPIPE = {"device": "vulkan:0", "name": "llvmpipe (LLVM 15)", "alias": "lavapipe", "type": "cpu", "driver": "Mesa", "driver_version": "22.3", "vulkan": "1.3",
            "memory_bytes": 2**33, "max_range_bytes": 2**27, "subgroup_size": 8}
CARD = {**LAVAPIPE, "device": "vulkan:1", "name": "Card 9000", "alias": None, "type": "discrete", "driver": "Its own"}
SMALL = {**CARD, "device": "vulkan:2", "name": "Small 1", "type": "integrated"}
BINARY = gpu_check.RELEASE / "transept"


class Choice(unittest.TestCase):
    def refused(self, *arguments):
        with self.assertRaises(gpu_check.Refusal) as caught:
            gpu_check.choose(*arguments)
        return caught.exception.why

    def test_a_card_is_taken_first(self):
        self.assertEqual(gpu_check.choose([LAVAPIPE, SMALL, CARD], "vulkan", False), CARD)
        self.assertEqual(gpu_check.choose([LAVAPIPE, SMALL, CARD], "vulkan:2", False), SMALL)
        self.assertEqual(gpu_check.choose([LAVAPIPE, SMALL, CARD], "vulkan:card", False), CARD)

    def test_a_device_on_the_processor_only_if_that_is_allowed(self):
        for name in ("vulkan:lavapipe", "vulkan:0"):
            self.assertIn("--allow-cpu-device", self.refused([LAVAPIPE, CARD], name, False))
            self.assertEqual(gpu_check.choose([LAVAPIPE, CARD], name, True), LAVAPIPE)
        self.assertIn("there is no such device", self.refused([LAVAPIPE], "vulkan", True))  # never unnamed
        self.assertIn("there is no such device", self.refused([LAVAPIPE], "vulkan:Card", True))
        self.assertIn("expected vulkan", self.refused([CARD], "cuda", False))

    def test_parts_are_known(self):
        self.assertEqual(gpu_check.parse(["--only", "ops,soak"]).only, ["ops", "soak"])
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            gpu_check.parse(["--only", "opps"])


class Outcomes(unittest.TestCase):
    def test_counts_of_googletest(self):
        text = "[  FAILED  ] A.b (3 ms)\n[==========] 9 tests ran.\n[  PASSED  ] 6 tests.\n[  SKIPPED ] 1 test, listed below:\n[  FAILED  ] 2 tests, listed below:\n"
        self.assertEqual(gpu_parts.counts_of(text), (6, 2, 1))

    def test_outputs_are_compared_with_their_numbers(self):
        line = {"id": "a", "outputs": [{"token_ids": [1], "cumulative_logprob": -0.5}], "metrics": {"seconds": 1}}
        other = {**line, "metrics": {"seconds": 2}}
        self.assertEqual(gpu_parts.outputs_of(json.dumps(line)), gpu_parts.outputs_of(json.dumps(other)))
        other = {**line, "outputs": [{"token_ids": [1], "cumulative_logprob": -0.5000001}]}
        self.assertNotEqual(gpu_parts.outputs_of(json.dumps(line)), gpu_parts.outputs_of(json.dumps(other)))

    def test_an_error_of_a_part_is_its_outcome(self):
        def breaks(_):
            raise OSError("gone")
        parts = {"one": breaks, "two": lambda _: gpu_parts.passed(answers=3), "three": breaks}
        with unittest.mock.patch.object(gpu_check, "PARTS", parts), contextlib.redirect_stdout(io.StringIO()):
            outcomes = gpu_check.run_parts(None, ["one", "two"])
        self.assertEqual([outcomes[name]["state"] for name in parts], ["failed", "passed", "skipped"])
        self.assertIn("gone", outcomes["one"]["why"])


class Page(unittest.TestCase):
    FOUND = {"read_bytes_per_s": 1e12, "upload_bytes_per_s": 2e10, "readback_bytes_per_s": 1e10, "dispatch_us": 3.25, "submit_us": 20,
             "product_flop_per_s": {"float32": 4e13}}

    def page(self, device):
        parts = {"ops": gpu_parts.passed(passed=90, failed=0, skipped=1), "answers": gpu_parts.failed("2 answers differ", passed=1, failed=2),
                 "recordings": gpu_parts.passed(requests=67, recorded=4, replayed=90, host_us_a_submission=12.5),
                 "constants": gpu_parts.passed(found=self.FOUND)}
        return gpu_report.page({"device": device, "is_card": device["type"] != "cpu", "commit": "abc", "date": "2026-01-02", "parts": parts})

    def test_a_cards_page_has_figures(self):
        page = self.page(CARD)
        for text in ("# GPU report: Card 9000", "| failed | passed 1, failed 2; 2 answers differ |", "1000.0 GB/s", "3.25 us", "40000.0 Gflop/s", "12.5"):
            self.assertIn(text, page)
        self.assertNotIn("computes on the processor", page)

    def test_a_page_of_the_processor_says_so_and_has_none(self):
        page = self.page(LAVAPIPE)
        self.assertIn("computes on the processor", page)
        for text in ("GB/s", "flop/s", "12.5"):
            self.assertNotIn(text, page)


class Drivers(unittest.TestCase):
    def test_widths_are_mesas(self):
        driver = vulkan_drivers.Driver("Mesa 1", "vulkan:lavapipe", {"A": "b"})
        self.assertEqual(driver.environment_of(512), {"A": "b", "LP_NATIVE_VECTOR_WIDTH": "512"})
        self.assertEqual(driver.environment_of(0), {"A": "b"})
        self.assertEqual(name_of(driver, 128), "Mesa 1, vectors of 128 bits")

    def test_what_cannot_be_had_is_named(self):
        def fails():
            raise vulkan_drivers.debian_archive.FetchError("no archive")
        with unittest.mock.patch.object(vulkan_drivers, "SOURCES", {"a": fails, "b": lambda: "driver"}):
            self.assertEqual(vulkan_drivers.drivers(), (["driver"], {"a": "no archive"}))


@unittest.skipUnless(BINARY.exists() and (gpu_check.RELEASE / "bench/device_probe").exists() and vulkan_drivers.INSTALLED.exists(),
                     "build/release has no transept and device_probe, or there is no lavapipe")
class OnLavapipe(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        options = SimpleNamespace(out=Path(scratch.name), answers="quick", filter="t5-float32", tiny=True, soak_minutes=0.05)
        environment = {**os.environ, "VK_ICD_FILENAMES": os.environ.get("VK_ICD_FILENAMES", str(vulkan_drivers.INSTALLED))}
        self.check = gpu_parts.Check(BINARY, gpu_check.RELEASE, "vulkan:lavapipe", options, environment)

    def test_answers_recordings_and_a_server(self):
        for part in (gpu_parts.answers, gpu_parts.recordings, gpu_parts.constants, gpu_parts.soak):
            outcome = part(self.check)
            self.assertEqual(outcome["state"], "passed", outcome)

    def test_a_token_that_differs_fails(self):
        outputs = iter([({"a": [1]}, {"step_replays": 3, "step_recordings": 1, "step_host_seconds": 1}), ({"a": [2]}, {})])
        with unittest.mock.patch.object(gpu_parts, "generate", lambda *_: next(outputs)):
            self.assertEqual(gpu_parts.recordings(self.check)["why"], "differ: a")


if __name__ == "__main__":
    unittest.main()
