#!/usr/bin/env python3
"""./dev bench: micro benchmarks, workloads beside the peers and the machine's bounds, instruction counts, tables."""
import argparse
import subprocess
import sys
from pathlib import Path

from repo import ROOT, build

sys.path.insert(0, str(ROOT / "bench"))
import against  # noqa: E402
import compare  # noqa: E402
import instructions  # noqa: E402
import make_results  # noqa: E402

VENV = ROOT / ".venv"
MICRO = ROOT / "build" / "bench" / "micro"


def install_peers():
    """A virtual environment with the peers, made once."""
    python = VENV / "bin" / "python"
    steps = [] if python.exists() else [[sys.executable, "-m", "venv", str(VENV)]]
    steps.append([str(python), "-m", "pip", "install", "--quiet", "-r", "bench/requirements.txt"])
    for step in steps:
        print("+ " + " ".join(step), file=sys.stderr)
        subprocess.run(step, cwd=ROOT, check=True)


def can_make_checkpoints(python):
    try:
        return subprocess.run([str(python), "-c", "import numpy, safetensors"], capture_output=True).returncode == 0
    except OSError:
        return False


def run_micro(name_filter, quick):
    MICRO.mkdir(parents=True, exist_ok=True)
    benches = sorted((ROOT / "build" / "release").glob("**/*_bench"))
    for bench in benches:
        print(f"\n== {bench.stem}", flush=True)
        command = [str(bench), f"--benchmark_out={MICRO / (bench.stem + '.json')}", "--benchmark_out_format=json", *([f"--benchmark_filter={name_filter}"] if name_filter else []),
                   *(["--benchmark_min_time=0.05"] if quick else [])]
        subprocess.run(command, cwd=ROOT, check=True)


def choose_python(options):
    """Settles which Python makes the checkpoints."""
    pythons = [options.python] if options.python != sys.executable else [VENV / "bin" / "python", sys.executable]
    options.python = next((str(python) for python in pythons if can_make_checkpoints(python)), None)
    if not options.python:
        sys.exit("nothing here can make the checkpoints (numpy, safetensors): ./dev bench --peers")


def run_workloads(options):
    print("\n== workloads", flush=True)
    choose_python(options)
    compare.compare(options)
    make_results.write([options.json], ROOT / "build" / "bench")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench")
    parser.add_argument("--peers", action="store_true", help="install them first")
    parser.add_argument("--only", choices=["micro", "workloads"])
    parser.add_argument("--instructions", action="store_true", help="count the instructions of a step and an encode, and compare")
    parser.add_argument("--update", action="store_true", help="with --instructions: write bench/instructions.json anew")
    parser.add_argument("--results", nargs="+", metavar="FILE", help="make bench/RESULTS.md of these, and nothing else")
    parser.add_argument("micro", nargs="?", default="", help="micro benchmarks whose name contains it, and nothing else; vision: models that read pictures beside torch "
                        "(bench/vision.py); speculation, caches: beside our own without (bench/reuse.py); parallel: two ranks beside one process (bench/parallel.py); "
                        "quant: int4 beside int8 and float16, bfloat16 encodes beside float32's (bench/quantized.py); foreign: files of whisper.cpp and CTranslate2 "
                        "beside their engines (bench/foreign.py); live: live sessions (bench/live.py)")
    parser.add_argument("--against", type=Path, metavar="BINARY", help="the workloads through this transept binary too, in alternating rounds: "
                        "the ratio of each figure, and nothing else")
    parser.add_argument("--control", action="store_true", help="with --against: BINARY over itself too, which shows the machine's noise")
    parser.add_argument("--epd", nargs="*", metavar="PART", help="separated encoders beside one process (bench/epd.py), and nothing else")
    compare.add_options(parser)
    parser.add_argument("--options", action="help", help="this list")  # ./dev has --help
    options = parser.parse_args()
    if options.results:
        return make_results.write(options.results, ROOT / "bench")
    if options.instructions:
        build("release", "step_probe")
        sys.exit(instructions.check(options.update))
    if options.epd is not None:
        build("release", "transept")
        sys.exit(subprocess.run([sys.executable, "bench/epd.py", *options.epd, "--seconds", "2" if options.quick else "20"], cwd=ROOT).returncode)
    if options.micro == "vision":
        build("release", "transept", "image_probe")
        peers = ["--peers"] if options.peers else []
        sys.exit(subprocess.run([sys.executable, "bench/vision.py", *peers, "--rounds", "1" if options.quick else "3"], cwd=ROOT).returncode)
    if options.peers:
        install_peers()
    if options.micro == "live":
        build("release", "transept")
        sys.exit(subprocess.run([sys.executable, "bench/live.py", "--seconds", "15" if options.quick else "60"], cwd=ROOT).returncode)
    if options.micro in ("speculation", "caches", "parallel", "quant", "foreign"):
        build("release", "transept", "comm_bench")
        choose_python(options)
        scripts = {"parallel": ["bench/parallel.py"], "quant": ["bench/quantized.py"], "foreign": ["bench/foreign.py"]}
        script = scripts.get(options.micro, ["bench/reuse.py", options.micro])
        MICRO.mkdir(parents=True, exist_ok=True)
        kept = ["--json", str(MICRO / f"{options.micro}.json")] if options.micro == "parallel" else []
        sys.exit(subprocess.run([str(options.python), *script, "--rounds", "1" if options.quick else "5", *kept], cwd=ROOT).returncode)
    if options.against:
        build("release", "transept")
        choose_python(options)
        sys.exit(against.compare_binaries(options))
    asks_for_workloads = options.only == "workloads" or options.workloads or options.filter
    if not asks_for_workloads or options.micro:
        build("release")  # whichever have micro benchmarks
        run_micro(options.micro, options.quick)
    if not options.micro and options.only != "micro":
        build("release", "transept", "machine_bench")
        run_workloads(options)


if __name__ == "__main__":
    main()
