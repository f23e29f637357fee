#!/usr/bin/env python3
"""What live sessions tell of recordings while they are spoken, and how late: a row for each delay.

    tools/measure_live.py MODEL [--audio FILE...] [--delay low,medium] [--sessions 4] [--speed 1] [--language en] [--quantization int8]
                          [--word-times MODEL] [--probe build/release/src/speech/live_probe] [--transept build/release/transept] [--json FILE]

Recordings (default: ../shared/audio/spoken/en*.flac and jfk.flac) are played in real time, so many sessions at once, by live_probe: one item each,
committed at its end. --speed 0 plays them as if computing took no time: then the table does not depend on the machine. Early: words that were told before the end, of those of the transcript. Revised: told words that the transcript has otherwise,
of those that were told. First: seconds of audio at the first word. Lag: from a word's end, by the word times of `transept transcribe`, to the moment
at which it was told; of told words that the transcript has, so without those that were revised. Late: from the commit to the transcript. Equal:
transcripts that are the file's. A model without word times needs another one's: --word-times.
"""
import argparse
import json
import re
import statistics
import subprocess
import sys
import unicodedata
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "audio"
DELAYS = ("minimal", "low", "medium", "high")
LINE = re.compile(r"(?P<file>.+) seconds=(?P<seconds>\S+) first=(?P<first>\S+) told=(?P<told>\d+) revised=(?P<revised>\d+) late=(?P<late>\S+) same=(?P<same>[01])$")
DELTA = re.compile(r"  at=(\d+\.\d+) (.*)$")


@dataclass
class Heard:
    """What live_probe says of a file."""
    file: str
    first: float
    told: int
    revised: int
    late: float
    same: bool
    deltas: list = field(default_factory=list)  # (seconds, words)


@dataclass
class Row:
    delay: str
    files: int
    words: int
    told: int
    revised: int
    first: list
    lags: list
    late: list
    same: int


def heard_of(lines):
    """Of the lines of live_probe, without the last one."""
    heard = []
    for line in lines:
        if found := LINE.match(line):
            heard.append(Heard(found["file"], float(found["first"]), int(found["told"]), int(found["revised"]), float(found["late"]), found["same"] == "1"))
        elif heard and (found := DELTA.match(line)):
            heard[-1].deltas.append((float(found[1]), found[2]))
    return heard


def plain(word):
    """A word for comparison: without case, marks and punctuation."""
    return "".join(c for c in unicodedata.normalize("NFKD", word.lower()) if c.isalnum())


def told_words(deltas):
    """(plain word, seconds) of all that was told. A word that came in two pieces counts when it was whole."""
    words, glued = [], False
    for at, text in deltas:
        for i, word in enumerate(text.split()):
            if i == 0 and glued and words and not text[0].isspace():
                words[-1] = (words[-1][0] + plain(word), at)
            else:
                words.append((plain(word), at))
        glued = not text[-1:].isspace()
    return [(word, at) for word, at in words if word]


def lags_of(deltas, timed):
    """Seconds from the end of each told word, as timed has it ([word, end]), to its telling. Words that differ have none."""
    told, ends = told_words(deltas), [(plain(word), end) for word, end in timed if plain(word)]
    blocks = SequenceMatcher(None, [word for word, _ in told], [word for word, _ in ends], autojunk=False).get_matching_blocks()
    return [told[block.a + i][1] - ends[block.b + i][1] for block in blocks for i in range(block.size)]


def word_times(transept, model, files, language):
    """{file: [(word, end)]} of whole files."""
    flags = ["--quantization", "int8", "--beam-size", "1", "--word-timestamps", "True", "-f", "json", "-o", "-", "--language", language]
    times = {}
    for file in files:
        done = subprocess.run([str(transept), "transcribe", str(model), file, *flags], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"transept transcribe {file}: {done.stderr}")
        times[file] = [(word["word"], word["end"]) for segment in json.loads(done.stdout)["segments"] for word in segment.get("words", [])]
    return times


def replay(options, delay):
    """Of all files, options.sessions at once."""
    heard = []
    for begin in range(0, len(options.audio), options.sessions):
        files = options.audio[begin:begin + options.sessions]
        done = subprocess.run([str(options.probe), str(options.model), f"delay={delay}", f"speed={options.speed}", f"quantization={options.quantization}", *files], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"live_probe: {done.stderr}")
        heard += heard_of(done.stdout.splitlines())
    return heard


def row_of(delay, heard, times):
    lags = [lag for one in heard for lag in lags_of(one.deltas, times[one.file])]
    return Row(delay, len(heard), sum(len(times[one.file]) for one in heard), sum(one.told for one in heard), sum(one.revised for one in heard),
               [one.first for one in heard if one.first >= 0], lags, [one.late for one in heard], sum(one.same for one in heard))


def share(values, percent):
    """The value that so many percent are not above; nan of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else float("nan")


def line_of(row):
    return (f"| {row.delay} | {100 * row.told / max(row.words, 1):.0f} % | {100 * row.revised / max(row.told, 1):.1f} % ({row.revised} of {row.told}) | {statistics.median(row.first or [float('nan')]):.2f} | "
            f"{share(row.lags, 50):.2f} / {share(row.lags, 90):.2f} | {share(row.late, 50):.2f} / {share(row.late, 95):.2f} | {row.same} of {row.files} |")


def main():
    parser = argparse.ArgumentParser(prog="tools/measure_live.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--audio", nargs="+", help="recordings of speech")
    parser.add_argument("--delay", default="minimal,low,medium,high", help="which of %s" % ", ".join(DELAYS))
    parser.add_argument("--sessions", type=int, default=4, help="at once")
    parser.add_argument("--speed", type=float, default=1, help="times real time; above 1, lags are the machine's rather than the rule's; 0: as if computing took no time")
    parser.add_argument("--quantization", default="int8", help="of live_probe's weights")
    parser.add_argument("--language", default="en", help="for the word times")
    parser.add_argument("--word-times", type=Path, metavar="MODEL", help="whose words have times (default: the model)")
    parser.add_argument("--probe", type=Path, default=ROOT / "build" / "release" / "src" / "speech" / "live_probe")
    parser.add_argument("--transept", type=Path, default=ROOT / "build" / "release" / "transept")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.audio = options.audio or [str(path) for path in [*sorted((SHARED / "spoken").glob("en*.flac")), SHARED / "jfk.flac"] if path.exists()]
    delays = options.delay.split(",")
    unknown = [delay for delay in delays if delay not in DELAYS]
    if unknown or not options.audio or options.sessions < 1:
        parser.error(f"--delay: {unknown[0]} is none of {', '.join(DELAYS)}" if unknown else "--audio: no recordings" if not options.audio else "--sessions: at least 1")
    times = word_times(options.transept, options.word_times or options.model, options.audio, options.language)
    print(f"{options.model.name}, {len(options.audio)} recordings, {options.sessions} at once\n")
    print("| delay | early | revised | first text, s | lag of a word p50 / p90, s | late p50 / p95, s | equal |\n|---|---|---|---|---|---|---|")
    rows = []
    for delay in delays:
        rows.append(row_of(delay, replay(options, delay), times))
        print(line_of(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps([vars(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
