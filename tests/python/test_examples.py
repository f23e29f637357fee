"""The examples run, and say what the binary says."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from common_python import BART, BINARY, MODELS, ROOT, WHISPER, noise, wav_bytes

EXAMPLES = ROOT / "examples" / "python"


def run(name, *arguments):
    return subprocess.run([sys.executable, str(EXAMPLES / name), *map(str, arguments)], capture_output=True, text=True, check=True).stdout


class Examples(unittest.TestCase):
    def test_generate(self):
        texts = ["Nobody is overtaken", "The ship leaves"]
        wanted = subprocess.run([str(BINARY), "generate", str(BART), *texts, "--max-tokens", "12"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(run("generate.py", BART, *texts), wanted)

    def test_stream(self):
        wanted = subprocess.run([str(BINARY), "generate", str(BART), "a b c"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(run("stream.py", BART, "a b c"), wanted)

    def test_transcribe(self):
        with tempfile.TemporaryDirectory() as folder:
            sound = Path(folder) / "noise.wav"
            sound.write_bytes(wav_bytes(noise(35)))
            self.assertIn(" -> ", run("transcribe.py", WHISPER, sound))
            self.assertIn('"segments"', run("transcribe_clips.py", WHISPER, sound))

    def test_translate(self):
        self.assertTrue(run("translate.py", MODELS / "marian-two-vocabularies", "The ship leaves"))


if __name__ == "__main__":
    unittest.main()
