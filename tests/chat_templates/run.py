#!/usr/bin/env python3
"""Chat templates beside transformers and jinja2 from PyPI: differential.py, in an environment below build/chat_templates.

    tests/chat_templates/run.py [--transept PATH] [--filter NAME] [--templates N] [--seed N]

--transept names a binary of the build whose chat_template_probe is run. Where the packages cannot be installed, the tests are skipped with the
reason. Closes with `N passed, N failed, N skipped`.
"""
import argparse
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent)]  # for differential; for packages

import differential
from packages import prepare_venv


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transept", type=Path, default=ROOT / "build" / "release" / "transept")
    parser.add_argument("--filter", default="", help="only tests whose name contains this")
    parser.add_argument("--templates", type=int, default=2000, help="how many random ones")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    probe = options.transept.parent / "src" / "text" / "chat" / "chat_template_probe"
    if not probe.exists():
        sys.exit(f"{probe}: no such binary")
    skips = []
    python = prepare_venv(HERE / "requirements.txt", ROOT / "build" / "chat_templates" / "venv", skips)
    if python is None:
        print(f"skipped: {skips[0]}", "0 passed, 0 failed, 1 skipped", sep="\n")
        return
    differential.use(probe.resolve(), python, options.templates, options.seed)
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{options.filter}*"] if options.filter else None
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(loader.loadTestsFromModule(differential))
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
