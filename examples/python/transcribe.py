"""Prints what is said: transcribe.py MODEL AUDIO"""

import sys

from transept import WhisperModel

model = WhisperModel(sys.argv[1])
segments, info = model.transcribe(sys.argv[2], beam_size=5, word_timestamps=True)
print(f"{info.duration:.1f} s of {info.language} ({info.language_probability:.2f})")
for segment in segments:
    print(f"[{segment.start:.2f} -> {segment.end:.2f}]{segment.text}")
