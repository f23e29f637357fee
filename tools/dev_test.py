"""./dev as a newcomer meets it: help, suggestions, and what setup does on a machine where packages are missing."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from repo import ROOT

VERBS = ["setup", "build", "test", "lint", "format", "bench", "quality", "demo", "serve", "docs", "package", "amx", "gpu-check", "mutate", "check"]


def dev(*arguments, path=None):
    env = {**os.environ, **({"PATH": f"{path}:{os.environ['PATH']}"} if path else {})}
    return subprocess.run(["bash", str(ROOT / "dev"), *arguments], capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL)


class Help(unittest.TestCase):
    def test_every_verb_explains_itself(self):
        whole = dev("--help")
        self.assertEqual(whole.returncode, 0)
        for verb in VERBS:
            self.assertIn(f"\n  {verb} ", whole.stdout)
            told = dev(verb, "--help")
            self.assertEqual(told.returncode, 0)
            self.assertTrue(told.stdout.startswith(f"Usage: ./dev {verb}"), told.stdout)

    def test_no_verb_shows_the_help(self):
        self.assertEqual(dev().stdout, dev("--help").stdout)

    def test_unknown_verbs_suggest(self):
        for typed, meant in (("biuld", "build"), ("tset", "test"), ("chek", "check"), ("formt", "format")):
            done = dev(typed)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"did you mean '{meant}'?", done.stderr)
        self.assertNotIn("did you mean", dev("xyzzy").stderr)

    def test_unknown_presets_are_refused(self):
        done = dev("build", "--preset", "fast")
        self.assertEqual(done.returncode, 2)
        self.assertIn("fast", done.stderr)


class Setup(unittest.TestCase):
    """With a dpkg-query that knows only g++, and an apt-get and sudo that only write down what they were asked."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = Path(scratch.name)
        self.record = self.path / "record"
        self.program("dpkg-query", "echo 'installed g++'; echo 'config-files cmake'")
        self.program("apt-get", f'echo "apt-get $*" >> {self.record}')
        self.program("sudo", '"$@"')

    def program(self, name, body):
        file = self.path / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)

    def test_no_setup_names_what_is_missing_and_installs_nothing(self):
        for verb in ("setup", "build", "test", "demo"):
            done = dev(verb, "--no-setup", path=self.path)
            self.assertEqual(done.returncode, 2, verb)
            self.assertIn("cmake ninja-build", done.stderr)
            self.assertNotIn("g++", done.stderr)
        self.assertFalse(self.record.exists())

    def test_setup_prints_the_line_that_it_runs_and_installs_only_what_is_missing(self):
        done = dev("setup", path=self.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        install = self.record.read_text().splitlines()[-1]
        self.assertTrue(install.startswith("apt-get install --yes --no-install-recommends cmake ninja-build "), install)
        self.assertIn("clang-tidy-14", install)
        self.assertNotIn("python3-venv", install)
        self.assertIn(install, done.stderr)

    def test_nothing_missing_installs_nothing(self):
        packages = (ROOT / "tools" / "packages.txt").read_text().splitlines()
        self.program("dpkg-query", "".join(f"echo 'installed {name}'\n" for name in packages if name and name[0] not in "#["))
        done = dev("setup", path=self.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(self.record.exists())

    def test_a_failing_installation_is_a_failure(self):
        self.program("apt-get", "exit 100")
        self.assertNotEqual(dev("setup", path=self.path).returncode, 0)


if __name__ == "__main__":
    unittest.main()
