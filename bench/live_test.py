"""bench/live.py against our own server with a model of the tests, and its peer with libraries that are played. Needs build/release/transept."""
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))
import live  # noqa: E402
import live_peer  # noqa: E402
import live_wire  # noqa: E402  live.py makes the modules of tests importable

BINARY = Path(os.environ.get("TRANSEPT_BINARY", live.BINARY))
MODEL = live.ROOT / "tests" / "models" / "whisper-transcribes"

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

    def test_streams_and_silence_of_a_server(self):
        with tempfile.TemporaryDirectory() as folder:
            clip, report = Path(folder) / "clip.wav", Path(folder) / "report.json"
            clip.write_bytes(live_wire.clip(2)[2])
            words = ["--model", MODEL, "--audio", clip, "--sessions", 2, "--seconds", 3, "--silent-sessions", 3, "--warm-up", 0.5, "--transept", BINARY, "--no-peer",
                     "--json", report]
            printed = run_main(live.main, words)
            found = json.loads(report.read_text())
        (name, streams), = found["streams"]
        self.assertEqual((name, streams["sessions"], streams["failed_sessions"], streams["sessions_that_kept_up"]), ("2 sessions", 2, 0, 2))
        self.assertGreaterEqual(streams["turns"], 2)
        self.assertEqual((streams["failed_turns"], streams["turns_without_text"]), (0, 0))
        self.assertTrue(streams["first_text_s"] and streams["hypothesis_interval_s"] and streams["completed_s"], streams)
        self.assertEqual(list(found["silence"]), ["zeros, binary", "a quiet room, binary", "a quiet room, base64"])
        self.assertTrue(all(0 <= share < 1 for share in found["silence"].values()), found)
        self.assertIn("| 2 sessions | 2 of 2 |", printed)
        self.assertIn("3 sessions of zeros, binary: ", printed)

    def test_the_peer_has_a_row_like_ours(self):
        """Its libraries are played: each second of sound is a word."""
        class Model:
            def __init__(self, folder, device, compute_type, cpu_threads):
                self.words = [f" word{i}" for i in range(10)]

            def transcribe(self, audio, language, beam_size, **options):
                count = len(audio) // live_peer.RATE
                timed = [SimpleNamespace(start=float(i), end=i + 0.9, word=self.words[i]) for i in range(count)]
                return [SimpleNamespace(text="".join(self.words[:count]), no_speech_prob=0, end=float(count), words=timed)], None

        libraries = {"ctranslate2": SimpleNamespace(__version__="4"), "ctranslate2_folders": SimpleNamespace(convert=lambda *words: Path("folder")),
                     "faster_whisper": SimpleNamespace(__version__="1", WhisperModel=Model, decode_audio=lambda path, sampling_rate: [0.0] * (2 * sampling_rate))}
        with mock.patch.dict(sys.modules, libraries):
            printed = run_main(live_peer.main, ["model", "--audio", "clip.wav", "--sessions", 2, "--seconds", 2, "--threads", 1])
        report = json.loads(printed.splitlines()[-1])
        self.assertEqual((report["sessions"], report["turns"], report["words_unlike_the_files"]), (2, 2, 0))
        self.assertIn("faster-whisper 1, CTranslate2 4", live.line_of(report["version"], report))
        self.assertGreater(report["first_text_s"]["p50"], 1.5)  # two hypotheses, a second apart


def run_main(main, words):
    """What it prints."""
    out = io.StringIO()
    with mock.patch.object(sys, "argv", ["program", *map(str, words)]), contextlib.redirect_stdout(out):
        main()
    return out.getvalue()


if __name__ == "__main__":
    unittest.main()
