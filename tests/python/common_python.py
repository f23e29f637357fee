"""What the tests of the package share: models, and whether the shared audio is there."""
import os
import struct
import unittest
from pathlib import Path

import numpy as np

from transept import LLM

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests" / "models"
BART = MODELS / "bart-float32"
WHISPER = MODELS / "whisper-transcribes"
BINARY = Path(os.environ.get("TRANSEPT_BINARY", ROOT / "build" / "release" / "transept"))
SHARED = ROOT.parent / "shared"


class LlmCase(unittest.TestCase):
    """Tests of one model, which each class loads once."""

    @classmethod
    def setUpClass(cls):
        cls.llm = LLM(BART, threads=1)

    @classmethod
    def tearDownClass(cls):
        cls.llm.shutdown()


def noise(seconds, seed=3):
    """Samples for a model to be random about, float32."""
    random = np.random.default_rng(seed)
    pieces = [random.normal(0, loudness, 3200) for loudness in random.uniform(0.01, 0.3, 5 * seconds)]
    return np.concatenate(pieces).astype(np.float32)


def wav_bytes(samples):
    """A file of 16-bit samples at 16 kHz."""
    data = np.clip(samples * 32768, -32768, 32767).astype("<i2").tobytes()
    head = struct.pack("<4sIHHIIHH4sI", b"fmt ", 16, 1, 1, 16000, 32000, 2, 16, b"data", len(data))
    return b"RIFF" + struct.pack("<I", 4 + len(head) + len(data)) + b"WAVE" + head + data
