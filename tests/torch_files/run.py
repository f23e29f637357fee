#!/usr/bin/env python3
"""Checkpoints as torch.save writes them, in every layout and type, against the same checkpoints in safetensors; and files that
would do harm if they were unpickled.

    tests/torch_files/run.py                 # makes build/torch/venv where it is missing
    tests/torch_files/run.py --filter bart

torch comes from PyPI; where it cannot be installed, everything is skipped with the reason. Closes with
`N passed, N failed, N skipped`.
"""
import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))  # for packages

from packages import prepare_venv


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transept", type=Path, default=ROOT / "build" / "release" / "transept")
    parser.add_argument("--filter", default="", help="only cases whose name contains this")
    options = parser.parse_args()
    if not options.transept.exists():
        sys.exit(f"{options.transept}: no such binary")
    skips = []
    python = prepare_venv(HERE / "requirements.txt", ROOT / "build" / "torch" / "venv", skips)
    if python is None:
        print(f"skipped: {skips[0]}")
        print("0 passed, 0 failed, 1 skipped")
        return
    command = [str(python), str(HERE / "drive.py"), "--transept", str(options.transept.resolve()), "--filter", options.filter]
    sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
