#!/usr/bin/env python3
"""bench/RESULTS.md -> docs/img/speed.svg (times faster than each peer) and the tables of measured figures in docs/sizes.md.
Every figure is one that RESULTS.md has; a test holds both files against it."""
import re
from dataclasses import dataclass
from html import escape

from repo import ROOT

RESULTS = ROOT / "bench" / "RESULTS.md"
PICTURE = ROOT / "docs" / "img" / "speed.svg"
SIZES = ROOT / "docs" / "sizes.md"
INT8, INT8_F16, FLOAT, BFLOAT = ("dtype auto, quantization int8, KV int8", "dtype auto, quantization int8, KV float16", "dtype auto", "bfloat16")


@dataclass
class Row:
    """One workload of one run."""
    setting: str
    name: str
    ours: dict  # {heading: cell} of transept
    peer: str   # its name with version
    theirs: dict
    times: dict  # {heading: ratio}
    memory: dict  # {heading: cell} of the table of memory


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def read_results(text):
    """The rows of all runs, in order."""
    rows, setting, heading, found = [], "", [], {}
    for line in text.splitlines():
        if line.startswith("## "):
            setting, found = line[3:].strip(), {}
        elif line.startswith("| workload"):
            heading = cells(line)
        elif line.startswith("| `") and "engine" in heading:
            row = cells(line)
            found[row[0]] = Row(setting, row[0].strip("`"), dict(zip(heading[2:], row[2:])), "", {}, {}, {})
            rows.append(found[row[0]])
        elif line.startswith("|  |") and rows:
            row = cells(line.replace("|  |", "| |", 1))
            values = dict(zip(heading[2:], row[2:]))
            if row[1] == "times better":
                rows[-1].times = {name: float(cell.strip("*x")) for name, cell in values.items() if re.fullmatch(r"\*\*[\d.]+x\*\*", cell)}
            elif row[1] not in ("bound", "share of the bound"):
                rows[-1].peer, rows[-1].theirs = row[1], values
        elif line.startswith("| `") and "peak RSS MiB" in heading:
            row = cells(line)
            found[row[0]].memory = dict(zip(heading[1:], row[1:]))
    return rows


def find(rows, setting, name, peer=""):
    """The one row of a workload in a setting, beside a peer whose name begins so."""
    found = [row for row in rows if (row.setting, row.name) == (setting, name) and row.peer.startswith(peer)]
    if len(found) != 1:
        raise ValueError(f"{RESULTS.name} has {len(found)} rows of {name} ({setting}) beside {peer or 'any peer'}, not one")
    return found[0]


# ---- The picture

# (heading, [(what is run, peer as it is printed, setting, workload, beginning of the peer's name, column)])
SPEECH = ("Speech, int8", [
    ("a talk of 2 minutes, whisper-tiny", "faster-whisper", INT8_F16, "whisper-tiny_tedlium120s_greedy", "faster-whisper", "times real time"),
    ("a talk of 2 minutes, whisper-tiny", "whisper.cpp", INT8, "whisper-tiny_tedlium120s_greedy", "whispercpp", "times real time"),
    ("a window of 30 s, whisper-small", "CTranslate2", INT8, "whisper-small_window_b1_greedy", "ctranslate2", "call ms")])
TEXT = ("Text, int8", [
    ("one line, opus-mt", "CTranslate2", INT8, "opus-mt_s32_t32_b1_greedy", "ctranslate2", "tokens/s"),
    ("32 lines at once, opus-mt", "CTranslate2", INT8, "opus-mt_s32_t32_b32_greedy", "ctranslate2", "tokens/s"),
    ("32 clients of a server, opus-mt", "CTranslate2", INT8, "opus-mt_s32_t8-96_clients32", "ctranslate2", "tokens/s"),
    ("1024 tokens, 4 beams, bart-large-cnn", "CTranslate2", INT8, "bart-large-cnn_s1024_t64_b1_beam4", "ctranslate2", "tokens/s"),
    ("8 texts of 512 tokens, t5-base", "CTranslate2", INT8, "t5-base_s512_t64_b8_greedy", "ctranslate2", "tokens/s")])
WIDE = ("Without int8", [
    ("32 lines at once, opus-mt, float32", "CTranslate2", FLOAT, "opus-mt_s32_t32_b32_greedy", "ctranslate2", "tokens/s"),
    ("one line, opus-mt, float32", "CTranslate2", FLOAT, "opus-mt_s32_t32_b1_greedy", "ctranslate2", "tokens/s"),
    ("a window of 30 s, whisper-tiny, bfloat16", "transformers", BFLOAT, "whisper-tiny_window_b1_greedy", "transformers", "call ms"),
    ("32 lines at once, opus-mt, bfloat16", "transformers", BFLOAT, "opus-mt_s32_t32_b32_greedy", "transformers", "tokens/s")])
