#!/usr/bin/env python3
"""./dev docs: the documentation site, by mkdocs-material from PyPI in build/docs/venv, into build/docs/site. A link or an
anchor that leads nowhere is an error. --serve: on 127.0.0.1:8001, made anew when a page changes."""
import argparse
import os
import subprocess
import sys

from repo import ROOT

sys.path.insert(0, str(ROOT / "tests"))
from packages import prepare_venv

BUILD = ROOT / "build" / "docs"


def prepare(skips):
    """The interpreter of the environment; None, with the reason in skips, if it cannot be made."""
    BUILD.mkdir(parents=True, exist_ok=True)
    return prepare_venv(ROOT / "tools" / "requirements-docs.txt", BUILD / "venv", skips)


def main():
    parser = argparse.ArgumentParser(prog="./dev docs")
    parser.add_argument("--serve", action="store_true")
    options = parser.parse_args()
    skips = []
    python = prepare(skips)
    if python is None:
        sys.exit(f"docs: {skips[0]}")
    command = [str(python), "-m", "mkdocs", *(["serve"] if options.serve else ["build", "--clean"]), "--strict"]
    code = subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}).returncode
    if code == 0 and not options.serve:
        print(f"docs: {BUILD.relative_to(ROOT)}/site/index.html")
    sys.exit(code)


if __name__ == "__main__":
    main()
