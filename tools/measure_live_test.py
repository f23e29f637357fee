"""tools/measure_live.py reads what live_probe prints, and counts lags of words."""
import unittest

import measure_live

LINES = """/a/en01.flac seconds=4.7 first=1.28 told=4 revised=1 late=0.226 same=1
  at=1.28 The train
  at=1.78  to
  at=2.78  Boston, leaves
  The train to master leaves.
b c.wav seconds=1.0 first=-1.00 told=0 revised=0 late=0.050 same=0
  Hm.
all: told=4 revised=1 same=1 of 2 hypotheses=17 lost=1 early=0""".splitlines()


class MeasureLiveTest(unittest.TestCase):
    def test_lines_of_the_probe(self):
        first, second = measure_live.heard_of(LINES)
        self.assertEqual((first.file, first.first, first.told, first.revised, first.late, first.same), ("/a/en01.flac", 1.28, 4, 1, 0.226, True))
        self.assertEqual(first.deltas, [(1.28, "The train"), (1.78, " to"), (2.78, " Boston, leaves")])
        self.assertEqual((second.file, second.first, second.deltas, second.same), ("b c.wav", -1.0, [], False))

    def test_words_and_their_moments(self):
        self.assertEqual(measure_live.told_words([(1.0, "The tr"), (2.0, "ain, "), (3.0, "to"), (4.0, " -- Él")]),
                         [("the", 1.0), ("train", 2.0), ("to", 3.0), ("el", 4.0)])

    def test_a_lag_is_of_a_word_that_stays(self):
        first, second = measure_live.heard_of(LINES)
        timed = [("The", 0.25), ("train", 0.5), ("to", 1.0), ("master", 1.5), (" leaves.", 2.0)]
        lags = [round(lag, 2) for lag in measure_live.lags_of(first.deltas, timed)]
        self.assertEqual(lags, [1.03, 0.78, 0.78, 0.78])
        self.assertEqual(measure_live.lags_of(second.deltas, [("Hm.", 0.5)]), [])

    def test_a_row(self):
        heard = measure_live.heard_of(LINES)
        row = measure_live.row_of("low", heard, {"/a/en01.flac": [("The", 0.25), ("train", 0.5), ("to", 1.0), ("master", 1.5), ("leaves", 2.0)], "b c.wav": [("Hm", 0.5)]})
        self.assertEqual((row.files, row.words, row.told, row.revised, row.first, row.same), (2, 6, 4, 1, [1.28], 1))
        self.assertEqual(measure_live.line_of(row), "| low | 67 % | 25.0 % (1 of 4) | 1.28 | 0.78 / 1.03 | 0.23 / 0.23 | 1 of 2 |")

    def test_shares(self):
        self.assertEqual([measure_live.share(range(1, 11), percent) for percent in (0, 50, 90, 100)], [1, 6, 10, 10])


if __name__ == "__main__":
    unittest.main()
