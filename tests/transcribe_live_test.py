"""`transept transcribe --live`: turns of a stream on standard input. What each says is what a file with its sound says. Needs build/release/transept."""
import array
import json
import math
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import wave
from pathlib import Path

from cli_test import BINARY, run
from speech_model import make_model

# Turns of speech, and the pauses behind them, in seconds: what a voice detector takes for both.
SPOKEN = ((2.0, 1.5), (1.2, 1.2), (3.1, 0.2))


def speech(rate, parts=SPOKEN):
    """Noise in syllables over a tone, then faint noise: 16-bit samples."""
    rng = random.Random(7)
    samples = array.array("h")
    for loud, quiet in parts:
        for i in range(round(loud * rate)):
            syllable = 0.15 + 0.85 * abs(math.sin(math.pi * 4 * i / rate))
            samples.append(round(syllable * (5000 * math.sin(2 * math.pi * 190 * i / rate) + rng.uniform(-5000, 5000))))
        samples.extend(round(rng.uniform(-8, 8)) for _ in range(round(quiet * rate)))
    return samples


def little_endian(samples):
    copy = array.array("h", samples)
    if sys.byteorder == "big":
        copy.byteswap()
    return copy.tobytes()


def write_wav(path, samples, rate):
    with wave.open(str(path), "wb") as out:
        out.setparams((1, 2, rate, 0, "NONE", ""))
        out.writeframes(little_endian(samples))
    return path


class LiveTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        cls.model = make_model(cls.scratch / "model")

    def start(self, *flags):
        process = subprocess.Popen([BINARY, "transcribe", self.model, "--live", "-", "--language", "en", *flags], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for step in (process.stderr.close, process.stdout.close, process.stdin.close, process.wait, process.kill):  # the last one first
            self.addCleanup(step)
        return process

    def whole(self, data, *flags):
        """(exit code, standard output, standard error) of a stream that comes at once."""
        process = self.start(*flags)
        out, err = process.communicate(data, timeout=120)
        return process.returncode, out.decode(), err.decode()

    def text_of_file(self, samples, rate):
        path = write_wav(self.scratch / "turn.wav", samples, rate)
        code, out, err = run("transcribe", self.model, path, "--language", "en", "-f", "json", "-o", "-", "--verbose", "false")
        self.assertEqual(code, 0, err)
        return " ".join(json.loads(out)["text"].split())

    def check_turns(self, samples, rate, data, *flags):
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        code, out, err = self.whole(data, "-f", "json", "-f", "txt", "-o", folder, *flags)
        self.assertEqual(code, 0, err)
        found = json.loads((folder / "live.json").read_text())
        self.assertEqual(len(found["segments"]), len(SPOKEN), found)
        for segment in found["segments"]:
            first, last = (round(segment[end] * 1000) * rate // 1000 for end in ("start", "end"))
            self.assertEqual(" ".join(segment["text"].split()), self.text_of_file(samples[first:last], rate), segment)
        self.assertEqual(len((folder / "live.txt").read_text().splitlines()), len(SPOKEN))
        # The console has each turn's line: as the file has it, unless words were told before that are not in it.
        lines = [" ".join(line.split()) for line in out.splitlines()]
        revised = len(re.findall("heard again as a whole", err))
        self.assertEqual(len(lines), len(SPOKEN))
        same = sum(line == " ".join(segment["text"].split()) for line, segment in zip(lines, found["segments"]))
        self.assertGreaterEqual(same, len(SPOKEN) - revised, (lines, found))

    def test_turns_of_raw_samples_say_what_files_say(self):
        for rate in (16000, 8000, 48000):
            samples = speech(rate)
            self.check_turns(samples, rate, little_endian(samples), "--live-format", f"s16le:{rate}")

    def test_a_wav_file_on_standard_input(self):
        samples = speech(16000)
        self.check_turns(samples, 16000, write_wav(self.scratch / "talk.wav", samples, 16000).read_bytes())

    def test_silence_says_nothing(self):
        code, out, err = self.whole(little_endian(speech(16000, ((0, 5),))))
        self.assertEqual((code, out), (0, ""), err)

    def test_words_come_before_the_end(self):
        process = self.start("--live-delay", "minimal")
        for _ in range(3):
            process.stdin.write(little_endian(speech(16000)))
            process.stdin.flush()
        first = process.stdout.read(1)  # the stream is still open
        self.assertTrue(first)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, err)

    def test_an_interrupt_ends_the_recording_with_what_was_said(self):
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        process = self.start("-f", "srt", "-o", folder, "--stats-json", folder / "stats.json")
        process.stdin.write(little_endian(speech(16000, ((2, 1.5), (2, 0)))))
        process.stdin.flush()
        for _ in range(600):  # until the first turn is in its file
            if (folder / "live.srt").exists():
                break
            time.sleep(0.1)
        self.assertTrue((folder / "live.srt").exists())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 0, process.stderr.read())
        self.assertEqual((folder / "live.srt").read_text().count(" --> "), 2)
        stats = json.loads((folder / "stats.json").read_text())
        self.assertEqual((stats["num_turns"], stats["num_failed"]), (2, 0))

    def test_nothing_is_an_error(self):
        code, out, err = self.whole(b"")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("standard input: no audio came", err)

    def test_what_is_no_samples_is_refused_with_what_to_do(self):
        for data, words in ((b"OggS" + bytes(100), "standard input is Ogg"), (b"fLaC" + bytes(100), "standard input is FLAC")):
            code, out, err = self.whole(data)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(words, err)
            self.assertIn("ffmpeg", err)

    def test_flags_that_do_not_fit(self):
        for flags, words in ((("--word-timestamps",), "--word-timestamps: not with --live"), (("--live-format", "mp3"), "--live-format mp3"),
                             (("talk.wav",), "--live reads standard input")):
            code, out, err = run("transcribe", self.model, "--live", *flags)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(words, err)
        code, _, err = run("transcribe", self.model, "talk.wav", "--live-delay", "low")
        self.assertEqual(code, 2)
        self.assertIn("--live-delay: needs --live", err)

    def test_a_model_of_text_is_refused(self):
        code, out, err = run("transcribe", "g2p", "--live")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("audio", err)


if __name__ == "__main__":
    unittest.main()
