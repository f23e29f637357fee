"""The demo counts errors as it says."""
import unittest

from demo import PHONEME, edit_distance, error_rates


class Errors(unittest.TestCase):
    def test_phonemes(self):
        self.assertEqual(PHONEME.findall("ɛnkˈoʊdɚ"), ["ɛ", "n", "k", "ˈoʊ", "d", "ɚ"])

    def test_distance(self):
        self.assertEqual([edit_distance(a, b) for a, b in (("", "ab"), ("abc", "abc"), ("abc", "axc"), ("abc", "bc"), ("kitten", "sitting"))],
                         [2, 0, 1, 1, 3])

    def test_rates(self):
        words, phonemes = error_rates(["kæt", "dɑɡ"], [["kæt"], ["dˈɔɡ", "dɔɡ"]])
        self.assertEqual(words, 0.5)
        self.assertAlmostEqual(phonemes, 1 / 6)


if __name__ == "__main__":
    unittest.main()
