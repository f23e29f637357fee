#!/usr/bin/env python3
"""Live sessions in real time, beside faster-whisper under whisper_streaming's policy where that is installed. `./dev bench live` runs all of it.

    bench/live.py [streams] [silence] [--model FOLDER] [--sessions 1,4,12] [--seconds 60] [--threads N] [--delay low] [--no-peer] [--json FILE]

streams: `transept bench live` against a server of int8 weights, a row for each number of sessions, then the peer (peers/live_peer.py) with the same
weights, threads and recordings; of Moonshine without it. silence: processor time of a server with 64 sessions in which nobody speaks, of zeros and of the
noise of a quiet room, as binary messages and as OpenAI's clients send audio. Recordings and models come from ../shared. Alone on the machine, please.
"""
import argparse
import array
import contextlib
import json
import random
import subprocess
import sys
import tempfile
import time
import wave
from pathlib import Path

from machine import ROOT, num_processors
from transept_side import BINARY, run

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "server")]
import serving  # noqa: E402

SHARED = ROOT.parent / "shared"
PEER = ROOT / "bench" / "peers" / "live_peer.py"
VENV_PYTHON = ROOT / ".venv" / "bin" / "python"
RATE = 16000
SILENCES = (("zeros", 0, "binary"), ("a quiet room", 8, "binary"), ("a quiet room", 8, "base64"))  # the loudest sample, of 16 bits
SILENT_SHARE = 0.02  # of one processor: the aim, of 64 sessions
HEAD = ("| | kept up | first text p50 / p95, s | hypotheses p50 / p95, s | transcript p50 / p95, s | words taken back |\n|---|---|---|---|---|---|")


def recordings():
    return [str(path) for path in [*sorted((SHARED / "audio" / "spoken").glob("en*.flac")), SHARED / "audio" / "jfk.flac"] if path.exists()]


def has_peer(python):
    return python.exists() and subprocess.run([str(python), "-c", "import faster_whisper, safetensors"], capture_output=True).returncode == 0


def pair(figures):
    return f"{figures['p50']:.2f} / {figures['p95']:.2f}" if figures else "none"


def taken_back(report):
    if "words_unlike_the_files" in report:  # the peer's transcript is what it told
        return f"none; {100 * report['words_unlike_the_files']:.1f} % unlike the file's"
    return f"{100 * report['revised_words'] / report['told_words']:.1f} %" if report["told_words"] else "none"


def line_of(name, report):
    return (f"| {name} | {report['sessions_that_kept_up']} of {report['sessions']} | {pair(report['first_text_s'])} | {pair(report['hypothesis_interval_s'])} | "
            f"{pair(report['completed_s'])} | {taken_back(report)} |")


@contextlib.contextmanager
def serving_live(options):
    with serving.Server(options.transept, options.model, "--quantization", "int8", "--threads", options.threads, "--max-live-sessions", 512) as server:
        yield server


def ours(options, server, sessions):
    flags = ["--sessions", sessions, "--seconds", options.seconds, "--delay", options.delay, "--language", "en", "--json"]
    return json.loads(run([options.transept, "bench", "live", f"http://127.0.0.1:{server.port}", *flags, "--audio", options.audio[0], *options.audio[1:]]))


def peers(options, sessions):
    flags = ["--sessions", sessions, "--seconds", options.seconds, "--threads", options.threads, "--audio", *options.audio]
    return json.loads(run([options.python, PEER, options.model, *flags]).splitlines()[-1])


def streams(options):
    """[(name, report)]"""
    print(f"{options.model.name}, delay {options.delay}, {options.threads} threads, {options.seconds} s\n\n{HEAD}", flush=True)
    rows = []
    with serving_live(options) as server:
        for sessions in options.sessions:
            rows.append((f"{sessions} sessions", ours(options, server, sessions)))
            print(line_of(*rows[-1]), flush=True)
    if options.no_peer:
        return rows
    if not has_peer(options.python) or not (options.model / "generation_config.json").exists() or "whisper" not in options.model.name:
        print("\nwithout the peer (./dev bench --peers installs it; of Whisper alone)", flush=True)
        return rows
    for sessions in options.sessions:
        report = peers(options, sessions)
        rows.append((f"{report['version']}, {sessions}", report))
        print(line_of(*rows[-1]), flush=True)
    return rows


def write_silence(path, loudest, seconds=10):
    rng = random.Random(1)
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(array.array("h", (rng.randint(-loudest, loudest) for _ in range(seconds * RATE))).tobytes())


def silence(options):
    """{kind: share of one processor}"""
    shares = {}
    with tempfile.TemporaryDirectory() as folder, serving_live(options) as server:
        for name, loudest, wire in SILENCES:
            clip = Path(folder) / "silence.wav"
            write_silence(clip, loudest)
            # Of a process that lasts a little longer than it is looked at.
            flags = ["--sessions", str(options.silent_sessions), "--seconds", str(options.warm_up + options.seconds + 1), "--pause", "0", "--wire", wire]
            client = subprocess.Popen([str(options.transept), "bench", "live", f"http://127.0.0.1:{server.port}", *flags, "--audio", str(clip), "--json"],
                                      stdout=subprocess.DEVNULL)
            time.sleep(options.warm_up)  # behind what a detector makes of a beginning
            begin, before = time.monotonic(), server.cpu_seconds()
            time.sleep(options.seconds)
            share = shares[f"{name}, {wire}"] = (server.cpu_seconds() - before) / (time.monotonic() - begin)
            assert client.wait() == 0, "bench live failed"
            print(f"{options.silent_sessions} sessions of {name}, {wire}: {100 * share:.1f} % of one processor (aim {100 * SILENT_SHARE:.0f} %)", flush=True)
    return shares


PARTS = {"streams": streams, "silence": silence}


def main():
    parser = argparse.ArgumentParser(prog="bench/live.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="one of " + ", ".join(PARTS))
    parser.add_argument("--model", type=Path, default=SHARED / "models" / "whisper-tiny")
    parser.add_argument("--audio", nargs="+", default=recordings())
    parser.add_argument("--sessions", type=lambda text: [int(count) for count in text.split(",")], default=[1, 4, 12])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--threads", type=int, default=num_processors())
    parser.add_argument("--delay", default="low")
    parser.add_argument("--silent-sessions", type=int, default=64)
    parser.add_argument("--warm-up", type=float, default=6, help="of silence, seconds")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--transept", type=Path, default=BINARY)
    parser.add_argument("--python", type=Path, default=VENV_PYTHON, help="that has the peer")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown or not options.audio:
        parser.error(f"no part is called {unknown[0]}" if unknown else "no recordings")
    found = {part: PARTS[part](options) for part in options.parts or PARTS}
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
