#!/usr/bin/env python3
"""Result files of bench/compare.py and of micro benchmarks -> a page of tables with plots. Standard library only.

    bench/make_results.py FILE.json... [--folder bench]

Writes RESULTS.md and plots/*.svg in the folder.
"""
import argparse
import json
from html import escape
from pathlib import Path

TITLES = {"generate": "Text, whole calls", "clients": "Clients in a closed loop", "whisper-window": "Windows of 30 s", "transcribe": "Clips, from file to text"}
# Columns after the workload: (heading, figure, digits)
COLUMNS = {
    "generate": [("tokens/s", "tokens_per_s"), ("step ms", "step_ms"), ("encode ms", "encode_ms")],
    "clients": [("tokens/s", "tokens_per_s"), ("latency p50 ms", "latency_ms_p50"), ("p99 ms", "latency_ms_p99"), ("first token p99 ms", "ttft_ms_p99")],
    "whisper-window": [("encode ms", "encode_ms"), ("step ms", "step_ms"), ("call ms", "call_ms")],
    "transcribe": [("times real time", "x_real_time"), ("seconds", "seconds")],
}
LOAD = [("peak RSS MiB", "peak_rss_mib"), ("load s", "load_s"), ("start to first token s", "start_to_first_token_s")]


def number(value):
    """Three digits that mean something, without exponents."""
    if value is None:
        return "-"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def with_range(figure):
    if figure is None:
        return "-"
    low, high = number(figure["min"]), number(figure["max"])
    return number(figure["median"]) if low == high else f"{number(figure['median'])} ({low} to {high})"


def share(value):
    return "-" if value is None else f"{100 * value:.0f} %"


def times(row, name):
    found = row.get("ratios", {}).get(name)
    if not found or found["median"] is None:
        return "-"
    return f"**{found['median']:.2f}x**"


def table(heading, rows):
    lines = ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def speed_table(task, rows):
    """Each workload: ours, the best peer, how many times better, the share of the bound."""
    heading = ["workload", "engine"] + [title for title, _ in COLUMNS[task]] + ["cache hits"]
    lines = []
    for row in rows:
        engines = row["engines"]
        shown = [("transept", "transept")] + ([(row["best_peer"], f"{row['best_peer']} ({engines[row['best_peer']]['version']})")] if row["best_peer"] else [])
        for i, (label, title) in enumerate(shown):
            hits = str(row["facts"]["encoder_cache_hits"]) if i == 0 else ""
            lines.append([f"`{row['workload']['name']}`" if i == 0 else "", title, *(with_range(engines[label]["figures"].get(name)) for _, name in COLUMNS[task]), hits])
        if row["best_peer"]:
            lines.append(["", "times better", *(times(row, name) for _, name in COLUMNS[task]), ""])
        bound = row["bound"]
        lines.append(["", "bound", *(number(bound.get(name)) for _, name in COLUMNS[task]), ""])
        lines.append(["", "share of the bound", *(share(bound_share(row, name)) for _, name in COLUMNS[task]), ""])
    return table(heading, lines)


def bound_share(row, name):
    figure, limit = row["engines"]["transept"]["figures"].get(name), row["bound"].get(name)
    if figure is None or not limit or not figure["median"]:
        return None
    return figure["median"] / limit if name in ("tokens_per_s", "x_real_time") else limit / figure["median"]


def memory_table(rows):
    lines = []
    for row in rows:
        figures = row["engines"]["transept"]["figures"]
        other = row["engines"][row["best_peer"]]["figures"] if row["best_peer"] else {}
        peer = " / ".join(with_range(other.get(name)) for _, name in LOAD[:2]) if other else "-"
        lines.append([f"`{row['workload']['name']}`", *(with_range(figures.get(name)) for _, name in LOAD), peer, times(row, "peak_rss_mib")])
    return table(["workload", *(title for title, _ in LOAD), "best peer: RSS MiB / load s", "times less memory"], lines)


def weights_of(rows):
    """Which types the matrices of each shape are kept in."""
    shapes = {row["workload"]["shape"]: row["facts"].get("weight_bytes") for row in rows}
    parts = [f"{shape} " + ", ".join(f"{kind} {count / 2**20:.1f}" for kind, count in sorted(found.items(), key=lambda kv: -kv[1]))
             for shape, found in shapes.items() if found]
    return [f"Matrices as they are kept, MiB: {'; '.join(parts)}.", ""] if parts else []


# ---- plots

WIDTH, BAR, GAP, LEFT = 860, 16, 8, 300


