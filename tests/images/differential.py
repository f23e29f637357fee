"""Random files against Pillow 12, to the bit; files that are cut. The environment has IMAGE_PROBE (tools/image_probe.cc) and
IMAGE_FILES, how many files are drawn. run.py makes the environment."""
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

import oracle
import random_files

SEED = 29
NUM_FILES = int(os.environ.get("IMAGE_FILES", "300"))


def probe(contents, alpha="white"):
    """What image_probe says of each content."""
    with tempfile.TemporaryDirectory() as folder:
        names = [Path(folder) / f"{i}.image" for i in range(len(contents))]
        for name, content in zip(names, contents):
            name.write_bytes(content)
        done = subprocess.run([os.environ["IMAGE_PROBE"], alpha], input="".join(f"{name}\n" for name in names), capture_output=True, text=True,
                              check=True, timeout=600)
    return done.stdout.splitlines()


def wanted(content, white=True):
    """The same of Pillow; "error" for what it refuses."""
    try:
        (width, height), pixels = oracle.rgb(content, white)
    except (OSError, SyntaxError, ValueError, EOFError) as why:
        return f"error {why}"
    return f"{width} {height} {hashlib.sha256(pixels).hexdigest()}"


class Differential(unittest.TestCase):
    def setUp(self):
        rng = random.Random(SEED)
        self.files = [random_files.draw(rng) for _ in range(NUM_FILES)]

    def check(self, alpha):
        answers = probe([content for _, content in self.files], alpha)
        self.assertEqual(len(answers), NUM_FILES)
        for i, ((kind, content), answer) in enumerate(zip(self.files, answers)):
            with self.subTest(kind=kind, file=i):
                self.assertEqual(answer, wanted(content, alpha == "white"))

    def test_on_white_as_convert_to_rgb(self):
        self.check("white")

    def test_without_alpha_as_convert(self):
        self.check("drop")

    def test_every_kind_was_drawn(self):
        kinds = Counter(kind for kind, _ in self.files)
        for kind in random_files.KINDS:
            self.assertGreaterEqual(kinds[kind.__name__], NUM_FILES // 10)

    def test_files_that_are_cut(self):
        """Refused where Pillow refuses them; else the same pixels."""
        rng = random.Random(SEED)
        cut = [(kind, content[:rng.randrange(len(content))]) for kind, content in self.files]
        for i, ((kind, content), answer) in enumerate(zip(cut, probe([content for _, content in cut]))):
            with self.subTest(kind=kind, file=i):
                expected = wanted(content)
                is_error = expected.startswith("error ")
                self.assertEqual(answer[:6] if is_error else answer, "error " if is_error else expected)


def main():
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{sys.argv[1]}*"] if len(sys.argv) > 1 else None
    tests = loader.loadTestsFromTestCase(Differential)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(tests)
    failed = len({test.id().split(" ")[0] for test, _ in result.failures + result.errors})  # one test has many files
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
