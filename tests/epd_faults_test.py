"""The quick rows of epd_faults.py: a fleet on one machine, strangers, signals, clients that go; who is there; a Redis server's password. Needs
build/release/transept and the bundled model."""
import unittest

import epd_members
import epd_redis_faults
import epd_rows
import harness
from cli_test import BINARY


class EpdFaultsTest(unittest.TestCase):
    """A test a row."""

    @classmethod
    def setUpClass(cls):
        cls.setup = epd_rows.FaultSetup(BINARY, seed=1)
        cls.addClassCleanup(cls.setup.close)

    def runs(self, row):
        try:
            row(self.setup)
        except harness.Skip as reason:
            self.skipTest(str(reason))


for row in (*epd_rows.QUICK, *epd_members.QUICK, *epd_redis_faults.QUICK):
    setattr(EpdFaultsTest, f"test_{row.__name__}", lambda self, row=row: self.runs(row))


if __name__ == "__main__":
    unittest.main()
