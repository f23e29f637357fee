#!/usr/bin/env python3
"""What a fleet answers is what one process answers, to the byte: tests/epd_same_answers.py [--transept PATH] [--root FOLDER] [--speech MODEL --clips
FOLDER] [--filter SUBSTR] [--jobs N] [--every].

Requests, beams and scores of every text folder below --root, and clips through speech models, in circumstances (backend, block size, pool, types of
weights and of KV) and through fleets: two encode instances for one, over a broker of its own and over Redis. Then servers with several decode instances
behind a proxy. All that is written is compared as text, log-probabilities with it; only what says how long it took is left out. The golden files are
not read: tests/golden.py has them. Needs redis-server for the ways over Redis, which are skipped by name without it. Closes with `N passed, N failed`."""
import argparse
import itertools
import json
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import epd_fleet  # noqa: F401, by which the modules of tests/server are found
import epd_load
import golden
import harness
import serving
from epd_by_hand import Redis, serving_status

FILES = ("requests", "beams", "score", "batch")
TIMES = {"metrics"}  # fields that tell of time
# Backend, block size, pool, and extra flags.
CIRCUMSTANCES = {
    "plain": ("cpu", "16", "roomy", ()),
    "reference, blocks of 1, tiny pool": ("reference", "1", "tiny", ()),
    "blocks of 1, tiny pool, swaps": ("cpu", "1", "tiny", ("--preemption-mode", "swap")),
    "int8": ("cpu", "16", "roomy", ("--quantization", "int8")),
    "bfloat16, KV of bfloat16": ("cpu", "16", "tiny", ("--dtype", "bfloat16", "--kv-cache-dtype", "bfloat16")),
    "float16, KV of int8": ("cpu", "16", "roomy", ("--dtype", "float16", "--kv-cache-dtype", "int8")),
}
SPEECH_CIRCUMSTANCES = {
    "plain": ("--word-timestamps",),
    "reference, blocks of 1": ("--attention-backend", "reference", "--block-size", "1"),
    "int8": ("--quantization", "int8"),
    "float16, KV of int8": ("--dtype", "float16", "--kv-cache-dtype", "int8", "--beam-size", "1"),
}


def main():
    parser = argparse.ArgumentParser(prog="tests/epd_same_answers.py")
    parser.add_argument("--transept", type=Path, default=serving.ROOT / "build" / "release" / "transept")
    parser.add_argument("--root", type=Path, default=serving.ROOT / "tests" / "models", help="folders of text models with requests.jsonl")
    parser.add_argument("--speech", type=Path, action="append", default=[], metavar="MODEL", help="instead of the one of tests/models that transcribes")
    parser.add_argument("--clips", type=Path, help="audio files for the speech models (default: melodies)")
    parser.add_argument("--filter", default="", metavar="SUBSTR", help="cases whose name has it")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--every", action="store_true", help="every circumstance through every fleet, and not each through one in turn")
    options = parser.parse_args()
    options.transept = options.transept.resolve()
    passed, failures, notes = 0, [], []
    with Fleets() as fleets:
        notes += fleets.notes
        cases = [*text_cases(options, fleets), *speech_cases(options, fleets), *served_cases(options)]
        cases = [(name, run) for name, run in cases if options.filter in name]
        with ThreadPoolExecutor(options.jobs) as pool:
            for (name, _), problem in zip(cases, pool.map(outcome, (run for _, run in cases))):
                passed += not problem
                failures += [f"FAIL {name}: {problem}"] if problem else []
    print("\n".join([*failures, *notes]))
    print(f"{passed} passed, {len(failures)} failed" + (f", {len(notes)} skipped" if notes else ""))
    sys.exit(1 if failures or not passed else 0)


def outcome(run):
    """What is wrong, or ""."""
    try:
        return run()
    except Exception as error:  # pylint: disable=broad-except
        return f"{type(error).__name__}: {error}"


