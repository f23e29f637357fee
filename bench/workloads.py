"""Workload files: one JSON object, or a list of them. Standard library only.

Of every task: task, shape (of shapes.py), beam, seed; name (made of the rest where there is none).
  generate        batch requests of source_tokens at once, each forced to target_tokens
  whisper-window  batch windows of 30 s at once: the encode without the mel spectrogram, then target_tokens each
  clients         requests in all, from a closed loop of clients; lengths drawn from target_tokens_range
  transcribe      a clip from file to text; batch > 1: cut at pauses, so many windows at a time; needs a real model
"""
import json
from pathlib import Path

from shapes import SHAPES

TASKS = {
    "generate": {"source_tokens", "target_tokens", "batch"},
    "whisper-window": {"target_tokens", "batch"},
    "clients": {"source_tokens", "target_tokens_range", "clients", "requests"},
    "transcribe": {"audio", "batch"},
}
COMMON = {"task", "shape", "beam", "seed"}
OPTIONAL = {"name", "dtype", "max_batch"}  # dtype: of the peer, unless the command says otherwise
DEFAULT_FOLDER = Path(__file__).resolve().parent / "workloads"


def name_of(work):
    beam = "greedy" if work["beam"] == 1 else f"beam{work['beam']}"
    if work["task"] == "transcribe":
        return f"{work['shape']}_{Path(work['audio']).stem}_b{work['batch']}_{beam}"
    if work["task"] == "whisper-window":
        return f"{work['shape']}_window_b{work['batch']}_{beam}"
    if work["task"] == "generate":
        return f"{work['shape']}_s{work['source_tokens']}_t{work['target_tokens']}_b{work['batch']}_{beam}"
    low, high = work["target_tokens_range"]
    return f"{work['shape']}_s{work['source_tokens']}_t{low if low == high else f'{low}-{high}'}_clients{work['clients']}"


def check(work, place):
    """The workload with its name; ValueError names the file and what is wrong."""
    task = work.get("task")
    if task not in TASKS:
        raise ValueError(f"{place}: task {task!r}: one of {', '.join(TASKS)}")
    wanted = COMMON | TASKS[task]
    missing, unknown = wanted - work.keys(), work.keys() - wanted - OPTIONAL
    if missing or unknown:
        raise ValueError(f"{place}: a workload of task {task} has {', '.join(sorted(wanted))}"
                         + (f"; missing: {', '.join(sorted(missing))}" if missing else "")
                         + (f"; unknown: {', '.join(sorted(unknown))}" if unknown else ""))
    if work["shape"] not in SHAPES:
        raise ValueError(f"{place}: shape {work['shape']!r}: one of {', '.join(SHAPES)}")
    return {"name": name_of(work), "max_batch": 32, **work}


def load(paths=None):
    """All workloads of the files given, in order; without any those of bench/workloads."""
    works = []
    for path in paths or sorted(DEFAULT_FOLDER.glob("*.json")):
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        for i, work in enumerate(content if isinstance(content, list) else [content]):
            works.append({**check(work, f"{Path(path).name}[{i}]"), "folder": Path(path).resolve().parent})
    names = [work["name"] for work in works]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"more than one workload is called {', '.join(twice)}")
    return works


def mean_target_tokens(work):
    low, high = work.get("target_tokens_range") or (work["target_tokens"], work["target_tokens"])
    return (low + high) / 2


def groups(work):
    """Requests that run at once."""
    return work.get("batch") or work["clients"]
