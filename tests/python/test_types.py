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
    """Of the environment's own interpreter, as pyright finds it."""
    environment = {**os.environ, "VIRTUAL_ENV": sys.prefix, "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}"}
    done = subprocess.run([sys.executable, "-m", *map(str, command)], capture_output=True, text=True, cwd=os.environ["TRANSEPT_SCRATCH"], env=environment)
    return done.returncode, (done.stdout + done.stderr)[-3000:]


class Types(unittest.TestCase):
    def test_mypy(self):
        for what in (("-p", "transept"), *((example,) for example in sorted(EXAMPLES.glob("*.py")))):
            code, said = run("mypy", "--strict", *what)
            self.assertEqual(code, 0, said)

    def test_pyright(self):
        for command in ((PACKAGE,), (EXAMPLES,), ("--verifytypes", "transept", "--ignoreexternal")):
            code, said = run("pyright", *command)
            self.assertEqual(code, 0, said)


if __name__ == "__main__":
    unittest.main()
