"""The bar of a download, of a hub of the tests' own: on a terminal alone, and not where huggingface_hub's are off."""
import os
import pty
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from common_python import BART

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "hub"))
from server import Hub

from transept._progress import DownloadBar

LOAD = "from transept import LLM; LLM('acme/bart', threads=1).shutdown(); print('loaded')"
WITHOUT_TQDM = "import sys; sys.modules['tqdm'] = sys.modules['tqdm.auto'] = None; "


class DownloadBarTest(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.hub = self.enterContext(Hub())
        files = {path.name: path.read_bytes() for path in BART.iterdir() if path.suffix != ".jsonl"}
        self.hub.add("acme/bart", files, large=["model.safetensors"])
        self.hub.fail("GET .*model.safetensors", times=9, pace=0.05)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "TRANSEPT_"))}
        self.environment = {**kept, "HF_HOME": folder, "HF_ENDPOINT": self.hub.url, "no_proxy": "127.0.0.1"}

    def said(self, program=LOAD, **changes):
        """What a program writes to a terminal on standard error."""
        ours, theirs = pty.openpty()
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=theirs, env={**self.environment, **changes}) as process:
            os.close(theirs)
            text = b""
            try:
                while piece := os.read(ours, 65536):
                    text += piece
            except OSError:  # the other end is closed
                pass
            os.close(ours)
            self.assertEqual(process.stdout.read(), b"loaded\n", text)
        return text.decode()

    def test_on_a_terminal(self):
        for program in (LOAD, WITHOUT_TQDM + LOAD):
            with self.subTest(program):
                subprocess.run(["rm", "-rf", f"{self.environment['HF_HOME']}/hub"], check=True)
                said = self.said(program)
                self.assertIn("acme/bart", said)
                self.assertRegex(said, r"MB/s|[kM]?B/s")
                self.assertEqual(self.said(program), "", "all is there")

    def test_not_where_it_is_off(self):
        self.assertEqual(self.said(HF_HUB_DISABLE_PROGRESS_BARS="1"), "")

    def test_not_into_a_pipe(self):
        done = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, env=self.environment)
        self.assertEqual((done.stdout, done.stderr), ("loaded\n", ""))

    def test_a_bar_that_was_never_drawn_leaves_nothing(self):
        DownloadBar().close()


if __name__ == "__main__":
    unittest.main()
