"""Transcribes audio files, one JSON object a line: transcribe_clips.py MODEL FILE... With faster-whisper instead of Transept
the first import line is another, and nothing else."""
from transept import WhisperModel

import json
import sys

model = WhisperModel(sys.argv[1], device="cpu", compute_type="float32")
for path in sys.argv[2:]:
    try:
        # At temperatures above 0 both draw, each with its own random numbers.
        segments, info = model.transcribe(path, beam_size=5, temperature=0.0)
        found = [{"start": round(s.start, 2), "end": round(s.end, 2), "text": s.text} for s in segments]
        print(json.dumps({"file": path, "language": info.language, "segments": found}), flush=True)
    except Exception as error:
        print(json.dumps({"file": path, "error": type(error).__name__}), flush=True)
