"""WhisperModel and BatchedInferencePipeline: what they give, what they refuse, laziness."""
import io
import json
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

import numpy as np
from common_python import BART, BINARY, WHISPER, noise, wav_bytes

import transept
from transept import BatchedInferencePipeline, WhisperModel


def binary_transcript(path, *flags):
    """openai-whisper's JSON from the binary: the oracle."""
    done = subprocess.run([str(BINARY), "transcribe", str(WHISPER), str(path), "-f", "json", "-o", "-", *flags], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class Whisper(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = WhisperModel(WHISPER, cpu_threads=1)
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = Path(cls.folder.name) / "noise.wav"
        cls.path.write_bytes(wav_bytes(noise(70)))
        cls.samples = transept.decode_audio(cls.path)

    @classmethod
    def tearDownClass(cls):
        cls.model.shutdown()
        cls.folder.cleanup()

    def transcribe(self, audio=None, **options):
        segments, info = self.model.transcribe(self.path if audio is None else audio, **{"temperature": 0.0, "language": "en", "beam_size": 1, **options})
        return list(segments), info

    def test_segments_are_the_binarys(self):
        flags = ["--language", "en", "--beam-size", "2", "--temperature-increment-on-fallback", "none", "--word-timestamps", "true"]
        wanted = [s for s in binary_transcript(self.path, *flags)["segments"] if s["text"].strip() and s["start"] != s["end"]]
        segments, info = self.transcribe(beam_size=2, word_timestamps=True)
        self.assertGreater(len(segments), 2)
        self.assertEqual([s.text for s in segments], [s["text"] for s in wanted])
        self.assertEqual([s.tokens for s in segments], [s["tokens"] for s in wanted])
        self.assertEqual([s.seek for s in segments], [s["seek"] for s in wanted])
        self.assertEqual([s.id for s in segments], list(range(1, len(wanted) + 1)))
        for mine, theirs in zip(segments, wanted):
            self.assertAlmostEqual(mine.start, theirs["start"], 6)
            self.assertAlmostEqual(mine.end, theirs["end"], 6)
            self.assertAlmostEqual(mine.avg_logprob, theirs["avg_logprob"], 5)
            self.assertEqual([w.word for w in mine.words], [w["word"] for w in theirs["words"]])
            self.assertEqual(mine._asdict()["text"], theirs["text"])
        self.assertEqual((info.language, info.language_probability, info.all_language_probs), ("en", 1.0, None))
        self.assertAlmostEqual(info.duration, 70, 3)
        self.assertIsNone(self.transcribe()[0][0].words)

    def test_every_kind_of_audio_is_the_same(self):
        wanted = [s.text for s in self.transcribe()[0]]
        content = self.path.read_bytes()
        kinds = [str(self.path), content, bytearray(content), io.BytesIO(content), self.samples, self.samples.astype(np.float64), np.repeat(self.samples, 2)[::2]]
        for kind in kinds:
            self.assertEqual([s.text for s in self.transcribe(kind)[0]], wanted, type(kind))
        self.assertEqual(len(self.samples), 70 * 16000)
        self.assertEqual(self.samples.dtype, np.float32)
        np.testing.assert_allclose(self.samples, np.frombuffer(content[44:], "<i2").astype(np.float32) / 32768, atol=0)

    def test_language_is_detected(self):
        segments, info = self.model.transcribe(self.samples, temperature=0.0, beam_size=1)
        self.assertIn(info.language, self.model.supported_languages)
        self.assertEqual(info.all_language_probs[0], (info.language, info.language_probability))
        self.assertAlmostEqual(sum(p for _, p in info.all_language_probs), 1, 3)
        self.assertEqual(self.model.detect_language(self.samples)[0], info.language)
        segments.close()

    def test_segments_are_lazy(self):
        """Decoding waits for the reader, and ends when the reader goes."""
        segments, _ = self.model.transcribe(noise(600), temperature=0.0, language="en", beam_size=1)
        next(segments)
        time.sleep(0.3)
        before = self.model._model.stats()["encoder_runs"]
        time.sleep(0.5)
        self.assertEqual(self.model._model.stats()["encoder_runs"], before)
        segments.close()
        unread = [self.model.transcribe(noise(60), language="en")[0] for _ in range(5)]
        del unread

    def test_reading_in_another_thread(self):
        segments, _ = self.model.transcribe(self.samples, temperature=0.0, language="en", beam_size=1)
        found = []
        reader = threading.Thread(target=lambda: found.extend(segments))
        reader.start()
        reader.join()
        self.assertEqual([s.text for s in found], [s.text for s in self.transcribe()[0]])

    def test_batched(self):
        pipeline = BatchedInferencePipeline(model=self.model)
        segments, info = pipeline.transcribe(self.path, language="en", batch_size=4, beam_size=1)
        texts = [s.text for s in segments]
        flags = ["--language", "en", "--beam-size", "1", "--mode", "batched", "--without-timestamps", "true", "--temperature-increment-on-fallback", "none",
                 "--no-speech-threshold", "none", "--logprob-threshold", "none", "--compression-ratio-threshold", "none"]
        self.assertEqual(texts, [s["text"] for s in binary_transcript(self.path, *flags)["segments"] if s["text"].strip()])
        self.assertEqual(info.duration, 70)
        with self.assertRaises(transept.UnsupportedError):
            pipeline.transcribe(self.path, vad_filter=False)

    def test_errors(self):
        with self.assertRaises(FileNotFoundError):
            self.transcribe("/no/such/file.wav")
        with self.assertRaises(transept.InvalidArgumentError):
            self.transcribe(b"no audio at all")
        with self.assertRaises(transept.InvalidArgumentError):
            self.transcribe(language="xx")
        with self.assertRaises(transept.InvalidArgumentError):
            self.transcribe(np.array([np.nan] * 100, np.float32))
        for wrong in (np.zeros(10, np.int16), np.zeros((2, 5), np.float32), 3, None):
            with self.assertRaises(TypeError):
                self.model.transcribe(wrong)
        with self.assertRaises(TypeError):
            self.model.transcribe(self.samples, beam=3)
        with self.assertRaises(transept.UnsupportedError):
            WhisperModel(BART)

    def test_refused_arguments(self):
        refused = [dict(repetition_penalty=1.2), dict(no_repeat_ngram_size=3), dict(max_new_tokens=5), dict(multilingual=True), dict(chunk_length=10)]
        refused += [dict(vad_parameters={}), dict(length_penalty=2), dict(suppress_blank=False), dict(temperature=[0.0, 0.5]), dict(initial_prompt=[1, 2])]
        for arguments in refused:
            with self.assertRaises(transept.UnsupportedError, msg=str(arguments)) as caught:
                self.model.transcribe(self.samples, **arguments)
            self.assertEqual(caught.exception.field, next(iter(arguments)))
        with self.assertRaises(transept.UnsupportedError):
            WhisperModel(WHISPER, compute_type="int16")
        with self.assertRaises(TypeError):
            WhisperModel(WHISPER, no_such_option=1)

    def test_options_have_their_effect(self):
        plain = [s.text for s in self.transcribe()[0]]
        self.assertEqual([s.text for s in self.transcribe(temperature=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0), log_prob_threshold=None,
                                                          compression_ratio_threshold=None, no_speech_threshold=None)[0]],
                         [s.text for s in self.transcribe(no_speech_threshold=None, log_prob_threshold=None, compression_ratio_threshold=None)[0]])
        tokens = lambda **options: [token for segment in self.transcribe(**options)[0] for token in segment.tokens]
        banned = tokens()[1]
        self.assertNotIn(banned, tokens(suppress_tokens=[-1, banned]))
        self.assertIn(banned, tokens(suppress_tokens=[-1]))
        clipped, _ = self.transcribe(clip_timestamps=[10, 20])
        self.assertTrue(all(s.start >= 10 for s in clipped))
        self.assertNotEqual([s.text for s in clipped], plain)
        segments, info = self.transcribe(hotwords="Transept", initial_prompt="A talk.")
        self.assertEqual(info.transcription_options.hotwords, "Transept")

    def test_small_functions(self):
        self.assertIn("large-v3", transept.available_models())
        self.assertEqual(transept.format_timestamp(3661.5), "01:01:01.500")
        self.assertEqual(transept.format_timestamp(1.5, decimal_marker=","), "00:01,500")
        self.assertEqual(self.model.hf_tokenizer.decode(self.model.hf_tokenizer.encode(" a b"), True), " a b")


if __name__ == "__main__":
    unittest.main()
