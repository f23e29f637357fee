#!/usr/bin/env python3
"""Checkpoints as torch.save writes them, in every layout and type, against the same checkpoints in safetensors; and files that
would do harm if they were unpickled.

    tests/torch_files/run.py                 # makes build/torch/venv where it is missing
    tests/torch_files/run.py --filter bart

torch comes from PyPI; where it cannot be installed, everything is skipped with the reason. Closes with
`N passed, N failed, N skipped`.
"""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # for packages

from packages import run_in_venv

if __name__ == "__main__":
    run_in_venv(__doc__, HERE, HERE.parent.parent / "build" / "torch" / "venv")
