"""What ./dev amx makes of the machine's words, and the archive that its kernel unpacks."""
import unittest

import amx_emulator
from emulated_machine import cpio

TESTS = ["[ RUN      ] A.b", "[       OK ] A.b (3 ms)", "[  FAILED  ] A.c/amx, where GetParam() = 5 (1 ms)",
         "[  SKIPPED ] A.d (0 ms)", "[  PASSED  ] 1 test.", "[  FAILED  ] A.c/amx, where GetParam() = 5"]


def answer(token_ids, logprob):
    return {"token_ids": token_ids, "logprobs": [{str(token): {"logprob": logprob} for token in token_ids}]}


class Judgement(unittest.TestCase):
    def test_lines_fall_to_their_jobs(self):
        found = amx_emulator.split_jobs(["noise", "== a b", "1", "== exit 1", "noise", "== c", "2"])
        self.assertEqual(found, {"a b": (["1"], 1), "c": (["2"], None)})

    def test_failed_and_skipped_tests_are_failures(self):
        self.assertEqual(amx_emulator.judge_tests(TESTS, 1)[:2], (1, 2))
        self.assertEqual(amx_emulator.judge_tests(TESTS[:2], 0)[:2], (1, 0))

    def test_a_program_that_did_not_end_well_failed(self):
        self.assertEqual(amx_emulator.judge_tests(TESTS[:2], None)[:2], (1, 1))
        self.assertEqual(amx_emulator.judge_tests(TESTS[:2], 139)[:2], (1, 1))
        self.assertEqual(amx_emulator.judge_tests([], 0)[:2], (0, 1))

    def test_answers_are_compared(self):
        self.assertEqual(amx_emulator.farthest([answer([1, 2], -1.0)], [answer([1, 2], -1.5)]), 0.5)
        self.assertIsNone(amx_emulator.farthest([answer([1, 2], -1.0)], [answer([1, 3], -1.0)]))
        self.assertIsNone(amx_emulator.farthest([], []))


class Archive(unittest.TestCase):
    def test_entries_lie_as_the_kernel_reads_them(self):
        data, at, seen = cpio({"init": (b"hello", True), "a/b/c": (b"", False)}), 0, {}
        while "TRAILER!!!" not in seen:
            self.assertEqual(data[at:at + 6], b"070701")
            fields = [int(data[at + 6 + 8 * i:at + 14 + 8 * i], 16) for i in range(13)]
            name = data[at + 110:at + 110 + fields[11] - 1].decode()
            begin = at + (110 + fields[11] + 3) // 4 * 4
            seen[name] = (oct(fields[1]), data[begin:begin + fields[6]])
            at = (begin + fields[6] + 3) // 4 * 4
        self.assertEqual(seen, {"init": ("0o100755", b"hello"), "a": ("0o40755", b""), "a/b": ("0o40755", b""),
                                "a/b/c": ("0o100644", b""), "TRAILER!!!": ("0o0", b"")})


if __name__ == "__main__":
    unittest.main()
