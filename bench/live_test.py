"""bench/live.py and the policy of its peer."""
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))
import live  # noqa: E402
import live_peer  # noqa: E402

FIGURES = {"p50": 1.0, "p95": 2.0}
REPORT = {"sessions": 4, "sessions_that_kept_up": 3, "first_text_s": FIGURES, "hypothesis_interval_s": None, "completed_s": FIGURES}


def words(text, begin=0.0):
    return [(begin + i, begin + i + 0.9, f" {word}") for i, word in enumerate(text.split())]


class LiveTest(unittest.TestCase):
    def test_a_row_of_each_side(self):
        self.assertEqual(live.line_of("4 sessions", {**REPORT, "told_words": 50, "revised_words": 2}), "| 4 sessions | 3 of 4 | 1.00 / 2.00 | none | 1.00 / 2.00 | 4.0 % |")
        self.assertIn("| none |", live.line_of("x", {**REPORT, "told_words": 0, "revised_words": 0}))
        self.assertIn("| none; 12.5 % unlike the file's |", live.line_of("peer", {**REPORT, "words_unlike_the_files": 0.125}))

    def test_two_hypotheses_that_agree_tell_a_word_once(self):
        agreement = live_peer.Agreement()
        self.assertEqual(agreement.take(words("one two")), [])
        self.assertEqual([word for _, _, word in agreement.take(words("one two three"))], [" one", " two"])
        self.assertEqual(agreement.take(words("two tree", 1.0)), [])  # what is told is heard again
        self.assertEqual([word for _, _, word in agreement.take(words("two tree four", 1.0))], [" tree"])

    def test_a_session_hears_each_second_and_the_end(self):
        heard = []
        model = SimpleNamespace(transcribe=lambda audio, **_: (heard.append(len(audio)) or [SimpleNamespace(
            no_speech_prob=0, end=1.0, words=[SimpleNamespace(start=0.0, end=0.5, word=" a")])], None))
        options = SimpleNamespace(chunk=1.0, language="en", beams=1)
        session = live_peer.Session(0, [[0.0] * (2 * live_peer.RATE)], options)
        times = []
        while not session.turns:
            times.append(session.due())
            session.work(model, session.due)
        self.assertEqual(times, [1.0, 2.0, 2.5])
        self.assertEqual(heard, [live_peer.RATE, 2 * live_peer.RATE, 2 * live_peer.RATE])
        self.assertEqual((session.turns, session.origin), ([(0, "a")], 3.0))

    def test_words_unlike_the_files(self):
        self.assertEqual(live_peer.edits(live_peer.plain("One, two three"), live_peer.plain("one two four five")), 2)
        self.assertIsNone(live_peer.statistics_of([]))
        self.assertEqual(live_peer.statistics_of([3, 1, 2])["p50"], 2)


if __name__ == "__main__":
    unittest.main()
