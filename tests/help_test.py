"""What the binary says of itself: every verb's help, its examples, its exit codes. Needs build/release/transept and the
bundled model."""
import re
import shlex
import subprocess
import tempfile
import unittest
from pathlib import Path

from cli_test import BINARY, ROOT, run


class HelpTest(unittest.TestCase):
    def test_help_is_complete(self):
        self.assertEqual(run("--help")[0], 0)
        for verb in ("generate", "translate", "tokenize", "detokenize", "dump", "bench"):
            code, out, _ = run(verb, "--help")
            self.assertEqual(code, 0)
            self.assertIn(f"usage: transept {verb}", out)

    def test_help_has_an_example_that_works(self):
        verbs = re.findall(r"^  transept (bench serve|[a-z]+) ?", run("--help")[1], re.MULTILINE)
        self.assertGreater(len(verbs), 9)
        with tempfile.TemporaryDirectory() as folder:
            for verb in sorted(set(verbs)):
                out = run(*verb.split(), "--help")[1]
                examples = re.findall(rf"^  (transept {verb} ?.*)$", out.partition("\nexample:\n")[2].partition("\n\n")[0], re.MULTILINE)
                self.assertTrue(examples, verb)
                for example in examples:
                    words = shlex.split(example)[1:]
                    for flag in (word for word in words if word.startswith("--")):
                        self.assertRegex(out, rf"(?m)^  (-\w, )?{flag} ", example)
                    if "g2p" in words:
                        done = subprocess.run([str(BINARY), *words], cwd=folder, capture_output=True, text=True, timeout=120)
                        self.assertEqual(done.returncode, 0, f"{example}: {done.stderr}")

    def test_help_that_cannot_be_written_is_no_success(self):
        if not Path("/dev/full").exists():
            self.skipTest("no device /dev/full")
        for arguments in (["--help"], ["--version"], ["generate", "--help"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([str(BINARY), *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(done.stderr, "transept: standard output: not everything could be written\n")

    def test_it_is_named_where_it_would_help(self):
        pointer = "transept generate --help shows what it takes\n"
        self.assertTrue(run("generate", "g2p", "x", "--temperature", "hot")[2].endswith(pointer))
        self.assertNotIn(pointer, run("generate", "nowhere", "x")[2])

    def test_help_and_documents_say_what_exit_codes_mean(self):
        document = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
        for text in (run("--help")[1], run("generate", "--help")[1], document):
            for word in ("130", "SIGINT", "141", "SIGPIPE"):
                self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main()