class Fleets:
    """{name: flags} of the ways to have encoders elsewhere, and the Redis server that some of them need."""

    def __enter__(self):
        self.ways, self.notes, self.redis = {"1E1D": ("--epd", "1E1D"), "2E1D": ("--epd", "2E1D")}, [], None
        try:
            self.redis = Redis().__enter__()
            self.ways["1E1D over Redis"] = ("--epd", "1E1D", "--epd-broker", self.redis.url)
            self.ways["2E1D over Redis"] = ("--epd", "2E1D", "--epd-broker", self.redis.url)
        except harness.Skip as why:
            self.notes.append(f"skipped: fleets over Redis: {why}")
        return self

    def __exit__(self, *_):
        if self.redis:
            self.redis.__exit__()

    def chosen(self, circumstances, every, turn):
        """Pairs (circumstance, fleet): all of them, or each circumstance with the next fleet."""
        if every:
            return list(itertools.product(circumstances, self.ways))
        names = itertools.islice(itertools.cycle(self.ways), turn, None)
        return list(zip(circumstances, names))


# ---- Text, by generate

def text_cases(options, fleets):
    folders = sorted({path.parent for path in options.root.rglob("requests.jsonl") if (path.parent / "config.json").exists()})
    for turn, (folder, file) in enumerate(itertools.product(folders, FILES)):
        if not (folder / f"{file}.jsonl").exists():
            continue
        for circumstance, fleet in fleets.chosen(CIRCUMSTANCES, options.every, turn % len(fleets.ways)):
            name = f"{folder.relative_to(options.root)}/{file}, {circumstance}, {fleet}"
            yield name, lambda folder=folder, file=file, what=circumstance, fleet=fleet: text_case(options, folder, file, what, fleets.ways[fleet])


def text_case(options, folder, file, circumstance, fleet):
    backend, block_size, pool, more = CIRCUMSTANCES[circumstance]
    requests = golden.read_jsonl(folder / f"{file}.jsonl")
    config, defaults = (json.loads(p.read_text()) if p.exists() else {} for p in (folder / "config.json", folder / "generation_config.json"))
    way = {"--attention-backend": backend, "--block-size": block_size, "pool": pool, "plans": "", "drafts": "", "encoder": "in another process"}
    # Pools are of one size, the larger one, though one process has no rows on their way.
    flags = [flag for flag in golden.flags_of(way, config, defaults, requests) if flag not in ("--epd", "1E1D")] + list(more)
    one = generated(options.transept, folder, file, flags)
    several = generated(options.transept, folder, file, [*flags, *fleet])
    return difference(one, several)


def generated(binary, folder, file, flags):
    """(exit code, lines as they are compared). What cannot run at all says why."""
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "output.jsonl"
        command = [binary, "generate", folder, "--input", folder / f"{file}.jsonl", "--output", output, *(["--score"] if file == "score" else []), *flags]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-400:]}")
        return done.returncode, [without_times(line) for line in output.read_text(encoding="utf-8").splitlines()]


def without_times(line):
    """The line with its numbers as they were written."""
    record = json.loads(line, parse_float=lambda text: f"number {text}", parse_int=lambda text: f"number {text}")
    return json.dumps({name: value for name, value in record.items() if name not in TIMES}, ensure_ascii=False)


def difference(one, several):
    """What is first not the same, or ""."""
    if one[0] != several[0] or len(one[1]) != len(several[1]):
        return f"exit codes {one[0]} and {several[0]}, {len(one[1])} and {len(several[1])} lines"
    if not any('"error": ' not in line for line in one[1]):
        return "nothing was answered"
    unequal = [(a, b) for a, b in zip(one[1], several[1]) if a != b]
    return f"{len(unequal)} of {len(one[1])} differ, first:\n  one process {unequal[0][0][:400]}\n  fleet       {unequal[0][1][:400]}" if unequal else ""


# ---- Speech, by transcribe

def speech_cases(options, fleets):
    for turn, model in enumerate(options.speech or [serving.SPEECH_MODEL]):
        for circumstance, fleet in fleets.chosen(SPEECH_CIRCUMSTANCES, options.every, turn % len(fleets.ways)):
            yield f"{model.name}, clips, {circumstance}, {fleet}", lambda model=model, what=circumstance, fleet=fleet: speech_case(
                options, model, SPEECH_CIRCUMSTANCES[what], fleets.ways[fleet])


def speech_case(options, model, flags, fleet):
    with tempfile.TemporaryDirectory() as scratch:
        clips = options.clips
        if clips is None:
            clips, rng = Path(scratch) / "clips", random.Random(5)
            clips.mkdir()
            for number, seconds in enumerate((0.7, 2, 29, 45, 100)):
                (clips / f"{number}.wav").write_bytes(epd_load.melody(rng, seconds))
        flags = [flag for flag in flags if flag != "--word-timestamps" or says_words(model)]
        return difference(transcribed(options.transept, model, clips, flags), transcribed(options.transept, model, clips, [*flags, *fleet]))


