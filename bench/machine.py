"""What this machine offers, measured by machine_bench in the run that compares with it."""
import json
import os
import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"


def num_processors():
    return len(os.sched_getaffinity(0))


def cpu_model():
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def read_report(report):
    """{"read": {MiB: bytes/s}, "operations": {type: operations/s}} of machine_bench's JSON."""
    found = {"read": {}, "operations": {}}
    for case in report["benchmarks"]:
        name = case["name"].split("/")
        if name[0] == "BM_Read" and "GB/s" in case:
            found["read"][int(name[1].removeprefix("MiB:"))] = case["GB/s"] * 1e9
        if name[0] == "BM_Multiply" and "GOP/s" in case:
            found["operations"][name[1]] = case["GOP/s"] * 1e9
    return found


def measure(threads):
    """The peaks of so many threads; takes some seconds."""
    some = sorted(os.sched_getaffinity(0))[:threads]  # it uses all processors that it may run on
    command = [str(BUILD / "bench" / "machine_bench"), "--benchmark_format=json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, some))
    return {"threads": len(some), "cpu": cpu_model(), **read_report(json.loads(done.stdout))}
