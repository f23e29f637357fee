"""How the binary ends where it cannot go on: without threads, memory, descriptors, room on a disk, or a file that was
there. Always a sentence and an exit code, never a signal. Needs build/release/transept and the bundled model."""
import http.client
import json
import os
import re
import resource
import shutil
import subprocess
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

from cli_test import BINARY, run, serve
from speech_model import make_model, write_syllables

NOBODY = 65534


def become_nobody():
    """Root, whom some limits do not hold."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def limited(*arguments, as_nobody=False, **limits):
    """As cli_test.run, with limits of the system (AS=2**28) on the process."""
    def limit():
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, "RLIMIT_" + name), (value, value))
        if as_nobody:
            become_nobody()
    done = subprocess.run([str(BINARY), *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          preexec_fn=limit, timeout=120)
    return done.returncode, done.stdout, done.stderr


def may_be_run_by_nobody():
    """Whether another user can reach the binary at all."""
    return os.geteuid() != 0 or all(folder.stat().st_mode & 1 for folder in [BINARY.resolve(), *BINARY.resolve().parents])


def descriptors_of(process):
    return [int(name) for name in os.listdir(f"/proc/{process.pid}/fd")]


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

    def test_a_fleet_without_threads_ends_with_a_sentence(self):
        if not may_be_run_by_nobody():
            self.skipTest("the binary lies where another user cannot reach it")
        for limit in (2, 3, 5, 6):
            code, out, err = limited("serve", "g2p", "--port", "0", "--epd", "1E1D", as_nobody=True, NPROC=limit)
            self.assertEqual((code, out), (2, ""), f"{limit}: {err}")
            self.assertNotIn("src/thread.cpp", err, "libzmq ends the process that gives it no threads")

    def test_windows_of_audio_run_on_the_threads_that_can_be_had(self):
        if not may_be_run_by_nobody():
            self.skipTest("the binary lies where another user cannot reach it")
        self.scratch.chmod(0o755)
        model = make_model(self.scratch / "model")
        write_syllables(self.scratch / "a.wav", 65)
        sound = (self.scratch / "a.wav").read_bytes()
        process, url, _ = serve(self, model, preexec_fn=become_nobody)

        def transcribe():
            fields = [("file", '; filename="a.wav"', sound), ("language", "", b"en"), ("chunking_strategy", "", b"auto")]
            body = b"".join(f'--x\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() + value + b"\r\n"
                            for name, more, value in fields) + b"--x--\r\n"
            headers = {"Content-Type": "multipart/form-data; boundary=x"}
            with urllib.request.urlopen(urllib.request.Request(url + "/v1/audio/transcriptions", body, headers), timeout=60) as answer:
                return json.loads(answer.read())["text"]
        expected = transcribe()
        self.assertTrue(expected)
        for count in (len(os.listdir(f"/proc/{process.pid}/task")) + 1, 1):  # one more, and none
            self.limit_threads(process.pid, count)
            self.assertEqual(transcribe(), expected)
        process.terminate()
        _, log = process.communicate(timeout=30)
        said = re.findall(r"windows of audio run on (\d+) threads, not \d+: ", log)
        self.assertEqual(said[-1:], ["1"], log)
        self.assertEqual(process.returncode, 0, log)

    def limit_threads(self, pid, count):
        """Of nobody's process; a child of ours asks, who is nobody, too: root may lack the right."""
        child = os.fork()
        if child == 0:
            try:
                become_nobody()
                resource.prlimit(pid, resource.RLIMIT_NPROC, (count, count))
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_memory_that_cannot_be_had_is_a_sentence(self):
        if re.search(rb"__(asan|tsan)_init\b", BINARY.read_bytes()):
            self.skipTest("sanitizers want terabytes of addresses")
        for megabytes in (40, 60, 80, 100, 150, 200):
            for verb in (["generate", "g2p", "hello"], ["serve", "g2p", "--port", "0"],
                         ["dump", "encoder", "g2p", "hello", "--output", "/dev/null"]):
                code, out, err = limited(*verb, "--threads", "2", AS=megabytes << 20)
                if code == 127:  # the loader has no room for the libraries, and says so itself
                    continue
                self.assertEqual((code, out), (2, ""), f"{megabytes} MiB: {verb}: {err}")
                self.assertRegex(err, r"(?i)memory|thread")

    def test_positions_beyond_all_bounds_are_refused_before_they_cost_memory(self):
        for model in ("m2m100-float32", "moonshine-float16", "whisper-float16"):
            folder = self.scratch / model
            shutil.copytree(Path(__file__).parent / "models" / model, folder)
            config = json.loads((folder / "config.json").read_text())
            field = "max_target_positions" if "whisper" in model else "max_position_embeddings"
            config[field] = 1 << 24
            (folder / "config.json").write_text(json.dumps(config))
            process = subprocess.Popen([str(BINARY), "serve", str(folder), "--port", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            err = process.stderr.read()
            process.stderr.close()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 2, err)
            self.assertIn(f"{folder}/config.json: {field}: expected a whole number from 1 to 1048576, got 16777216\n", err)
            self.assertLess(usage.ru_maxrss, 200 << 10, "KiB")

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

    def test_a_server_outlives_the_reader_of_its_log(self):
        process = subprocess.Popen([str(BINARY), "serve", "g2p", "--port", "0"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait, 60)
        self.addCleanup(process.kill)
        address = next(found for line in process.stderr if (found := re.search(r"at http://([0-9.:]+)", line)))
        process.stderr.close()
        for _ in range(3):  # each is a line of the log
            connection = http.client.HTTPConnection(address[1], timeout=60)
            connection.request("POST", "/v1/completions", json.dumps({"model": "g2p", "prompt": "hello"}),
                               {"Content-Type": "application/json"})
            answer = connection.getresponse()
            self.assertEqual(answer.status, 200, answer.read())
            connection.close()
        process.terminate()
        self.assertEqual(process.wait(60), 0)

    def test_descriptors_that_cannot_be_had_are_a_sentence(self):
        for limit in range(3, 24):
            code, out, err = limited("serve", "g2p", "--port", "0", NOFILE=limit)
            if code == 127:  # as above
                continue
            self.assertEqual((code, out), (2, ""), f"{limit}: {err}")
            self.assertRegex(err, r"(?i)files", limit)
        code, out, err = limited("serve", "g2p", "--port", "0", "--max-connections", "500", NOFILE=512)
        self.assertEqual((code, out), (2, ""), err)
        self.assertRegex(err, r"--max-connections 500: the limit of open files \(ulimit -n\) is 512, .* at most \d+ fit")

    def serve(self, *flags):
        """A server's process and port."""
        process, url, _ = serve(self, "g2p", *flags)
        return process, int(url.rpartition(":")[2])

    def test_the_soft_limit_of_descriptors_becomes_the_hard_one(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        process, _ = self.serve()
        self.assertEqual(resource.prlimit(process.pid, resource.RLIMIT_NOFILE), (hard, hard))

    def test_without_descriptors_a_connection_is_told_and_the_log_says_so(self):
        process, port = self.serve()
        open_now, before = descriptors_of(process), None
        while open_now != before:  # what a server that has just begun to listen still opens counts, too
            time.sleep(0.3)
            before, open_now = open_now, descriptors_of(process)
        self.assertEqual(sorted(open_now), list(range(len(open_now))), "gaps, which would be taken first")
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (len(open_now) + 2, len(open_now) + 2))

        def ask(connection):
            connection.request("GET", "/health/live")
            answer = connection.getresponse()
            answer.read()
            return answer.status

        def connect():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            self.addCleanup(connection.close)
            connection.connect()
            return connection

        staying = [connect(), connect()]
        self.assertEqual([ask(connection) for connection in staying], [200, 200])
        for _ in range(3):  # each after the other has gone
            told = connect()
            self.assertEqual(ask(told), 503)
            told.close()
        idle, begin = [connect() for _ in range(5)], time.monotonic()
        self.assertEqual(ask(connect()), 503)
        self.assertLess(time.monotonic() - begin, 4, "refused ones that say nothing hold nobody up for 2 s each")
        for connection in idle:
            connection.close()
        self.assertEqual(ask(staying[0]), 200, "who is there stays")
        staying[1].close()
        self.assertTrue(self.becomes_true(lambda: ask(connect()) == 200), "a place is free again")
        process.terminate()
        _, log = process.communicate(timeout=30)
        said = re.findall(r"cannot be accepted \(\d+ times since the last notice\): .*raise ulimit -n", log)
        self.assertTrue(1 <= len(said) <= 20, log)
        self.assertEqual(process.returncode, 0, log)

    @staticmethod
    def becomes_true(condition, seconds=20):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    def test_dump_leaves_no_file_that_is_not_whole(self):
        output = self.scratch / "hidden.npy"
        for limit in (0, 200):
            code, out, err = limited("dump", "encoder", "g2p", "hello", "--output", output, FSIZE=limit)
            self.assertEqual((code, out), (2, ""), err)
            self.assertIn("hidden.npy: File too large", err)
            self.assertEqual(list(self.scratch.iterdir()), [])
        output.write_bytes(b"older")
        self.assertEqual(limited("dump", "encoder", "g2p", "hello", "--output", output, FSIZE=200)[0], 2)
        self.assertEqual(output.read_bytes(), b"older")
        self.assertEqual(list(self.scratch.iterdir()), [output])
        code, _, err = run("dump", "encoder", "g2p", "hello", "--output", "/dev/full")
        self.assertEqual(code, 2)
        self.assertIn("/dev/full: not everything could be written", err)
        self.assertTrue(Path("/dev/full").exists())


if __name__ == "__main__":
    unittest.main()
