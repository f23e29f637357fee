"""What ./dev amx makes of the lines of its three programs, and the disk that it starts from."""
import unittest

import amx_emulator
from amx_emulator import END, NEEDED, Comparison, flags_of, missing, name_of
from emulated_machine import READ, SECTORS, disk_of

DEFINED = ["tdpbusd of ff and 80 from 0: right", "int8 m 1 #0a", "bfloat16 m 1 #0b 40000000 3f800000", END]
ERRING = ["tdpbusd of ff and 80 from 0: WRONG, 1 for 2", "int8 m 1 #0c", "bfloat16 m 1 #0b 40000000 3f800000", END]


def counts(real, defined=None, erring=None):
    """(passed, failed) of what is said in the end."""
    words = list(Comparison(real, defined or DEFINED, erring or ERRING).report())[-1].split()
    return int(words[0]), int(words[2])


class Judgement(unittest.TestCase):
    def test_the_same_lines_pass(self):
        self.assertEqual(counts(DEFINED), (3, 0))

    def test_other_bits_fail(self):
        self.assertEqual(counts([DEFINED[0], "int8 m 1 #0d", *DEFINED[2:]]), (2, 1))
        self.assertEqual(counts(["tdpbusd of ff and 80 from 0: WRONG, 3 for 2", *DEFINED[1:]]), (2, 1))

    def test_the_emulators_fault_is_told_apart(self):
        found = Comparison(ERRING, DEFINED, ERRING)
        self.assertEqual((found.same, len(found.erring), len(found.faults), found.wrong), (1, 1, 1, []))
        self.assertIn("1 probes of single instructions contradict", "\n".join(found.report()))
        self.assertNotIn("contradict", "\n".join(Comparison(DEFINED, DEFINED, ERRING).report()))

    def test_a_program_that_did_not_end_failed(self):
        self.assertEqual(counts(DEFINED[:1]), (1, 4))  # two cases, the last word, and that it is missing
        self.assertEqual(counts([]), (0, 5))
        self.assertEqual(counts([], erring=["", "", "", ""]), (0, 5))

    def test_lines_out_of_step_fail(self):
        self.assertEqual(counts([DEFINED[0], "exception 6 at 0", *DEFINED[2:]])[1], 1)
        self.assertEqual(counts([*DEFINED, "more"])[1], 1)

    def test_tiles_in_software_must_be_right(self):
        wrong = ["tdpbusd of ff and 80 from 0: WRONG, 1 for 2", *DEFINED[1:]]
        self.assertEqual(counts(wrong, wrong)[1], 1)

    def test_bfloat16_may_be_rounded_otherwise(self):
        near = Comparison([*DEFINED[:2], "bfloat16 m 1 #0d 40000001 3f800000", END], DEFINED, ERRING)
        self.assertEqual((len(near.near), near.wrong), (1, []))
        self.assertLess(near.near[0], 2e-7)
        for line in ("bfloat16 m 1 #0d 40010000 3f800000", "bfloat16 m 1 #0d 7fc00000 3f800000", "bfloat16 m 1 #0d 40000000",
                     "bfloat16 m 2 #0d 40000001 3f800000", "bfloat16 m 1 #0d 40000000 3f800000"):
            self.assertEqual(counts([*DEFINED[:2], line, END])[1], 1, line)

    def test_names_end_where_results_begin(self):
        self.assertEqual(name_of("tdpbf16ps, a tie to even, up: right"), "tdpbf16ps, a tie to even, up")
        self.assertEqual(name_of(DEFINED[2]), "bfloat16 m 1")


class Building(unittest.TestCase):
    def test_flags_are_those_of_the_build(self):
        text = "set(TRANSEPT_FLAGS_a -mx)\nset(TRANSEPT_FLAGS_a_b ${TRANSEPT_FLAGS_a} -my)\n"
        self.assertEqual(flags_of("a_b", text), ["-mx", "-my"])
        real = (amx_emulator.ROOT / "cmake" / "transept.cmake").read_text()
        self.assertIn("-mamx-int8", flags_of("amx", real))
        self.assertIn("-mavx512f", flags_of("amx", real))

    def test_what_a_processor_lacks_is_named(self):
        self.assertEqual(missing("flags : fpu " + " ".join(NEEDED)), [])
        self.assertEqual(missing("flags : avx512f avx512bw avx512dq avx512vl avx512_vnni_other"), ["avx512_vnni"])

    def test_a_disk_has_room_for_every_reading(self):
        for size in (512, 513, 512 + READ, 512 + READ + 1, SECTORS, 600000):
            disk = disk_of(bytes([7]) * size)
            self.assertEqual(disk[:size], bytes([7]) * size)
            self.assertEqual(len(disk) % SECTORS, 0)
            self.assertGreaterEqual(len(disk), 512 + -(-(size - 512) // READ) * READ)


if __name__ == "__main__":
    unittest.main()
