"""The fixture of ggml's k-quants is what PyPI's gguf makes of the same bytes (tools/make_k_quants.py). Skipped where there is no gguf."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import make_k_quants  # noqa: E402

try:
    import gguf
except ImportError:
    gguf = None


class KQuants(unittest.TestCase):
    @unittest.skipIf(gguf is None, "no gguf package")
    def test_the_fixture_is_what_gguf_says(self):
        self.assertEqual(make_k_quants.fixture(), make_k_quants.OUT.read_bytes())


if __name__ == "__main__":
    unittest.main()
