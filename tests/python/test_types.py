"""mypy --strict and pyright over the package as it is installed, and over the examples."""
import os
import subprocess
import sys
import unittest
from pathlib import Path

from common_python import ROOT

import transept

PACKAGE = Path(transept.__file__).parent
EXAMPLES = ROOT / "examples" / "python"


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=os.environ["TRANSEPT_SCRATCH"])
    return done.returncode, (done.stdout + done.stderr)[-3000:]


class Types(unittest.TestCase):
    def test_mypy(self):
        self.assertEqual(run(sys.executable, "-m", "mypy", "--strict", PACKAGE)[0], 0, run(sys.executable, "-m", "mypy", "--strict", PACKAGE)[1])
        for example in sorted(EXAMPLES.glob("*.py")):
            code, said = run(sys.executable, "-m", "mypy", "--strict", example)
            self.assertEqual(code, 0, said)

    def test_pyright(self):
        python = ("--pythonpath", sys.executable)
        for command in ((*python, PACKAGE), (*python, EXAMPLES), (*python, "--verifytypes", "transept", "--ignoreexternal")):
            code, said = run(sys.executable, "-m", "pyright", *command)
            self.assertEqual(code, 0, said)


if __name__ == "__main__":
    unittest.main()
