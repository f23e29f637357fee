"""Ranks and stages under faults that tests/ranks_test.py has not: in a beam step, in an encode, under load, without memory, processors or permissions. Every
client has its whole answer, an error event or 503 with Retry-After at once; the log names rank, signal and step; nothing is left. Needs
build/release/transept."""
import ctypes
import os
import platform
import re
import resource
import signal
import struct
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

from cli_test import BINARY, run, serve
from ranks_test import GONE_WITHIN, MODELS, answers, children, is_running

sys.path.insert(0, str(Path(__file__).resolve().parent / "server"))

import wire
from serving import wait_until

MODEL = MODELS / "t5-float32"
TOLD_WITHIN = 1  # s, of clients whose server has lost a rank
LONG = {"max_tokens": 20000, "ignore_eos": True}  # seconds of work
# Numbers of system calls.
CALLS = {"x86_64": {"memfd_create": 319, "sched_setaffinity": 203}, "aarch64": {"memfd_create": 279, "sched_setaffinity": 122}}


def refuse(call):
    """Has the kernel answer a system call of this process, and of all that it starts, with EPERM: as a container's profile does."""
    load, equal, give = 0x20, 0x15, 0x06  # of BPF
    program = b"".join(struct.pack("=HBBI", *one) for one in (
        (load, 0, 0, 0), (equal, 0, 1, CALLS[platform.machine()][call]), (give, 0, 0, 0x00050001), (give, 0, 0, 0x7FFF0000)))
    buffer = ctypes.create_string_buffer(program, len(program))
    filters = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for arguments in ((38, 1, 0, 0, 0), (22, 2, ctypes.byref(filters), 0, 0)):  # no new privileges; a filter
        if prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


class Asking(threading.Thread):
    """A request whose answer, or what comes instead, is awaited."""

    def __init__(self, port, **fields):
        super().__init__(daemon=True)
        self.port, self.fields, self.answer, self.error, self.end = port, fields, None, None, None
        self.start()

    def run(self):
        try:
            self.answer = wire.ask(self.port, wire.post("/v1/completions", {"model": "m", "prompt": "hello", **self.fields}), timeout=60)
        except (OSError, wire.Cut) as error:
            self.error = error
        self.end = time.monotonic()

    def content(self):
        """Of a whole answer, what must be the same whenever it is asked."""
        return wire.texts(self.answer.body) if self.fields.get("stream") else self.answer.json()["choices"]

    def words(self):
        return f"{str(self.fields)[-200:]}: {self.error!r}, {self.answer and (self.answer.status, self.answer.headers, self.answer.body[-300:])}"


