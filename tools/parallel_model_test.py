"""tools/parallel_model.py: what a step over ranks and stages is predicted to take."""
import unittest

import parallel_model
from parallel_model import Wire

SHAPE = {"d_model": 512, "layers": 6}


class ParallelModelTest(unittest.TestCase):
    def test_a_layer_has_three_exchanges_and_in_int8_three_ranges(self):
        wire = Wire(10, 1)  # 2 KiB a row: 12 us; 16 bytes: 10.02 us
        self.assertAlmostEqual(parallel_model.exchanges_ms(SHAPE, 1, False, wire), 6 * 3 * 12 / 1000)
        self.assertAlmostEqual(parallel_model.exchanges_ms(SHAPE, 1, True, wire), 6 * 3 * (12 + 10 + 16 / 1024) / 1000)
        self.assertAlmostEqual(parallel_model.exchanges_ms(SHAPE, 32, False, wire), 6 * 3 * (10 + 64) / 1000)

    def test_a_step_over_ranks(self):
        wire = Wire(10, 0)
        self.assertEqual(parallel_model.ranks_step_ms(SHAPE, 2.0, 1, 1, True, wire), 2.0)
        self.assertAlmostEqual(parallel_model.ranks_step_ms(SHAPE, 2.0, 2, 1, False, wire), 2.18)
        self.assertAlmostEqual(parallel_model.ranks_step_ms(SHAPE, 2.0, 4, 1, False, wire, own_memory=True), 0.68)

    def test_a_token_over_stages(self):
        self.assertEqual(parallel_model.stages_latency_ms(SHAPE, 2.0, 1, 1, Wire(50, 0)), 2.0)
        self.assertAlmostEqual(parallel_model.stages_latency_ms(SHAPE, 2.0, 4, 8, Wire(50, 1)), 2.0 + 4 * (50 + 16) / 1000)


if __name__ == "__main__":
    unittest.main()
