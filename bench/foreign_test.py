"""What bench/foreign.py asks for, and what it makes of figures."""
import unittest

import foreign
import workloads


class ForeignTest(unittest.TestCase):
    def test_every_row_is_a_workload_and_a_file(self):
        names = [row.name for row in foreign.ROWS]
        self.assertEqual(len(set(names)), len(names))
        for row in foreign.ROWS:
            self.assertEqual(workloads.check(foreign.workload(row), row.name)["target_tokens"], foreign.OUTPUT)
            self.assertEqual(foreign.file_of(row).suffix == ".bin", row.peer == "whispercpp")

    def test_ratios_are_those_of_each_round_and_above_one_where_ours_is_faster(self):
        row = foreign.Row("whispercpp", "whisper-base", "int8", 1, {"step_ms": 3, "encode_ms": 4})
        rounds = [({"step_ms": 2, "encode_ms": 10}, {"step_ms": 8, "encode_ms": 30}), ({"step_ms": 4, "encode_ms": 10}, {"step_ms": 8, "encode_ms": 20}),
                  ({"step_ms": 2, "encode_ms": 10}, {"step_ms": 6, "encode_ms": 50})]
        self.assertEqual(list(foreign.lines(row, rounds)), [
            "| whisper-base, q8_0, whispercpp, batch 1: a step | 2 ms | 8 ms | 3.00 (2.00 to 4.00) | 3 | met |",
            "| whisper-base, q8_0, whispercpp, batch 1: encode | 10 ms | 30 ms | 3.00 (2.00 to 5.00) | 4 | missed |"])


if __name__ == "__main__":
    unittest.main()
