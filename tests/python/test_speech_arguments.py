"""Arguments of the speech faces: languages and their codes, audio that is none, times. Errors name the argument or the file."""
import io
import math
import tempfile
import unittest
from pathlib import Path

import numpy as np
from common_python import WHISPER, noise

import transept
from transept import BatchedInferencePipeline, InvalidArgumentError, WhisperModel


class Speech(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = WhisperModel(WHISPER, cpu_threads=1)
        cls.faces = (cls.model, BatchedInferencePipeline(cls.model))
        cls.folder = tempfile.TemporaryDirectory()
        cls.text = Path(cls.folder.name) / "notes.md"
        cls.text.write_text("This is a text, and no audio at all.\n")

    @classmethod
    def tearDownClass(cls):
        cls.model.shutdown()
        cls.folder.cleanup()

    def refused(self, error, words, call, *arguments, **more):
        with self.assertRaises(error, msg=f"{arguments} {more}") as caught:
            call(*arguments, **more)
        said = str(caught.exception)
        self.assertTrue(said.startswith(words), said)
        self.assertNotIn("incompatible function arguments", said)
        return caught.exception

    def test_texts_are_texts(self):
        sound = noise(1)
        for face in self.faces:
            for wrong in (5, ["en"], b"en"):
                self.refused(TypeError, "language must be a str, not ", face.transcribe, sound, language=wrong)
            for wrong in (5, None, b"translate"):
                self.refused(TypeError, "task must be a str, not ", face.transcribe, sound, task=wrong)
            for name in ("language", "task"):
                error = self.refused(InvalidArgumentError, f"{name} must be text of Unicode", face.transcribe, sound, **{name: "\ud800"})
                self.assertEqual(error.field, name)
                error = self.refused(InvalidArgumentError, f'{name} "xx" is unknown', face.transcribe, sound, **{name: "xx"})
                self.assertEqual(error.field, name)

    def test_rates(self):
        for wrong in ("x", 16000.5, None, True):
            self.refused(TypeError, "sampling_rate must be a whole number, not ", transept.decode_audio, self.text, sampling_rate=wrong)
        for wrong in (10**12, 0, 999, -1):
            error = self.refused(InvalidArgumentError, f"sampling_rate must be a whole number from 1000 to 768000, not {wrong}", transept.decode_audio, self.text, wrong)
            self.assertEqual(error.field, "sampling_rate")

    def test_audio_that_is_none_names_the_file_or_the_argument(self):
        calls = [(face.transcribe, "audio") for face in self.faces] + [(self.model.detect_language, "audio"), (transept.decode_audio, "input_file")]
        missing, none = str(self.text) + ".wav", "is no audio: no known container begins like this"
        for call, name in calls:
            for audio, words in ((self.text, f"{self.text}: {none}"), (str(self.text), f"{self.text}: {none}"), (b"no audio", f"{name}: {none}"), (b"", f"{name}: is empty"),
                                 (io.BytesIO(b"no audio"), f"{name}: {none}"), (self.folder.name, f"{self.folder.name}: is not a regular file"),
                                 (np.zeros(0, np.float32), f"{name}: is empty"), (np.array([0, np.nan], np.float32), f"{name}[1]: is not a finite number")):
                error = self.refused(InvalidArgumentError, words, call, audio)
                self.assertEqual((error.field, error.code), (name, "invalid_argument"))
            for audio, words in ((missing, f"{missing}: No such file"), ("", f"{name}: No such file")):
                error = self.refused(transept.NotFoundError, words, call, audio)
                self.assertEqual((error.field, error.code), (name, "not_found"))

    def test_errors_that_are_not_about_the_audio_stay_as_they_are(self):
        error = self.refused(InvalidArgumentError, "beam_size must be", self.model.transcribe, noise(1), language="en", beam_size=0)
        self.assertEqual(error.field, "beam_size")
        model = WhisperModel(WHISPER, cpu_threads=1)
        model.shutdown()
        self.assertEqual(self.refused(transept.UnavailableError, "", lambda: list(model.transcribe(noise(1), language="en")[0])).field, "")

    def test_languages_are_told_by_their_codes(self):
        names = {"en": "English", "de": "German", "fr": "French", "es": "Castilian", "zh": "Mandarin"}
        known = [code for code in names if code in self.model.supported_languages]
        self.assertIn("en", known)
        for face in self.faces:
            for code in known:
                for given in (code, code.upper(), names[code], names[code].lower(), f"<|{code}|>"):
                    segments, info = face.transcribe(noise(1), language=given, temperature=0.0, beam_size=1)
                    self.assertEqual((info.language, info.language_probability, info.all_language_probs), (code, 1.0, None), given)
                    segments.close()

    def test_an_empty_language_is_none(self):
        for face in self.faces:
            told = [face.transcribe(noise(5), language=language, temperature=0.0, beam_size=1)[1] for language in (None, "")]
            self.assertEqual(told[1].language, told[0].language)
            self.assertEqual(told[1].language_probability, told[0].language_probability)
            self.assertEqual(told[1].all_language_probs, told[0].all_language_probs)
            self.assertLess(told[1].language_probability, 1)

    def test_times(self):
        for wrong in ("x", None, "1"):
            self.refused(TypeError, "seconds must be a number, not ", transept.format_timestamp, wrong)
        for wrong in (-1, math.nan, math.inf):
            self.assertEqual(self.refused(InvalidArgumentError, "seconds must be a ", transept.format_timestamp, wrong).field, "seconds")
        self.assertEqual(transept.format_timestamp(0), "00:00.000")


if __name__ == "__main__":
    unittest.main()
