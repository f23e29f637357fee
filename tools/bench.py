#!/usr/bin/env python3
"""./dev bench: the micro benchmarks, then published shapes beside CTranslate2 where that is installed."""
import argparse
import subprocess
import sys

from repo import ROOT, build

VENV = ROOT / ".venv"


def install_peers():
    """A virtual environment with the peers, made once."""
    python = VENV / "bin" / "python"
    steps = [] if python.exists() else [[sys.executable, "-m", "venv", str(VENV)]]
    steps.append([str(python), "-m", "pip", "install", "--quiet", "-r", "bench/requirements.txt"])
    for step in steps:
        print("+ " + " ".join(step), file=sys.stderr)
        subprocess.run(step, cwd=ROOT, check=True)


def peer_python():
    """A Python that can import ctranslate2, or None."""
    for python in (VENV / "bin" / "python", sys.executable):
        imports = [str(python), "-c", "import ctranslate2, numpy, safetensors"]
        if (python == sys.executable or python.exists()) and subprocess.run(imports, capture_output=True).returncode == 0:
            return str(python)
    return None


def run_micro(name_filter, quick):
    benches = sorted((ROOT / "build" / "release").glob("**/*_bench"))
    for bench in benches:
        print(f"\n== {bench.stem}", flush=True)
        command = [str(bench), *([f"--benchmark_filter={name_filter}"] if name_filter else []),
                   *(["--benchmark_min_time=0.05"] if quick else [])]
        subprocess.run(command, cwd=ROOT, check=True)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("filter", nargs="?", default="")
    options = parser.parse_args()
    build("release")
    if options.peers:
        install_peers()
    run_micro(options.filter, options.quick)
    if options.filter:
        return
    print("\n== beside CTranslate2", flush=True)
    python = peer_python()
    if not python:
        print("CTranslate2 is not installed: ./dev bench --peers")
        return
    sys.exit(subprocess.run([python, "bench/compare_ctranslate2.py", *(["--quick"] if options.quick else [])], cwd=ROOT).returncode)


if __name__ == "__main__":
    main()
