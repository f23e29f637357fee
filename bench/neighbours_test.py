import os
import unittest

from neighbours import Neighbours, kept


class NeighboursTest(unittest.TestCase):
    def test_run_while_the_block_does_and_no_longer(self):
        with Neighbours(2) as beside:
            pids = [process.pid for process in beside.processes]
            self.assertEqual(len(pids), 2)
            self.assertTrue(all(process.poll() is None for process in beside.processes))
        for pid in pids:
            with self.assertRaises(ProcessLookupError):
                os.kill(pid, 0)

    def test_end_where_the_block_fails(self):
        with self.assertRaises(ValueError), Neighbours(1) as beside:
            raise ValueError
        self.assertIsNotNone(beside.processes[0].poll())

    def test_kept_is_below_one_where_neighbours_cost(self):
        self.assertEqual(kept(100, 75, True), 0.75)
        self.assertEqual(kept(10, 20, False), 0.5)


if __name__ == "__main__":
    unittest.main()
