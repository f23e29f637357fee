#!/usr/bin/env python3
"""Real-time factor of a Whisper checkpoint over long audio in float32: transept beside faster-whisper, and beside what
bounds both.

    .venv/bin/python bench/compare_faster_whisper.py [MODEL AUDIO] [--threads 1 0] [--beams 1 5] [--batch-size 8] [--quick]

MODEL is a Whisper folder as Hugging Face has it; without arguments ../shared's whisper-tiny and its clip of 120 s. Needs
`pip install faster-whisper`, and torch and transformers to convert the weights for it, once, in .cache/bench.

From file to text, loading apart: audio decoding, log-mel, language given, temperature 0. Same machine, same threads, same
run: rounds alternate between the two; each call is warmed up by one before it. Modes: `sequential`, the algorithm of
openai-whisper; `batched`, cut at pauses, with and without timestamps (faster-whisper's default is without). Figures are
medians over the rounds with their range. The two must hear the same: how far their words are apart stands beside.

Bound: encoder operations of our windows over the peak that machine_bench measured in this run, and for each step the
decoder's weights and the cross keys and values, once, over its read bandwidth. Alone on the machine, please.
"""
import argparse
import difflib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ctranslate2
import faster_whisper

from compare_ctranslate2 import BUILD, ROOT, measure_machine

SHARED = ROOT.parent / "shared"
MODES = ("sequential", "batched", "batched, no times")


def convert(model, cache):
    """CTranslate2's folder of the same weights, made once."""
    folder = cache / f"{model.resolve().name}-ct2-float32"
    if not (folder / "model.bin").exists():
        from ctranslate2.converters import TransformersConverter
        copied = [name for name in ("tokenizer.json", "preprocessor_config.json") if (model / name).exists()]
        TransformersConverter(str(model), copy_files=copied).convert(str(folder), quantization="float32", force=True)
    return folder


# ---- the two engines: (seconds of each call, text)

class FasterWhisper:
    name = f"faster-whisper {faster_whisper.__version__} (CTranslate2 {ctranslate2.__version__}) float32"

    def __init__(self, folder, threads):
        self.model = faster_whisper.WhisperModel(str(folder), device="cpu", compute_type="float32", cpu_threads=threads)
        self.batched = faster_whisper.BatchedInferencePipeline(self.model)

    def calls(self, audio, mode, beams, options):
        seconds, text = [], ""
        for _ in range(options.repeats + 1):  # the first one warms up
            start = time.perf_counter()
            if mode == "sequential":
                segments, _ = self.model.transcribe(str(audio), language=options.language, beam_size=beams, temperature=0)
            else:
                segments, _ = self.batched.transcribe(str(audio), language=options.language, beam_size=beams, temperature=0,
                                                      batch_size=options.batch_size, without_timestamps=mode != "batched")
            text = " ".join(segment.text.strip() for segment in segments)  # a generator: the work is done here
            seconds.append(time.perf_counter() - start)
        return seconds[1:], text


class Transept:
    name = "transept float32"

    def __init__(self, folder, threads):
        self.folder, self.threads, self.facts = folder, threads, {}

    def calls(self, audio, mode, beams, options):
        with tempfile.TemporaryDirectory() as scratch:
            names = [f"{i}{audio.suffix}" for i in range(options.repeats + 1)]  # the first one warms up
            for name in names:
                (Path(scratch) / name).symlink_to(audio.resolve())
            command = [str(BUILD / "transept"), "transcribe", str(self.folder), *names, "--output-format", "json", "--verbose", "false",
                       "--num-workers", "1", "--share-identical-inputs", "off", "--threads", str(self.threads), "--language", options.language,
                       "--temperature-increment-on-fallback", "none", "--beam-size", str(beams), "--mode", mode.split(",")[0],
                       "--batch-size", str(options.batch_size), "--stats-json", "stats.json",
                       "--without-timestamps", "true" if mode == "batched, no times" else "false"]
            subprocess.run(command, check=True, cwd=scratch)
            stats = json.loads((Path(scratch) / "stats.json").read_text())
            text = json.loads((Path(scratch) / "0.json").read_text())["text"]
        stats.pop("steps")
        self.facts = {**stats, "calls": len(names)}
        return [file["seconds"] for file in stats["files"][1:]], text


def words(text):
    return "".join(c if c.isalnum() or c == "'" else " " for c in text.lower()).split()


def apart(a, b):
    """Share of words that are not the same."""
    return 1 - difflib.SequenceMatcher(None, words(a), words(b), autojunk=False).ratio()


# ---- bounds

