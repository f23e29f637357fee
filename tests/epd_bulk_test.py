"""Fleets over Redis whose rows travel by each transport of --ec-bulk: every answer is that of one process, the rows went the way that was said, and
no process loads a library that it was not asked to use. Needs build/release/transept, and redis-server; for ucx libucx0. What is not there is
skipped by name."""
import shutil
import subprocess
import tempfile
import unittest
from contextlib import ExitStack
from pathlib import Path

import epd_load
from cli_test import BINARY

import serving
from serving import SPEECH_MODEL, TEXT_MODEL, wait_until

LIBRARIES = {"zmq": "libzmq.so", "ucx": "libucp.so"}  # beside libhiredis, which all have for the broker
COUNT = 12


class Redis:
    """A server of its own; use in `with`."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="redis"))
        self.path = self.folder / "redis"
        self.process = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", self.path, "--save", "", "--appendonly", "no",
                                         "--dir", self.folder], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def __enter__(self):
        assert wait_until(lambda: self.path.exists() and "PONG" in self.run("PING"), 10, 0.02) is not None, "redis-server does not answer"
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)

    def run(self, *command):
        return subprocess.run(["redis-cli", "-s", self.path, *command], capture_output=True, text=True).stdout

    def num_calls(self, command):
        found = [line for line in self.run("INFO", "commandstats").splitlines() if line.startswith(f"cmdstat_{command}:calls=")]
        return int(found[0].split("=")[1].split(",")[0]) if found else 0


def loaded(process):
    maps = Path(f"/proc/{process.pid}/maps").read_text()
    return {kind for kind, library in LIBRARIES.items() if library in maps}


@unittest.skipUnless(shutil.which("redis-server") and shutil.which("redis-cli"), "no redis-server is installed (Debian: redis-server)")
class EpdBulkTest(unittest.TestCase):
    def fleet(self, stack, redis, model, kind):
        """Its two servers: encode, decode."""
        servers = []
        for role in ("encode", "decode"):
            flags = ["--role", role, "--broker", f"redis+unix://{redis.path}", "--instance-name", role, "--ec-bulk", kind]
            try:
                servers.append(stack.enter_context(serving.Server(BINARY, model, *flags, env={"UCX_TLS": "tcp,sm,self"})))
            except AssertionError as error:
                words = str(error)
                missing = [line for line in words.splitlines() if "UCX cannot be used" in line or "has no UCX" in line]
                if kind == "ucx" and missing:
                    self.skipTest(f"--ec-bulk ucx was not run: {missing[0]}")
                raise
        return servers

    def answers_as_one_process(self, kind, model, source):
        requests = [source.next() for _ in range(COUNT)]
        with ExitStack() as stack:
            redis = stack.enter_context(Redis())
            encode, decode = self.fleet(stack, redis, model, kind)
            one = stack.enter_context(serving.Server(BINARY, model))
            expected = epd_load.asked_one_process(one, requests)
            num_before = redis.num_calls("getdel")
            for request, want in zip(requests, expected):
                reply = epd_load.ask(decode.port, request)
                self.assertEqual((reply.what, reply.content), (epd_load.OK, want), reply.words)
            took_rows = redis.num_calls("getdel") - num_before
            self.assertEqual(took_rows >= COUNT, kind == "broker", f"{took_rows} frames were taken out of Redis")
            self.assertEqual(redis.run("KEYS", "transept:default:ec:*").split(), [])
            for server in (encode, decode):
                self.assertEqual(loaded(server.process), {kind} & LIBRARIES.keys())
            self.assertEqual([decode.stop(), encode.stop()], [0, 0])
            self.assertEqual(redis.run("KEYS", "transept:default:frames:*").split(), [])

    def test_rows_through_the_broker(self):
        self.answers_as_one_process("broker", SPEECH_MODEL, epd_load.Sounds(1, longest=31))

    def test_rows_by_ucx(self):
        self.answers_as_one_process("ucx", SPEECH_MODEL, epd_load.Sounds(2, longest=31))

    def test_rows_by_zmq_beside_redis(self):
        self.answers_as_one_process("zmq", TEXT_MODEL, epd_load.Texts(3))

    def test_mixed_fleets_are_refused_by_name(self):
        """An encode instance that cannot send to where the decode instance takes rows says so, and the client has an error in time."""
        with ExitStack() as stack:
            redis = stack.enter_context(Redis())
            broker = ["--broker", f"redis+unix://{redis.path}"]
            encode = stack.enter_context(serving.Server(BINARY, TEXT_MODEL, "--role", "encode", *broker))
            decode = stack.enter_context(serving.Server(BINARY, TEXT_MODEL, "--role", "decode", *broker, "--instance-name", "p0",
                                                        "--ec-bulk", "broker"))
            reply = epd_load.ask(decode.port, epd_load.Texts(4, kinds=({},)).next())
            self.assertEqual((reply.what, reply.status), (epd_load.REFUSED, 503), reply.words)
            self.assertRegex(encode.log(), r"rows of \S+ cannot be sent to redis:p0:\d+: address redis:p0:\d+: is neither ipc://PATH nor tcp://")


if __name__ == "__main__":
    unittest.main()