class FaultsTest(unittest.TestCase):
    flags = ("--tensor-parallel-size", "2")

    def serve(self, *flags, preexec_fn=None):
        """Process, port, the other ranks."""
        process, url, self.log = serve(self, MODEL, *self.flags, "--served-model-name", "m", *flags, preexec_fn=preexec_fn)
        ranks = children(process.pid)
        self.assertEqual(len(ranks), 1)
        self.addCleanup(lambda: [os.kill(rank, signal.SIGKILL) for rank in ranks if is_running(rank)])
        return process, int(url.rpartition(":")[2]), ranks

    def whole_answers(self, fields, *flags):
        """Of one process that has no fault."""
        url = serve(self, MODEL, "--served-model-name", "m", *flags)[1]
        asking = [Asking(int(url.rpartition(":")[2]), **one) for one in fields]
        for one in asking:
            one.join()
        return [one.content() for one in asking]

    def becomes_busy(self, port, count):
        def is_busy():
            text = wire.ask(port, wire.get("/metrics")).body.decode()
            return sum(float(one) for one in re.findall(r"^transept:num_requests_running\S* (\S+)$", text, re.M)) >= count
        self.assertIsNotNone(wait_until(is_busy, 20))

    def expect_end(self, process, ranks, code):
        begin = time.monotonic()
        log = process.stderr.read()
        self.assertEqual(process.wait(timeout=GONE_WITHIN), code, log)
        self.assertIsNotNone(wait_until(lambda: not any(map(is_running, ranks)), GONE_WITHIN), "a rank is left")
        self.assertLess(time.monotonic() - begin, GONE_WITHIN)
        return log

    def expect_told(self, asking, since, within=TOLD_WITHIN):
        """Each within a second, or so: an error event in a stream, or 503 with Retry-After."""
        for one in asking:
            one.join(GONE_WITHIN)
            self.assertFalse(one.is_alive(), f"waits still: {one.words()}")
            self.assertLess(one.end - since, within, one.words())
            self.assertIsNotNone(one.answer, one.words())
            if one.answer.status == 200:
                self.assertTrue(one.fields.get("stream"), one.words())
                self.assertIn("error", wire.events(one.answer.body)[-2], one.words())  # before [DONE]
            else:
                self.assertEqual(one.answer.status, 503, one.words())
                self.assertIn("retry-after", one.answer.headers, one.words())
                self.assertTrue(one.answer.message(), one.words())

    def kill_while(self, pause, *fields):
        """A rank, `pause` seconds after these requests run. Checks clients, log and what is left."""
        process, port, ranks = self.serve("--max-model-len", "100000")
        asking = [Asking(port, **one) for one in fields]
        self.becomes_busy(port, len(fields))
        time.sleep(pause)
        for one in asking:
            self.assertTrue(one.is_alive(), f"over before the fault: {one.words()}")
        since = time.monotonic()
        os.kill(ranks[0], signal.SIGKILL)
        self.expect_told(asking, since)
        log = self.expect_end(process, ranks, 2)
        self.assertRegex(log, rf"step [0-9]+: rank 1 \(pid {ranks[0]}\) was ended by signal 9 \(Killed\)")

    def test_a_rank_killed_in_a_beam_step(self):
        self.kill_while(0.5, {"num_beams": 4, **LONG})

    def test_a_rank_killed_beside_every_kind_of_request(self):
        self.kill_while(0.5, {"num_beams": 4, **LONG}, LONG, {"stream": True, **LONG}, {"n": 3, "temperature": 1, **LONG})

    def kill_in_an_encode(self, num_words, pause=None, **fields):
        """A rank, `pause` seconds after an encode of so many words was asked for, or in its middle. Nothing was decoded then."""
        prompt = "encyclopedia " * num_words
        process, port, ranks = self.serve("--max-model-len", "100000")
        if pause is None:
            begin = time.monotonic()
            Asking(port, max_tokens=1, prompt=prompt).join()
            pause = (time.monotonic() - begin) / 2
        asking = Asking(port, **LONG, **fields, prompt=f"an {prompt}")
        time.sleep(pause)
        since = time.monotonic()
        os.kill(ranks[0], signal.SIGKILL)
        self.expect_told([asking], since)
        if asking.answer.status == 200:
            self.assertFalse([one for one in wire.events(asking.answer.body) if "choices" in one], "it was decoding")
        log = self.expect_end(process, ranks, 2)
        self.assertRegex(log, rf"step [0-9]+: rank 1 \(pid {ranks[0]}\) was ended by signal 9 \(Killed\)")

    def test_a_rank_killed_in_an_encode(self):
        for stream in (True, False):
            self.kill_in_an_encode(1000, stream=stream)

    def test_a_rank_killed_in_an_encode_whose_layers_take_seconds(self):
        """Clients are told, and the process ends, before the first rank's own part of the layer is over."""
        self.kill_in_an_encode(8000, pause=1.5)

    def test_a_rank_that_is_stopped_under_load(self):
        """After --rank-timeout what was in flight may be asked again, elsewhere: 503, not the 504 of a request that took too long."""
        process, port, ranks = self.serve("--max-model-len", "100000", "--rank-timeout", "2")
        asking = [Asking(port, **one) for one in ({"num_beams": 4, **LONG}, LONG, {"stream": True, **LONG})]
        self.becomes_busy(port, 3)
        since = time.monotonic()
        os.kill(ranks[0], signal.SIGSTOP)
        self.expect_told(asking, since, 2 + TOLD_WITHIN)
        log = self.expect_end(process, ranks, 2)
        self.assertRegex(log, rf"step [0-9]+: rank 1 \(pid {ranks[0]}\) has not answered for 2 s")

    def test_the_first_rank_killed_under_load(self):
        process, port, ranks = self.serve("--max-model-len", "100000")
        asking = [Asking(port, **one) for one in ({"stream": True, **LONG}, LONG, {"num_beams": 4, **LONG})]
        self.becomes_busy(port, 3)
        since = time.monotonic()
        process.kill()
        for one in asking:
            one.join(GONE_WITHIN)
            self.assertFalse(one.is_alive(), f"waits still: {one.fields}")
            self.assertLess(one.end - since, TOLD_WITHIN, one.words())
            self.assertIsNotNone(one.error, f"a whole answer of the dead: {one.words()}")
        self.expect_end(process, ranks, -signal.SIGKILL)

    def test_sigterm_to_all_processes_under_load(self):
        fields = [{"stream": True}, {"num_beams": 4}, {"n": 3, "temperature": 1, "seed": 1}, {"stream": True, "n": 2, "temperature": 1, "seed": 2}]
        fields = [{**one, "prompt": f"hello {i}", "max_tokens": 4000, "ignore_eos": True} for i, one in enumerate(fields)]
        limit = ("--max-model-len", "5000")
        wanted = self.whole_answers(fields, *limit)
        process, port, ranks = self.serve(*limit)
        asking = [Asking(port, **one) for one in fields]
        self.becomes_busy(port, len(fields))
        for pid in (*ranks, process.pid):  # as a service manager sends it, to all of a group
            os.kill(pid, signal.SIGTERM)
        self.assertIsNotNone(wait_until(lambda: wire.ask(port, wire.get("/health/ready")).status == 503, 1))
        late = wire.ask(port, wire.post("/v1/completions", {"prompt": "late"}))
        self.assertEqual(late.status, 503, late)
        self.assertIn("retry-after", late.headers)
        self.assertTrue(all(one.is_alive() for one in asking), "the work was over before anything was seen")
        for one, want in zip(asking, wanted):
            one.join()
            self.assertEqual(one.content(), want, one.words())
        self.assertIn("all requests were answered", self.expect_end(process, ranks, 0))

    def need_limits_of_addresses(self):
        if re.search(rb"__(asan|tsan)_init\b", BINARY.read_bytes()):
            self.skipTest("sanitizers want terabytes of addresses")

    def test_a_rank_without_memory_ends_the_start(self):
        """A limit of one rank's addresses, from before it loads."""
        self.need_limits_of_addresses()
        process = subprocess.Popen([str(BINARY), "serve", str(MODEL), "--port", "0", *self.flags, "--kv-cache-memory", "4GiB"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for step in (process.stderr.close, process.wait, process.kill):
            self.addCleanup(step)

        def first_child():
            for task in Path(f"/proc/{process.pid}/task").iterdir():
                if found := (task / "children").read_text().split():
                    return int(found[0])
            return None
        until, rank = time.monotonic() + 20, None
        while rank is None and time.monotonic() < until:
            rank = first_child()
        resource.prlimit(rank, resource.RLIMIT_AS, (1 << 30, 1 << 30))
        log = self.expect_end(process, [rank], 2)
        self.assertRegex(log, r"(?i)rank 1\b.*memory")
        self.assertEqual(len(re.findall("^transept serve:", log, re.M)), 1, f"one error, once: {log}")

    def test_a_rank_that_gets_no_more_memory_needs_none(self):
        """A limit of one rank's addresses once it is ready: what steps need was taken before."""
        self.need_limits_of_addresses()
        fields = [{"prompt": "many words " * 2000, "max_tokens": 4}, {"num_beams": 4, "max_tokens": 50}, {"max_tokens": 50},
                  {"n": 4, "temperature": 1, "seed": 1, "max_tokens": 50, "stream": True}]
        wanted = self.whole_answers(fields, "--max-model-len", "100000")
        process, port, ranks = self.serve("--max-model-len", "100000")
        size = int(Path(f"/proc/{ranks[0]}/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.prlimit(ranks[0], resource.RLIMIT_AS, (size, size))
        asking = [Asking(port, **one) for one in fields]
        for one, want in zip(asking, wanted):
            one.join(30)
            self.assertFalse(one.is_alive(), f"waits still: {one.words()}")
            self.assertEqual(one.content(), want, one.words())
        process.send_signal(signal.SIGTERM)
        self.expect_end(process, ranks, 0)

    def test_permission_to_share_memory_or_to_pin(self):
        if platform.machine() not in CALLS:
            self.skipTest(f"no numbers of system calls of {platform.machine()}")
        requests = ("generate", MODEL, "--input", MODEL / "requests.jsonl")
        wanted = run(*requests)
        done = self.run_refused("memfd_create", *requests)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertRegex(done.stderr, r"transept generate: .*memfd_create: Operation not permitted\n")
        done = self.run_refused("sched_setaffinity", *requests, "--cpu-affinity", "auto", "--log-level", "info")
        self.assertEqual((done.returncode, answers(done.stdout)), (wanted[0], answers(wanted[1])), done.stderr)
        self.assertNotIn("threads are pinned", done.stderr, "what the kernel has refused")

    def run_refused(self, call, *arguments):
        return subprocess.run([str(BINARY), *map(str, arguments), *self.flags], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                              preexec_fn=lambda: refuse(call))


class StageFaultsTest(FaultsTest):
    """The same of two stages."""
    flags = ("--pipeline-parallel-size", "2")


class ProcessorsTest(unittest.TestCase):
    def test_more_ranks_than_processors(self):
        """Four on one: each waits for others that do not run, and leaves the processor to them."""
        requests = ("generate", MODEL, "--input", MODEL / "requests.jsonl")
        wanted = run(*requests)
        for flags in (("--tensor-parallel-size", "4"), ("--pipeline-parallel-size", "2", "--tensor-parallel-size", "2"),
                      ("--tensor-parallel-size", "4", "--threads", "2")):
            done = subprocess.run([str(BINARY), *map(str, requests), *flags], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                                  preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}))
            self.assertEqual((done.returncode, answers(done.stdout)), (wanted[0], answers(wanted[1])), f"{flags}: {done.stderr}")


if __name__ == "__main__":
    unittest.main()
