"""examples/python/transcribe_clips.py, and the same with faster-whisper in its import line: equal texts over ../shared/audio.

Both decode files by FFmpeg, whose releases decode MP3 to slightly other samples: where a text differs, Transept is given the FFmpeg that
faster-whisper's PyAV brings, and the texts must be equal then. Options are compared over one clip."""
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

from common_python import ROOT, SHARED

PEER = os.environ.get("PEER_PYTHON", "")
FOLDER = Path(os.environ["TRANSEPT_SCRATCH"])
MODEL = SHARED / "models" / "whisper-tiny"
SCRIPT = ROOT / "examples" / "python" / "transcribe_clips.py"
OURS, THEIRS = "from transept import WhisperModel", "from faster_whisper import WhisperModel"
# The same calls of both.
CALLS = """
import itertools, json, sys
from transept import WhisperModel
model = WhisperModel(sys.argv[1], device="cpu", compute_type="float32")
for path in sys.argv[2:]:
    prefixes = [None, "And so", "And so my fellow", "And so my fellow Americans ask not"]
    calls = [{"prefix": p, "without_timestamps": t, "beam_size": b} for p, t, b in itertools.product(prefixes, (True, False), (1, 2, 5))]
    calls += [{"clip_timestamps": clips} for clips in ("2", "1.5,4", "3,6,7,9", "50")]
    calls += [{"patience": patience} for patience in (0.2, 0.4, 0.7, 2.0)] + [{"patience": 2.0, "beam_size": 1}]
    calls += [{"prefix": "Hello", "clip_timestamps": "1"}, {"hotwords": "Kennedy " * 300}]
    calls += [{"initial_prompt": "JFK."}, {"hotwords": "Americans"}, {"suppress_tokens": []}, {"task": "translate"}, {"language": "de"}]
    for call in calls:
        segments, info = model.transcribe(path, temperature=0.0, **call)
        found = [{"start": round(s.start, 2), "end": round(s.end, 2), "text": s.text} for s in segments]
        print(json.dumps({"file": f"{path} {call}", "language": info.language, "segments": found}), flush=True)
"""
LINKS = """
import pathlib, sys, av
libraries = next(pathlib.Path(av.__file__).parent.parent.glob("av.libs"))
for file in libraries.iterdir():
    name, _, rest = file.name.partition("-")
    if name.startswith(("libav", "libsw")):
        (pathlib.Path(sys.argv[1]) / f"{name}.so.{rest.partition('.so.')[2].split('.')[0]}").symlink_to(file)
print(libraries)
"""


def clips():
    audio = SHARED / "audio"
    files = [path for folder in (audio, *(audio / name for name in ("spoken", "long", "odd", "formats"))) for path in folder.iterdir()]
    return sorted(str(path) for path in files if path.is_file() and path.suffix not in (".md", ".jsonl"))


def transcripts(python, script, model, files, **more):
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", **more}
    done = subprocess.run([python, str(script), str(model), *files], capture_output=True, text=True, check=True, env=environment)
    return {line["file"]: line for line in map(json.loads, done.stdout.splitlines())}


def peers_script(source, name):
    """The script at `name` with faster-whisper in its import line."""
    assert source.count(OURS) == 1
    script = FOLDER / name
    script.write_text(source.replace(OURS, THEIRS), encoding="utf-8")
    return script


def text_of(transcript):
    return "".join(segment["text"] for segment in transcript["segments"]) if "segments" in transcript else transcript["error"]


class SameTexts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.converted = FOLDER / "whisper-tiny-float32"
        convert = "import sys, ctranslate2_models as m; m.convert_whisper(*sys.argv[1:])"
        subprocess.run([PEER, "-c", convert, str(MODEL), str(cls.converted)], cwd=Path(__file__).parent, check=True)

    def test_every_clip(self):
        script = peers_script(SCRIPT.read_text(encoding="utf-8"), "peer_clips.py")
        files = clips()
        self.assertGreater(len(files), 90)
        theirs, ours = transcripts(PEER, script, self.converted, files), transcripts(sys.executable, SCRIPT, MODEL, files)
        others = [file for file in files if text_of(theirs[file]) != text_of(ours[file])]
        print(f"\n{len(files) - len(others)} of {len(files)} clips have the same text")
        if not others:
            return
        links = FOLDER / "ffmpeg"
        links.mkdir()
        libraries = subprocess.run([PEER, "-c", LINKS, str(links)], capture_output=True, text=True, check=True).stdout.strip()
        again = transcripts(sys.executable, SCRIPT, MODEL, others, LD_LIBRARY_PATH=f"{links}:{libraries}")
        for file in others:
            self.assertEqual(text_of(again[file]), text_of(theirs[file]), file)
            print(f"{Path(file).name}: the same text with the same FFmpeg")
        self.assertLessEqual(len(others), 3)

    def test_options(self):
        script = FOLDER / "calls.py"
        script.write_text(CALLS, encoding="utf-8")
        clip = str(SHARED / "audio" / "jfk.flac")
        theirs = transcripts(PEER, peers_script(CALLS, "peer_calls.py"), self.converted, [clip])
        ours = transcripts(sys.executable, script, MODEL, [clip])
        for call, wanted in theirs.items():
            with self.subTest(call=call):
                self.assertEqual(ours[call], wanted)


if __name__ == "__main__":
    unittest.main()
