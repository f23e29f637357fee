"""How the binary ends where it cannot go on: without threads, memory, descriptors, room on a disk, or a file that was
there. Always a sentence and an exit code, never a signal. Needs build/release/transept and the bundled model."""
import os
import re
import resource
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from cli_test import BINARY, run

NOBODY = 65534


def limited(*arguments, as_nobody=False, **limits):
    """As cli_test.run, with limits of the system (AS=2**28) on the process; root, whom some do not hold, becomes nobody."""
    def limit():
        if as_nobody and os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, "RLIMIT_" + name), (value, value))
        if as_nobody and os.geteuid() == 0:
            os.setresuid(NOBODY, NOBODY, NOBODY)
    done = subprocess.run([str(BINARY), *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          preexec_fn=limit, timeout=120)
    return done.returncode, done.stdout, done.stderr


def may_be_run_by_nobody():
    """Whether another user can reach the binary at all."""
    return os.geteuid() != 0 or all(folder.stat().st_mode & 1 for folder in [BINARY.resolve(), *BINARY.resolve().parents])


class EndsTest(unittest.TestCase):
    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)

    def packed(self):
        folder = self.scratch / "packed"
        code, _, err = run("pack", "g2p", folder)
        self.assertEqual((code, err), (0, ""))
        return folder

    def test_a_thread_that_cannot_be_had_is_a_sentence(self):
        if not may_be_run_by_nobody():
            self.skipTest("the binary lies where another user cannot reach it")
        for verb in (["generate", "g2p", "hello"], ["serve", "g2p", "--port", "0"]):
            code, out, err = limited(*verb, "--threads", "16", as_nobody=True, NPROC=3)
            self.assertEqual((code, out), (2, ""), err)
            self.assertRegex(err, r"transept: a thread cannot be started: .*ulimit -u.*\n\Z")

    def test_memory_that_cannot_be_had_is_a_sentence(self):
        for megabytes in (40, 60, 80, 100, 150, 200):
            for verb in (["generate", "g2p", "hello"], ["serve", "g2p", "--port", "0"],
                         ["dump", "encoder", "g2p", "hello", "--output", "/dev/null"]):
                code, out, err = limited(*verb, "--threads", "2", AS=megabytes << 20)
                if code == 127:  # the loader has no room for the libraries, and says so itself
                    continue
                self.assertEqual((code, out), (2, ""), f"{megabytes} MiB: {verb}: {err}")
                self.assertRegex(err, r"(?i)memory|thread")

    def test_weights_that_are_cut_while_they_are_used_end_the_process_by_their_name(self):
        weights = self.packed() / "model.safetensors"
        process = subprocess.Popen([str(BINARY), "generate", str(weights.parent), "--input", "-"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdin.write('{"prompt": "hello"}\n')
        process.stdin.flush()
        self.assertIn("text", process.stdout.readline())
        os.truncate(weights, 4096)
        _, err = process.communicate('{"prompt": "hello again"}\n', timeout=60)
        self.assertEqual(process.returncode, 2, err)
        end = "was cut or cannot be read any more while it was in use: the process ends"
        self.assertTrue(err.endswith(f"transept: {weights}: {end}\n"), err)

    def test_dump_leaves_no_file_that_is_not_whole(self):
        output = self.scratch / "hidden.npy"
        for limit in (0, 200):
            code, out, err = limited("dump", "encoder", "g2p", "hello", "--output", output, FSIZE=limit)
            self.assertEqual((code, out), (2, ""), err)
            self.assertIn("not everything could be written", err)
            self.assertEqual(list(self.scratch.iterdir()), [])
        code, _, err = run("dump", "encoder", "g2p", "hello", "--output", "/dev/full")
        self.assertEqual(code, 2)
        self.assertIn("/dev/full: not everything could be written", err)
        self.assertTrue(Path("/dev/full").exists())


if __name__ == "__main__":
    unittest.main()