def bars(title, rows):
    """A plot of how many times faster than the best peer each workload is: [(name, value, low, high)]."""
    height = 60 + len(rows) * (BAR + GAP)
    top = max([1.0, *(high or value for _, value, _, high in rows)])
    x = lambda value: LEFT + value / top * (WIDTH - LEFT - 90)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
             'font-family="sans-serif" font-size="12" role="img">',
             f"<title>{escape(title)}</title>", f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
             f'<text x="10" y="24" font-size="15" fill="#1b1f24">{escape(title)}</text>']
    for i, (name, value, low, high) in enumerate(rows):
        y = 44 + i * (BAR + GAP)
        colour = "#1f6f8b" if value >= 1 else "#b5532a"
        parts.append(f'<text x="{LEFT - 8}" y="{y + BAR - 4}" text-anchor="end" fill="#1b1f24">{escape(name)}</text>')
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{max(1, x(value) - LEFT):.1f}" height="{BAR}" fill="{colour}"/>')
        if low is not None and high is not None:
            parts.append(f'<line x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{y + BAR / 2}" y2="{y + BAR / 2}" stroke="#1b1f24"/>')
        parts.append(f'<text x="{max(x(value), x(high or value)) + 6:.1f}" y="{y + BAR - 4}" fill="#1b1f24">{value:.2f}x</text>')
    parts.append(f'<line x1="{x(1):.1f}" x2="{x(1):.1f}" y1="36" y2="{height - 10}" stroke="#57606a" stroke-dasharray="4 3"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


HEADLINE = {"generate": "tokens_per_s", "clients": "tokens_per_s", "whisper-window": "call_ms", "transcribe": "x_real_time"}


def plot_of(task, rows, setting):
    points = []
    for row in rows:
        found = row.get("ratios", {}).get(HEADLINE[task])
        if found and found["median"]:
            points.append((row["workload"]["name"], found["median"], found["least"], found["most"]))
    return bars(f"{TITLES[task]}: times faster than the best peer ({setting})", points) if points else None


# ---- micro benchmarks (google-benchmark's own JSON)

OWN_KEYS = {"name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions", "repetition_index", "threads",
            "iterations", "real_time", "cpu_time", "time_unit", "error_occurred", "error_message", "label"}


def micro_tables(reports):
    """A table for each report: every case with its time and counters."""
    lines = ["## Micro benchmarks", ""]
    for report in reports:
        cases = [case for case in report["benchmarks"] if not case.get("error_occurred")]
        counters = list(dict.fromkeys(key for case in cases for key in case if key not in OWN_KEYS))
        lines += [f"### {Path(report['context']['executable']).name}", ""]
        lines += table(["case", "time", *counters],
                       [[f"`{case['name'].removesuffix('/manual_time')}`", f"{number(case['real_time'])} {case['time_unit']}",
                         *(number(case.get(key)) for key in counters)] for case in cases])
        lines += [""]
    return lines


# ---- the page

def setting_of(result):
    parts = [result["dtype"] if result["dtype"] != "auto" else "dtype auto"]
    if result["quantization"] != "none":
        parts.append(f"quantization {result['quantization']}")
    if result["kv_cache_dtype"] != "auto":
        parts.append(f"KV {result['kv_cache_dtype']}")
    return ", ".join(parts)


def head(result):
    facts, machine = result["rows"][0]["facts"], result["machine"]
    operations = ", ".join(f"{name} {value / 1e9:.0f}" for name, value in machine["operations"].items())
    reads = ", ".join(f"{size} MiB {value / 1e9:.0f}" for size, value in machine["read"].items())
    lines = [f"## {setting_of(result)}", "",
             f"{result['started']}; transept {facts.get('version', '')} commit `{result['commit']}`, {facts['isa']} kernels, "
             f"{facts['threads']} threads, dtype {facts.get('dtype', result['dtype'])}; {result['rounds']} alternating rounds, each the median of "
             f"{result['repeats']} calls after one that warms up; medians, and the range of the rounds. Peers in {result['peer_dtype']}, with one thread "
             f"and with all, the better one shown. Seeds: the workload's times 1000, and one more each round.", "",
             f"{machine['cpu']}, {machine['threads']} threads. Peaks measured in this run, GOP/s: {operations}. Reads of so much at a time, GB/s: {reads}."]
    if result["tiny"]:
        lines += ["", "**Tiny shapes: this tries the scripts out, and measures nothing.**"]
    known = {name: value for name, value in result["same_model_within"].items() if value is not None}
    if known:
        lines += ["", "The engines run the same models: log-probabilities of a common target are apart by at most "
                  + ", ".join(f"{value:.1e} ({name})" for name, value in known.items()) + "."]
    return lines


def page(results, micro=()):
    """(text of RESULTS.md, {file name: plot})"""
    lines = ["# Results", "", "Made by `./dev bench --results FILE...`; how it was measured: [README.md](README.md). A figure counts as a ratio to the peer in",
             "the same run and as a share of the machine's bound, never by itself.", ""]
    plots = {}
    for number_, result in enumerate(results):
        lines += [*head(result), ""]
        for task, title in TITLES.items():
            rows = [row for row in result["rows"] if row["workload"]["task"] == task]
            if not rows:
                continue
            lines += [f"### {title}", "", *speed_table(task, rows), ""]
            plot = plot_of(task, rows, setting_of(result))
            if plot:
                name = f"{number_ + 1}-{task}.svg"
                plots[name] = plot
                lines += [f"![{title}](plots/{name})", ""]
        lines += ["### Memory and loading", "", *memory_table(result["rows"]), "", *weights_of(result["rows"])]
        notes = [f"{row['workload']['name']}: {note}" for row in result["rows"] for note in dict.fromkeys(row["notes"])]
        lines += [f"* {note}" for note in [*notes, *(f"skipped: {line}" for line in result["skipped"])]]
    if micro:
        lines += ["", *micro_tables(micro)]
    return "\n".join(lines).rstrip("\n") + "\n", plots


RANKS = "## Ranks and stages"  # the last section of the page, made of another file, at another time


def ranks_section(report):
    """Of what bench/parallel.py --json wrote."""
    compared = [row for row in report["rows"] if "ratio" in row]
    exchanges = [row for row in report["rows"] if "p99_us" in row]
    shares = [row for row in report["rows"] if "share" in row]
    lines = [RANKS, "", f"{report['started']}; commit `{report['commit']}`, {report['cpu']}, {report['threads']} threads; int8; medians of {report['rounds']} alternating rounds, "
             "and their range. Two ranks or stages of one thread beside one process of two threads: rates over those of one process; at least: the aim.", ""]
    lines += table(["rates", "ratio", "at least", "predicted", "ranks", "one process"],
                   [[row["name"] if row["part"] == "ranks" else f"stages: {row['name']}", f"{row['ratio']:.2f} ({min(row['ratios']):.2f} to {max(row['ratios']):.2f})",
                     str(row["least"]), f"{row['predicted']:.2f}" if "predicted" in row else "-", row["note"] or "-", row["without"] or "-"] for row in compared])
    if exchanges:
        lines += ["", *table(["times of a layer", "us", "p99 us", "at most us"], [[row["name"], number(row["us"]), number(row["p99_us"]), str(row["most"])] for row in exchanges])]
    if shares:
        lines += ["", *table(["shares", "share", "at most", "share of all"],
                             [[row["name"], f"{row['share']:.3f}", f"{row['most']:.2f}", f"{row['share_of_all']:.2f}" if "share_of_all" in row else "-"] for row in shares])]
    return "\n".join(lines) + "\n"


def with_ranks(text, section):
    """A page whose last section of ranks is `section`; as it was without one."""
    return text.partition(RANKS)[0].rstrip("\n") + "\n" + (f"\n{section}" if section else "")


def write(files, folder):
    results = [json.loads(Path(file).read_text(encoding="utf-8")) for file in files]
    existing = (folder / "RESULTS.md").read_text(encoding="utf-8") if (folder / "RESULTS.md").exists() else ""
    reports = [result for result in results if result.get("part") == "parallel"]
    section = ranks_section(reports[-1]) if reports else "".join(existing.partition(RANKS)[1:])
    if reports and len(reports) == len(results):
        (folder / "RESULTS.md").write_text(with_ranks(existing, section), encoding="utf-8")
        print(f"wrote the last section of {folder.parent.name}/{folder.name}/RESULTS.md")
        return
    text, plots = page([result for result in results if result.get("rows") and result not in reports], [result for result in results if "benchmarks" in result])
    text = with_ranks(text, section)
    (folder / "plots").mkdir(parents=True, exist_ok=True)
    for name, plot in plots.items():
        (folder / "plots" / name).write_text(plot, encoding="utf-8")
    (folder / "RESULTS.md").write_text(text, encoding="utf-8")
    print(f"wrote {folder.parent.name}/{folder.name}/RESULTS.md and {len(plots)} plots")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--folder", type=Path, default=Path(__file__).resolve().parent)
    options = parser.parse_args()
    write(options.files, options.folder)


if __name__ == "__main__":
    main()
