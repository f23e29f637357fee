"""Fleets over Redis whose rows travel by each transport of --ec-bulk: every answer is that of one process, the rows went the way that was said, and
no process loads a library that it was not asked to use. Needs build/release/transept, and redis-server; for ucx libucx0. What is not there is
skipped by name."""
import shutil
import unittest
from contextlib import ExitStack
from pathlib import Path

from cli_test import BINARY
from epd_by_hand import Redis

import epd_load
import serving
from serving import SPEECH_MODEL, TEXT_MODEL

LIBRARIES = {"zmq": "libzmq.so", "ucx": "libucp.so"}  # beside libhiredis, which all have for the broker
COUNT = 12


def loaded(process):
    maps = Path(f"/proc/{process.pid}/maps").read_text()
    return {kind for kind, library in LIBRARIES.items() if library in maps}


@unittest.skipUnless(shutil.which("redis-server") and shutil.which("redis-cli"), "no redis-server is installed (Debian: redis-server)")
class EpdBulkTest(unittest.TestCase):
    def fleet(self, stack, redis, model, kind):
        """Its two servers: encode, decode."""
        servers = []
        for role in ("encode", "decode"):
            flags = ["--role", role, "--broker", redis.url, "--instance-name", role, "--ec-bulk", kind]
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
            if model == TEXT_MODEL:  # Debian's FFmpeg, which reads audio, has libzmq, too
                for server in (encode, decode):
                    self.assertEqual(loaded(server.process), {kind} & LIBRARIES.keys())
            self.assertEqual([decode.stop(), encode.stop()], [0, 0])
            self.assertEqual(redis.run("KEYS", "transept:default:frames:*").split(), [])

    def test_rows_through_the_broker(self):
        self.answers_as_one_process("broker", SPEECH_MODEL, epd_load.Sounds(1, longest=31))

    def test_rows_by_ucx(self):
        self.answers_as_one_process("ucx", SPEECH_MODEL, epd_load.Sounds(2, longest=31))

    def test_nothing_else_is_loaded(self):
        for kind in ("broker", "ucx"):
            self.answers_as_one_process(kind, TEXT_MODEL, epd_load.Texts(5))

    def test_rows_by_zmq_beside_redis(self):
        self.answers_as_one_process("zmq", TEXT_MODEL, epd_load.Texts(3))

    def test_mixed_fleets_are_refused_by_name(self):
        """An encode instance that cannot send to where the decode instance takes rows says so, and the client has the error."""
        with ExitStack() as stack:
            redis = stack.enter_context(Redis())
            broker = ["--broker", redis.url]
            encode = stack.enter_context(serving.Server(BINARY, TEXT_MODEL, "--role", "encode", *broker))
            decode = stack.enter_context(serving.Server(BINARY, TEXT_MODEL, "--role", "decode", *broker, "--instance-name", "p0",
                                                        "--ec-bulk", "broker"))
            reply = epd_load.ask(decode.port, epd_load.Texts(4, kinds=({},)).next())
            self.assertEqual((reply.what, reply.status), (epd_load.REFUSED, 503), reply.words)
            self.assertRegex(reply.words, r"p0 takes rows at redis:p0:\d+, and this instance at tcp://\S+: --ec-bulk differs")


if __name__ == "__main__":
    unittest.main()
