#!/usr/bin/env python3
"""How well the voice detector finds speech in ../shared/audio: frames of words that it misses, other frames that it takes.

    tools/measure_voice.py [--causal] [--shared DIR] [--probe build/release/src/speech/voice_probe] [--words FILE]
                           # needs `pip install openai-whisper`

Words are whisper-tiny's, from the goldens (`--words`: more of them, {"spoken/en01.flac": [[word, start, end]]}). They
reach over pauses, so a frame counts as speech where it lies in a word and is less than 40 dB below the loudest frame of
that word. Other frames: what long/index.jsonl calls silence or noise, and the clips of silence and noise in odd/.
"""
import argparse
import json
import pathlib
import subprocess

import numpy as np
import torch
from whisper.audio import HOP_LENGTH, N_FFT, load_audio, mel_filters

ROOT = pathlib.Path(__file__).resolve().parent.parent
WITHIN_WORD = 4.0  # decades of power
NO_SPEECH = ("odd/silence5.flac", "odd/silence45.flac", "odd/noise10.flac")
EDGE = 30  # frames beside speech that padding may take


def frames_of(path):
    """[frames, 80] of log10 mel power."""
    audio = torch.from_numpy(load_audio(str(path)))
    audio = torch.nn.functional.pad(audio, (0, max(0, N_FFT - len(audio))))
    power = torch.stft(audio, N_FFT, HOP_LENGTH, window=torch.hann_window(N_FFT), return_complex=True)[..., :-1].abs() ** 2
    return torch.clamp(mel_filters("cpu", 80) @ power, min=1e-10).log10().T.contiguous().numpy().astype("<f4")


def probe(command, frames):
    lines = subprocess.run(command, input=frames.tobytes(), stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    spans = {"speech": [], "window": []}
    for line in lines:
        kind, start, end = line.split()
        spans[kind].append((float(start), float(end)))
    return spans["speech"], spans["window"]


def golden_words(shared):
    words = {}
    for line in open(shared / "golden/audio/longform.jsonl", encoding="utf-8"):
        row = json.loads(line)
        if row["words"] and row["id"].endswith("words"):
            result = json.load(open(shared / "golden/audio" / row["file"], encoding="utf-8"))
            found = [[w["word"], w["start"], w["end"]] for s in result["segments"] for w in s["words"]]
            words.setdefault(row["audio"].removeprefix("audio/"), found)
    return words


def mark(size, spans):
    mask = np.zeros(size, dtype=bool)
    for start, end in spans:
        mask[max(0, round(start * 100)) : round(end * 100)] = True
    return mask


def spoken_mask(frames, words):
    level = np.log10(np.mean(10.0 ** frames, axis=1))
    mask = np.zeros(len(frames), dtype=bool)
    for _, start, end in words:
        a, b = round(start * 100), min(round(end * 100), len(frames))
        if b > a:
            mask[a:b] |= level[a:b] > level[a:b].max() - WITHIN_WORD
    return mask


def silent_mask(shared, name, size):
    if name in NO_SPEECH:
        return np.ones(size, dtype=bool)
    for line in open(shared / "audio/long/index.jsonl", encoding="utf-8"):
        row = json.loads(line)
        if row["file"] == name:
            parts = [(p["start"] + EDGE / 100, p["end"] - EDGE / 100) for p in row["parts"] if "silence" in p["what"] or "noise" in p["what"]]
            return mark(size, parts)
    return np.zeros(size, dtype=bool)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=pathlib.Path, default=ROOT.parent / "shared")
    parser.add_argument("--probe", default=str(ROOT / "build/release/src/speech/voice_probe"))
    parser.add_argument("--words")
    parser.add_argument("--causal", action="store_true", help="as live audio is heard: decisions 0.08 s late")
    options = parser.parse_args()
    words = golden_words(options.shared)
    if options.words:
        words.update(json.load(open(options.words, encoding="utf-8")))
    names = sorted({*words, *NO_SPEECH, *(f"long/{p.name}" for p in (options.shared / "audio/long").glob("*.flac"))})
    total, in_words = np.zeros(4), np.zeros(2)
    print(f"{'clip':28} {'speech':>8} {'missed':>8} {'silence':>8} {'taken':>8}   spans, windows")
    for name in names:
        frames = frames_of(options.shared / "audio" / name)
        spans, windows = probe([options.probe, *(["causal"] if options.causal else [])], frames)
        found = mark(len(frames), spans)
        silent = silent_mask(options.shared, name, len(frames))
        spoken = spoken_mask(frames, words.get(name, [])) & ~silent
        counts = np.array([spoken.sum(), (spoken & ~found).sum(), silent.sum(), (silent & found).sum()])
        total += counts
        within = mark(len(frames), [(start, end) for _, start, end in words.get(name, [])]) & ~silent
        in_words += within.sum(), (within & ~found).sum()
        print(f"{name:28} {counts[0]:8} {counts[1]:8} {counts[2]:8} {counts[3]:8}   {len(spans)}, {[(round(a, 2), round(b, 2)) for a, b in windows][:4]}")
    print(f"frames of words missed, pauses included: {100 * in_words[1] / max(1, in_words[0]):.2f} % of {in_words[0]:.0f}")
    print(f"speech missed: {100 * total[1] / max(1, total[0]):.2f} % of {total[0]:.0f} frames; "
          f"silence and noise taken for speech: {100 * total[3] / max(1, total[2]):.2f} % of {total[2]:.0f}")


if __name__ == "__main__":
    main()
