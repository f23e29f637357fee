#!/usr/bin/env python3
"""Quantised weights as other libraries store them, against the numbers that these libraries read from them, digit by digit of every answer:
compressed-tensors, bitsandbytes, quanto, CTranslate2 and gguf.

    tests/quantized_files/run.py                 # makes build/quantized_files/venv where it is missing
    tests/quantized_files/run.py --filter nf4

The libraries come from PyPI; where they cannot be installed, everything is skipped with the reason. Closes with
`N passed, N failed, N skipped`.
"""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # for packages

from packages import run_in_venv

if __name__ == "__main__":
    run_in_venv(__doc__, HERE, HERE.parent.parent / "build" / "quantized_files" / "venv")