def says_words(model):
    """Whether the model knows when words are spoken."""
    path = model / "generation_config.json"
    return path.exists() and "alignment_heads" in json.loads(path.read_text())


def transcribed(binary, model, clips, flags):
    with tempfile.TemporaryDirectory() as scratch:
        command = [binary, "transcribe", model, clips, "--recursive", "--output-dir", scratch, "--output-format", "json", "--quiet", *flags]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=1800, stdin=subprocess.DEVNULL)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-400:]}")
        files = sorted(path for path in Path(scratch).rglob("*.json"))
        return done.returncode, [f"{path.relative_to(scratch)}: {path.read_text(encoding='utf-8')}" for path in files]


# ---- Servers: several decode instances, and a long file

def served_cases(options):
    yield f"{HOURS} hours", lambda: long_case(options)
    for model, source in ((serving.TEXT_MODEL, epd_load.Texts(3)), (serving.SPEECH_MODEL, epd_load.Sounds(3))):
        for shape in ("1E2D", "2E2D"):
            yield f"{model.name}, served by {shape}", lambda model=model, source=source, shape=shape: served_case(options, model, source, shape)


HOURS, CHUNK = 2, 100  # of the long file, whose sound comes again after so many seconds


def long_case(options):
    """Two hours in one upload, and the same by transcribe: the text is one process's, each window is encoded once, by the encode instance alone."""
    chunk = epd_load.melody(random.Random(7), CHUNK)
    samples = chunk[44:44 + CHUNK * 8000] * (HOURS * 3600 // CHUNK)
    head = bytearray(chunk[:44])
    head[4:8], head[40:44] = (36 + len(samples)).to_bytes(4, "little"), len(samples).to_bytes(4, "little")
    sound = bytes(head) + samples
    request = epd_load.Request(epd_load.wire.form("/v1/audio/transcriptions", [("response_format", "verbose_json")], sound))
    flags = ("--max-upload-size", "100MB", "--request-timeout", 1800)
    with serving.Server(options.transept, serving.SPEECH_MODEL, *flags) as one:
        wanted = epd_load.ask(one.port, request, 1800)
        positions = one.metric("encoder_tokens_total")
    with epd_fleet.Fleet(options.transept, serving.SPEECH_MODEL, "1E1D", *flags) as fleet:
        reply = epd_load.ask(fleet.port, request, 1800)
        by_encoder, by_decoder = (serving.metric_of(port, "encoder_tokens_total") for port in (fleet.port_of("e0"), fleet.port))
    if (wanted.what, reply.what) != (epd_load.OK, epd_load.OK):
        return f"one process: {wanted.what} {wanted.words}; fleet: {reply.what} {reply.words}"
    if (by_encoder, by_decoder) != (positions, 0):
        return f"{by_encoder} positions were encoded by the encode instance, {by_decoder} by the decode instance, {positions} by one process"
    if len(wanted.content["segments"]) < HOURS * 3600 // 30:
        return f"{len(wanted.content['segments'])} segments of {HOURS} hours"
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "long.wav").write_bytes(sound)
        written = transcribed(options.transept, serving.SPEECH_MODEL, scratch, ["--epd", "1E1D"])
        return difference(transcribed(options.transept, serving.SPEECH_MODEL, scratch, []), written) or (
            "" if wanted.content == reply.content else "the fleet's text is another one")


def served_case(options, model, source, shape, count=40):
    requests = [source.next() for _ in range(count)]
    with serving.Server(options.transept, model) as one:
        expected = epd_load.asked_one_process(one, requests)
    with epd_fleet.Fleet(options.transept, model, shape) as fleet, ThreadPoolExecutor(8) as clients:
        assert serving.wait_until(lambda: serving_status(fleet.port) == 200, 60, 0.05) is not None, "the fleet is not ready"
        replies = list(clients.map(lambda request: epd_load.ask(fleet.port, request), requests))
    wrong = [reply for reply, want in zip(replies, expected) if (reply.what, reply.content) != (epd_load.OK, want)]
    return f"{len(wrong)} of {count} differ, first: {wrong[0].what} {wrong[0].words} {str(wrong[0].content)[:300]}" if wrong else ""


if __name__ == "__main__":
    main()
