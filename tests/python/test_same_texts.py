"""examples/python/transcribe_clips.py, and the same with faster-whisper in its import line: equal texts over ../shared/audio.

What differs must be explained by what the two read, not by what they compute: with the samples and the language of
faster-whisper, Transept's text must be faster-whisper's."""
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

from common_python import ROOT, SHARED

PEER = os.environ.get("PEER_PYTHON", "")
MODEL = SHARED / "models" / "whisper-tiny"
SCRIPT = ROOT / "examples" / "python" / "transcribe_clips.py"
OURS, THEIRS = "from transept import WhisperModel", "from faster_whisper import WhisperModel"
SAMPLES = """
import sys, numpy
from faster_whisper import decode_audio
numpy.save(sys.argv[2], decode_audio(sys.argv[1]))
"""


def clips():
    audio = SHARED / "audio"
    files = [path for folder in (audio, *(audio / name for name in ("spoken", "long", "odd", "formats"))) for path in folder.iterdir()]
    return sorted(str(path) for path in files if path.is_file() and path.suffix not in (".md", ".jsonl"))


def transcripts(python, script, model, files):
    done = subprocess.run([python, str(script), str(model), *files], capture_output=True, text=True, check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    return {line["file"]: line for line in map(json.loads, done.stdout.splitlines())}


def text_of(transcript):
    return "".join(segment["text"] for segment in transcript["segments"]) if "segments" in transcript else transcript["error"]


class SameTexts(unittest.TestCase):
    def test_every_clip(self):
        folder = Path(os.environ["TRANSEPT_SCRATCH"])
        script = folder / "peer_clips.py"
        source = SCRIPT.read_text(encoding="utf-8")
        self.assertEqual(source.count(OURS), 1)
        script.write_text(source.replace(OURS, THEIRS), encoding="utf-8")
        converted = folder / "whisper-tiny-float32"
        here = Path(__file__).parent
        subprocess.run([PEER, "-c", "import sys, ctranslate2_models as m; m.convert_whisper(*sys.argv[1:])", str(MODEL), str(converted)], cwd=here, check=True)
        files = clips()
        self.assertGreater(len(files), 90)
        theirs, ours = transcripts(PEER, script, converted, files), transcripts(sys.executable, SCRIPT, MODEL, files)
        others = [file for file in files if text_of(theirs[file]) != text_of(ours[file])]
        print(f"\n{len(files) - len(others)} of {len(files)} clips have the same text from the file")
        for file in others:
            self.explain(file, theirs[file], folder)
        self.assertLessEqual(len(others), 3)

    def explain(self, file, wanted, folder):
        import numpy as np

        from transept import WhisperModel

        samples = folder / "samples.npy"
        subprocess.run([PEER, "-c", SAMPLES, file, str(samples)], check=True)
        model = WhisperModel(MODEL, compute_type="float32")
        segments, _ = model.transcribe(np.load(samples), language=wanted["language"], temperature=0.0)
        self.assertEqual("".join(segment.text for segment in segments), text_of(wanted), file)
        print(f"{Path(file).name}: the same text from faster-whisper's samples and language")


if __name__ == "__main__":
    unittest.main()
