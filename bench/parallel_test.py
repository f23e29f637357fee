"""What bench/parallel.py asks of the binary, and what it makes of reports."""
import os
import unittest
from unittest import mock

import parallel


class ParallelTest(unittest.TestCase):
    def test_two_ranks_of_a_thread_beside_a_process_of_two(self):
        asked = []

        def bench(mode, model, *flags):
            asked.append((mode, str(model), [str(flag) for flag in flags]))
            return {"decode_tokens_per_s": 10.0, "step_ms": 1.5}

        with mock.patch.object(parallel, "bench", bench), mock.patch.object(parallel, "folder", lambda shape: shape):
            row = next(row for row in parallel.RANKS if row.name == "t5-base, batch 1, 4 beams")
            self.assertEqual((row.least, row.run(True), row.run(False)), (0.9, (10.0, "1.50 ms a step"), (10.0, "1.50 ms a step")))
        (mode, model, ranks), (_, _, one) = asked
        self.assertEqual((mode, model), ("latency", "t5-base"))
        self.assertEqual(ranks[-4:], ["--threads", "1", "--tensor-parallel-size", "2"])
        self.assertEqual(one[-2:], ["--threads", "2"])
        self.assertEqual(ranks[:-4], one[:-2])

    def test_every_row_of_the_table_is_there(self):
        self.assertEqual(sorted({row.least for row in parallel.RANKS}), [0.75, 0.8, 0.9])
        self.assertEqual((len(parallel.RANKS), len(parallel.STAGES)), (14, 4))
        self.assertEqual(len({row.name for row in [*parallel.RANKS, *parallel.STAGES]}), 18)

    def test_times_are_medians_in_us(self):
        cases = [{"name": f"BM_SumOverTwoRanks/{rows}/real_time_{kind}", "aggregate_name": kind, "real_time": rows * 1000.0 + extra, "p99_us": 3.0 * rows + extra}
                 for rows in (1, 32) for kind, extra in (("mean", 500), ("median", 0), ("stddev", 7))]
        self.assertEqual(parallel.times_of_exchange({"benchmarks": cases}), {1: (1.0, 3.0), 32: (32.0, 96.0)})

    def test_memory_of_a_process_is_its_own_and_with_that_of_files(self):
        before, _ = parallel.memory_of(os.getpid())
        held = bytearray(b"x" * (64 << 20))
        own, whole = parallel.memory_of(os.getpid())
        self.assertAlmostEqual(own - before, len(held), delta=4 << 20)
        self.assertGreater(whole, own)

    def test_a_prediction_goes_by_the_measured_exchange(self):
        wire = parallel.wire_of({1: (4.0, 9.0), 32: (66.0, 70.0)})
        self.assertEqual((wire.latency, wire.per_kib), (2.0, 1.0))
        row = next(row for row in parallel.RANKS if row.name == "opus-mt, batch 8")
        self.assertEqual((row.shape, row.num_rows), ("opus-mt", 8))
        # 6 layers x 3 exchanges of 16 KiB and 3 of 128 bytes: 0.36225 ms on top of 2 ms.
        self.assertAlmostEqual(parallel.predicted(row, {"without": "2.00 ms a step"}, wire), 2 / 2.36225)


if __name__ == "__main__":
    unittest.main()
