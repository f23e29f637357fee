"""The quick rows of epd_faults.py: a fleet on one machine, strangers, signals, clients that go. Needs build/release/transept and the bundled model."""
import unittest

import epd_rows
from cli_test import BINARY


class EpdFaultsTest(unittest.TestCase):
    """A test a row of epd_rows.QUICK."""

    @classmethod
    def setUpClass(cls):
        cls.setup = epd_rows.FaultSetup(BINARY, seed=1)
        cls.addClassCleanup(cls.setup.close)


for row in epd_rows.QUICK:
    setattr(EpdFaultsTest, f"test_{row.__name__}", lambda self, row=row: row(self.setup))


if __name__ == "__main__":
    unittest.main()
