#!/usr/bin/env python3
"""The real server driven by the official clients, openai-python and openai-node, and by plain HTTP.

    tests/clients/run.py                       # makes build/clients/venv and build/clients/node where they are missing
    tests/clients/run.py --filter openai_text
    tests/clients/run.py --through epd         # the same against `serve --epd 1E1D`; proxy: through `transept proxy` over a 1E2D

The clients come from PyPI and npm; where they cannot be installed, their tests are skipped with the reason. Closes with
`N passed, N failed, N skipped`.
"""
import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from fleet import SHAPES
from harness import BUILD, HERE, ROOT
from packages import install, is_copy, prepare_venv


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transept", type=Path, default=ROOT / "build" / "release" / "transept")
    parser.add_argument("--filter", default="", help="only tests whose module.name contains this")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="of the generated values of fields each Nth alone, for slow builds")
    parser.add_argument("--through", choices=SHAPES, help="a fleet in the server's place")
    options = parser.parse_args()
    if not options.transept.exists():
        sys.exit(f"{options.transept}: no such binary")
    skips = []
    python, node = prepare_python(skips), prepare_node(skips)
    command = [str(python), str(HERE / "drive.py"), "--transept", str(options.transept.resolve()), "--filter", options.filter,
               "--sample", str(options.sample)]
    command += ["--node-folder", str(node)] if node else []
    command += ["--through", options.through] if options.through else []
    for reason in skips:
        command += ["--skip", reason]
    sys.exit(subprocess.run(command).returncode)


def prepare_python(skips):
    """The interpreter that has the packages; this one, which has none, if they cannot be installed."""
    return prepare_venv(HERE / "requirements.txt", BUILD / "venv", skips) or Path(sys.executable)


def prepare_node(skips):
    """The folder whose node_modules has openai; None: there is none."""
    wanted, folder = HERE / "package.json", BUILD / "node"
    installed = folder / "installed.json"
    if is_copy(wanted, installed):
        return folder
    if not shutil.which("node") or not shutil.which("npm"):
        skips.append("openai-node: no node or no npm on this machine")
        return None
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(wanted, folder / "package.json")
    step = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder)]
    return folder if install("npm", (step,), wanted, installed, skips) else None


if __name__ == "__main__":
    main()
