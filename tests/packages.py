"""What slow suites install from PyPI and npm: virtual environments and folders below build, made once. What cannot be installed
is told and skipped. Standard library only."""
import argparse
import filecmp
import shutil
import subprocess
import sys
from pathlib import Path

MINUTES = 10  # for one installation


def prepare_venv(wanted, venv, skips):
    """The interpreter of a virtual environment with the packages of the file `wanted`; None if they cannot be installed."""
    python, installed = venv / "bin" / "python", venv / wanted.name
    if is_copy(wanted, installed) and python.exists():
        return python
    steps = ([sys.executable, "-m", "venv", "--clear", str(venv)], [str(python), "-m", "pip", "install", "--quiet", "--requirement", str(wanted)])
    return python if install("pip", steps, wanted, installed, skips) else None


def run_in_venv(description, folder, venv):
    """The command line of a suite: FOLDER/drive.py in a virtual environment with the packages of FOLDER/requirements.txt, or that it is skipped and why."""
    root = folder.parent.parent
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transept", type=Path, default=root / "build" / "release" / "transept")
    parser.add_argument("--filter", default="", help="only cases whose name contains this")
    options = parser.parse_args()
    if not options.transept.exists():
        sys.exit(f"{options.transept}: no such binary")
    skips = []
    python = prepare_venv(folder / "requirements.txt", venv, skips)
    if python is None:
        print(f"skipped: {skips[0]}")
        print("0 passed, 0 failed, 1 skipped")
        return
    command = [str(python), str(folder / "drive.py"), "--transept", str(options.transept.resolve()), "--filter", options.filter]
    sys.exit(subprocess.run(command).returncode)


def first_error(done):
    """Of what a tool said, the line that says most."""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[-1] if lines else f"exit code {done.returncode}")


def is_copy(wanted, installed):
    return installed.exists() and filecmp.cmp(wanted, installed, shallow=False)


def install(tool, steps, wanted, installed, skips):
    """Whether the steps went well; notes what was installed, or why it was not."""
    for step in steps:
        try:
            done = subprocess.run(step, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60 * MINUTES)
            problem = [first_error(done)] if done.returncode else []
        except (OSError, subprocess.TimeoutExpired) as why:
            problem = [str(why)]
        if problem:
            skips.append(f"{tool} could not install {wanted.name}: {problem[0][:200]}")
            return False
    installed.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(wanted, installed)
    return True