GROUPS = [SPEECH, TEXT, WIDE]
WIDTH, LEFT, RIGHT, STEP, BAR = 860, 300, 190, 24, 15
STYLE = ("text{fill:#1f2328;font-family:sans-serif;font-size:13px}.head{font-weight:bold}.note{fill:#59636e;font-size:12px}"
         ".bar{fill:#1f7a8c}.one{stroke:#59636e;stroke-dasharray:4 3}"
         "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.note{fill:#9198a1}.bar{fill:#4fb3c6}.one{stroke:#9198a1}}")


def picture(rows):
    """The SVG: a bar for each ratio, a dashed line where the peer is. Colours follow the reader's scheme; there is no background."""
    ratios = [[find(rows, *where[:2], where[2]).times[where[3]] for _, _, *where in group] for _, group in GROUPS]
    top = max(map(max, ratios))
    x = lambda value: LEFT + value / top * (WIDTH - LEFT - RIGHT)
    parts, y = [], 52
    for (heading, group), values in zip(GROUPS, ratios):
        parts.append(f'<text class="head" x="10" y="{y}">{heading}</text>')
        y += 8
        for (what, peer, *_), value in zip(group, values):
            middle = y + BAR - 3
            parts += [f'<text x="{LEFT - 10}" y="{middle}" text-anchor="end">{escape(what)}</text>',
                      f'<rect class="bar" x="{LEFT}" y="{y}" width="{x(value) - LEFT:.1f}" height="{BAR}" rx="2"/>',
                      f'<text x="{x(value) + 8:.1f}" y="{middle}">{value:.1f} × {escape(peer)}</text>']
            y += STEP
        y += 22
    line = f'<line class="one" x1="{x(1):.1f}" x2="{x(1):.1f}" y1="38" y2="{y - 34}"/><text class="note" x="{x(1) - 4:.1f}" y="32">1 × the peer</text>'
    height = y + 2
    note = "Each peer at its best number of threads, same machine, same run; weights in as many bits."
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">',
                      "<title>Transept's speed as a multiple of each peer's, from bench/RESULTS.md</title>", f"<style>{STYLE}</style>",
                      f'<text class="head" x="{LEFT}" y="16">Speed as a multiple of each peer</text>', line, *parts,
                      f'<text class="note" x="10" y="{y - 8}">{note}</text>', "</svg>"]) + "\n"


# ---- The tables

# (model, what is run, setting, workload, column, its unit)
MEASURED = [("whisper-tiny", "a window of 30 s", INT8, "whisper-tiny_window_b1_greedy", "call ms", "ms"),
            ("whisper-base", "a window of 30 s", INT8, "whisper-base_window_b1_greedy", "call ms", "ms"),
            ("whisper-small", "a window of 30 s", INT8, "whisper-small_window_b1_greedy", "call ms", "ms"),
            ("opus-mt", "one line of 32 tokens", INT8, "opus-mt_s32_t32_b1_greedy", "tokens/s", "tokens/s"),
            ("opus-mt", "32 lines at once", INT8, "opus-mt_s32_t32_b32_greedy", "tokens/s", "tokens/s"),
            ("t5-base", "one text of 32 tokens", INT8, "t5-base_s32_t32_b1_greedy", "tokens/s", "tokens/s"),
            ("t5-base", "8 texts of 512 tokens", INT8, "t5-base_s512_t64_b8_greedy", "tokens/s", "tokens/s"),
            ("bart-large-cnn", "one text of 512 tokens", INT8, "bart-large-cnn_s512_t64_b1_greedy", "tokens/s", "tokens/s"),
            ("bart-large-cnn", "8 texts of 1024 tokens", INT8, "bart-large-cnn_s1024_t64_b8_greedy", "tokens/s", "tokens/s"),
            ("whisper-tiny, float32", "a window of 30 s", FLOAT, "whisper-tiny_window_b1_greedy", "call ms", "ms"),
            ("opus-mt, float32", "one line of 32 tokens", FLOAT, "opus-mt_s32_t32_b1_greedy", "tokens/s", "tokens/s"),
            ("t5-base, float32", "8 texts of 32 tokens", FLOAT, "t5-base_s32_t32_b8_greedy", "tokens/s", "tokens/s")]


def median(cell):
    return cell.partition(" (")[0]


def measured_table(rows):
    lines = ["| model | work | speed | peak memory, MiB | the peer's speed | its memory, MiB |", "|---|---|---|---|---|---|"]
    for model, work, setting, name, column, unit in MEASURED:
        row = find(rows, setting, name, "ctranslate2")
        memory, theirs = median(row.memory["peak RSS MiB"]), median(row.memory["best peer: RSS MiB / load s"].partition(" / ")[0])
        lines.append(f"| {model} | {work} | {median(row.ours[column])} {unit} | {memory} | {median(row.theirs[column])} {unit} | {theirs} |")
    return "\n".join(lines) + "\n"


def with_table(page, name, table):
    """A page with the table between its two comments replaced."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    head, _, rest = page.partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise ValueError(f"no comments {name} in the page")
    return head + begin + "\n" + table + "\n" + end + tail


def main():
    rows = read_results(RESULTS.read_text(encoding="utf-8"))
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(rows), encoding="utf-8")
    SIZES.write_text(with_table(SIZES.read_text(encoding="utf-8"), "measured", measured_table(rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