def bound(model, facts, machine):
    """Seconds at least of one call, from what it did: windows encoded, and steps."""
    config = json.loads((model / "config.json").read_text())
    d, positions, mels = config["d_model"], config["max_source_positions"], config["num_mel_bins"]
    layer = 4 * d * d + 2 * d * config["encoder_ffn_dim"]
    convolutions = 3 * mels * d * 2 * positions + 3 * d * d * positions
    cross = config["decoder_layers"] * 2 * d * d
    encode_flop = 2 * (convolutions + positions * (config["encoder_layers"] * (layer + 2 * positions * d) + cross))
    decoder = config["decoder_layers"] * (6 * d * d + 2 * d * config["decoder_ffn_dim"]) + config["vocab_size"] * d
    step_bytes = 4 * (decoder + config["decoder_layers"] * 2 * positions * d)
    encodes, steps = facts["encoder_runs"] / facts["calls"], facts["num_steps"] / facts["calls"]
    return encodes * encode_flop / machine["multiply"] + max(0, steps - encodes) * step_bytes / machine["read"]


# ---- measuring

def measure(engines, audio, mode, beams, options):
    """{engine: {seconds, range, text}}, medians over alternating rounds."""
    seen = {engine: [] for engine in engines}
    texts = {}
    for _ in range(options.rounds):
        for engine in engines:
            seconds, texts[engine] = engine.calls(audio, mode, beams, options)
            seen[engine] += seconds
    return {engine: {"seconds": statistics.median(seconds), "range": (min(seconds), max(seconds)), "text": texts[engine]}
            for engine, seconds in seen.items()}


def compare(threads, options):
    ours = Transept(options.model, threads)
    peer = FasterWhisper(convert(options.model, options.cache), threads)
    machine, rows = measure_machine(threads), []
    for mode in options.modes:
        for beams in options.beams:
            figures = measure([ours, peer], options.audio, mode, beams, options)
            mine, theirs = figures[ours], figures[peer]
            rows.append({"mode": mode, "beams": beams, "transept": mine, "peer": theirs, "apart": apart(mine["text"], theirs["text"]),
                         "bound": bound(options.model, ours.facts, machine), "audio_seconds": ours.facts["files"][0]["audio_seconds"],
                         "windows": ours.facts["num_windows"] / ours.facts["calls"]})
            report_row(rows[-1])
    facts = {key: ours.facts[key] for key in ("version", "commit", "isa", "dtype", "seed")}
    return {"model": options.model.name, "audio": options.audio.name, "threads": threads, "peer": peer.name, "machine": machine,
            "rounds": options.rounds, "repeats": options.repeats, "batch_size": options.batch_size, **facts, "rows": rows}


def report_row(row):
    seconds = row["audio_seconds"]
    place = f"{row['mode']:<19}{row['beams']:>5}  "
    for name, f in (("transept", row["transept"]), ("faster-whisper", row["peer"])):
        low, high = f["range"]
        print(f"{place}{name:<16}{seconds / f['seconds']:>8.1f}x{f['seconds']:>9.2f} ({low:.2f} to {high:.2f}){100 * row['bound'] / f['seconds']:>8.0f} %")
    print(f"{'':26}ratio {row['peer']['seconds'] / row['transept']['seconds']:.2f}x; {row['windows']:.0f} windows; "
          f"{100 * row['apart']:.1f} % of the words differ\n", flush=True)


def report_head(options, threads):
    print(f"{options.model.name}, {options.audio.name}, float32, threads {threads}, {options.rounds} alternating rounds of {options.repeats} calls, "
          f"batch {options.batch_size}; {FasterWhisper.name}")
    print(f"{'mode':<19}{'beams':>5}  {'engine':<16}{'real time':>9}{'seconds (range)':>26}{'of bound':>10}")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", type=Path, default=SHARED / "models" / "whisper-tiny")
    parser.add_argument("audio", nargs="?", type=Path, default=SHARED / "audio" / "tedlium_long_120s.flac")
    parser.add_argument("--language", default="en")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 0], help="one after the other; 0: all processors")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=2, help="calls a round, after one that warms up")
    parser.add_argument("--quick", action="store_true", help="1 round of 1 call, greedy")
    parser.add_argument("--cache", type=Path, default=ROOT / ".cache" / "bench")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    for path in (options.model / "config.json", options.audio):
        if not path.exists():
            parser.error(f"no {path}: give MODEL and AUDIO")
    if options.quick:
        options.rounds, options.repeats, options.beams = 1, 1, [1]
    return options


def main():
    options = parse_options()
    results = []
    for threads in dict.fromkeys(count or len(os.sched_getaffinity(0)) for count in options.threads):
        report_head(options, threads)
        results.append(compare(threads, options))
        machine = results[-1]["machine"]
        print(f"transept {results[-1]['version']} ({results[-1]['commit']}), {results[-1]['isa']} kernels; this machine, now, on so many threads: "
              f"{machine['read'] / 1e9:.1f} GB/s read from memory, {machine['multiply'] / 1e9:.0f} GFLOP/s in float32\n", flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
