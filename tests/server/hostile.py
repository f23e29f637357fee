"""Hostile HTTP: it is refused or cut off, nothing crashes, and /health/live answers quickly all along."""
import contextlib
import random
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import wire
from prober import Prober
from serving import TEXT_MODEL, wait_until

MAX_LIVE_SECONDS = 0.25
BODY = b'{"prompt": "hello"}'
SIZED = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CHUNKED = SIZED + b"Transfer-Encoding: chunked\r\n\r\n"
SMUGGLED = b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"

# What two readers could take for different requests: (what it is, its bytes). The second request hidden in some must
# never be answered.
SMUGGLING = [
    ("Content-Length with Transfer-Encoding",
     SIZED + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED),
    ("Transfer-Encoding with Content-Length",
     SIZED + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + SMUGGLED),
    ("two Content-Lengths", SIZED + b"Content-Length: 19\r\nContent-Length: 0\r\n\r\n" + BODY),
    ("two equal Content-Lengths", SIZED + b"Content-Length: 19\r\nContent-Length: 19\r\n\r\n" + BODY),
    ("a list of Content-Lengths", SIZED + b"Content-Length: 19, 19\r\n\r\n" + BODY),
    ("a negative Content-Length", SIZED + b"Content-Length: -1\r\n\r\n" + SMUGGLED),
    ("a Content-Length with a sign", SIZED + b"Content-Length: +19\r\n\r\n" + BODY),
    ("a hexadecimal Content-Length", SIZED + b"Content-Length: 0x13\r\n\r\n" + BODY),
    ("a Content-Length past 2^64", SIZED + b"Content-Length: 18446744073709551635\r\n\r\n" + BODY),
    ("an empty Content-Length", SIZED + b"Content-Length:\r\n\r\n" + SMUGGLED),
    ("Transfer-Encoding: xchunked", SIZED + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SMUGGLED),
    ("Transfer-Encoding: chunked, identity", SIZED + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
    ("Transfer-Encoding: gzip, chunked", SIZED + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    ("chunked twice", SIZED + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("Transfer-Encoding with a vertical tab", SIZED + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n"),
    ("Transfer-Encoding before a space and a colon", SIZED + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
    ("Transfer-Encoding in HTTP/1.0", CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0") + b"0\r\n\r\n"),
    ("a folded header", SIZED + b"X: a\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("LF as a line's end", SMUGGLED.replace(b"\r\n", b"\n")),
    ("LF behind one header", b"GET /version HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n"),
    ("CR alone", b"GET /version HTTP/1.1\rHost: localhost\r\n\r\n"),
    ("CR in a header", b"GET /version HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n"),
    ("NUL in a header", b"GET /version HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n"),
    ("NUL in the path", b"GET /ver\0sion HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("a space before a header's name", b"GET /version HTTP/1.1\r\n Host: localhost\r\n\r\n"),
    ("a header without a colon", b"GET /version HTTP/1.1\r\nHost localhost\r\n\r\n"),
    ("a header without a name", b"GET /version HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n"),
    ("two Hosts", b"GET /version HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"),
    ("no Host", b"GET /version HTTP/1.1\r\n\r\n"),
    ("a malformed Host", b"GET /version HTTP/1.1\r\nHost: local host/x\r\n\r\n"),
    ("a chunk size with 0x", CHUNKED + b"0x13\r\n" + BODY + b"\r\n0\r\n\r\n"),
    ("a negative chunk size", CHUNKED + b"-1\r\n" + BODY + b"\r\n0\r\n\r\n"),
    ("a chunk size past 2^64", CHUNKED + b"10000000000000013\r\n" + BODY + b"\r\n0\r\n\r\n"),
    ("a chunk size with a space", CHUNKED + b"13 \r\n" + BODY + b"\r\n0\r\n\r\n"),
    ("an empty chunk size", CHUNKED + b"\r\n" + BODY + b"\r\n0\r\n\r\n"),
    ("a chunk size before LF", CHUNKED + b"13\n" + BODY + b"\r\n0\r\n\r\n"),
    ("a chunk longer than its size", CHUNKED + b"12\r\n" + BODY + b"\r\n0\r\n\r\n"),
    ("a chunk's end without CRLF", CHUNKED + b"13\r\n" + BODY + b"xx0\r\n\r\n"),
    ("a bad trailer", CHUNKED + b"13\r\n" + BODY + b"\r\n0\r\nbad trailer\r\n\r\n"),
    ("HTTP/2's preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ("HTTP/0.9", b"GET /version\r\n"),
    ("HTTP/1.12", b"GET /version HTTP/1.12\r\nHost: localhost\r\n\r\n"),
    ("two spaces in the request line", b"GET  /version HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256))),
    ("CONNECT", b"CONNECT example.org:443 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
]

OVERSIZE = [
    ("a request line", b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", {414}),
    ("a header", b"GET /version HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 20000 + b"\r\n\r\n", {431}),
    ("many headers", b"GET /version HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 200 + b"\r\n", {431}),
    ("a header without an end", b"GET /version HTTP/1.1\r\nX: " + b"a" * 100000, {431}),
    ("a declared body", SIZED + b"Content-Length: 99999999999\r\n\r\n", {413}),
    ("a body", SIZED + b"Content-Length: 9000000\r\n\r\n" + b" " * 9000000, {413}),
    ("a chunk", CHUNKED + b"fffffff\r\n", {413}),
    ("a chunk's extension", CHUNKED + b"1;" + b"x" * 5000 + b"\r\n", {400}),
    ("many small chunks", CHUNKED + b"1\r\n \r\n" * 100000 + b"0\r\n\r\n", {400, 413}),
    ("trailers", CHUNKED + b"0\r\n" + b"X: y\r\n" * 500 + b"\r\n", {431}),
    ("JSON's depth", wire.post("/v1/completions", b'{"prompt": ' + b"[" * 100000), {400}),
    ("JSON's numbers", wire.post("/v1/completions", b'{"prompt": "a", "seed": ' + b"9" * 100000 + b"}"), {400}),
    ("an upload", wire.form("/v1/audio/transcriptions", [], b"RIFF" + bytes(28 << 20)), {413, 400}),
    ("a form's parts", wire.form("/v1/audio/transcriptions", [("x", "y")] * 20000, b"RIFF"), {400, 413}),
    ("a prompt", wire.post("/v1/completions", {"prompt": "a" * 1000000}), {400}),
    ("a batch", wire.post("/v1/completions", {"prompt": ["a"] * 10000}), {400, 429}),
    ("stops", wire.post("/v1/completions", {"prompt": "a", "stop": ["a"] * 10000}), {400}),
    ("token ids", wire.post("/v1/completions", {"prompt": [7] * 1000000}), {400}),
]


@contextlib.contextmanager
def live_server(setup, *flags):
    """A server whose /health/live is asked all along."""
    with setup.serve(TEXT_MODEL, *flags) as server:
        with Prober(server.port) as prober:
            yield server
            assert server.process.poll() is None, f"the server ended:\n{server.log()[-3000:]}"
        setup.say(prober.words())
        assert not prober.found["failures"], prober.found["failures"][:5]
        assert prober.found["max"] < 1000 * MAX_LIVE_SECONDS * setup.time_factor, prober.words()
        assert server.complete("hello").status == 200
        setup.becomes_idle(server, 0.25)
        setup.stops_clean(server)


def send_all(connection, data):
    """As much as is taken: who refuses may close before the end."""
    with contextlib.suppress(OSError):
        connection.send(data)


def smuggling_is_refused(setup):
    with live_server(setup) as server:
        statuses = Counter()
        for what, data in SMUGGLING:
            with server.connect(timeout=10) as connection:
                send_all(connection, data)
                answer = connection.read_answer()
                statuses[answer.status] += 1
                assert answer.status in (400, 405, 413, 501, 505), f"{what}: {answer.status} {answer.body[:200]}"
                assert set(answer.json()["error"]) == {"message", "type", "param", "code"}, what
                connection.socket.shutdown(1)
                assert connection.is_closed(), f"{what}: something follows the refusal"
        setup.say(f"{len(SMUGGLING)} forms refused: {dict(statuses)}")


def oversize_is_refused(setup):
    with live_server(setup) as server:
        before = server.rss()
        for what, data, expected in OVERSIZE:
            with server.connect(timeout=20) as connection:
                send_all(connection, data)
                answer = connection.read_answer()
                assert answer.status in expected, f"{what}: {answer.status} {answer.body[:200]}"
        setup.say(f"{len(OVERSIZE)} kinds refused; memory {before >> 20} MiB before, {server.rss() >> 20} MiB after")


def drip(setup, what, begin, pieces, timeout):
    """200 clients send a piece every 0.1 s: all must be cut off soon after `timeout`, and others served meanwhile."""
    count = setup.scaled(200, 20)
    with live_server(setup, "--header-timeout", timeout, "--body-timeout", timeout, "--max-queued-requests",
                     2 * count) as server:
        started = time.monotonic()
        dripping = [server.connect() for _ in range(count)]
        for connection in dripping:
            send_all(connection, begin)
            connection.socket.setblocking(False)
        open_ones, answers, last = list(dripping), Counter(), 0
        for piece in pieces:
            if not open_ones or time.monotonic() - started > 10 * timeout * setup.time_factor:
                break
            assert server.complete("hello").status == 200
            for connection in list(open_ones):
                try:
                    connection.socket.send(piece)
                    received = connection.socket.recv(4096)
                except BlockingIOError:
                    continue
                except OSError:
                    received = b""
                answers[received.split(b" ", 2)[1].decode() if received else "closed"] += 1
                open_ones.remove(connection)
                last = time.monotonic() - started
            time.sleep(0.1)
        assert not open_ones, f"{len(open_ones)} of {count} drip on after {time.monotonic() - started:.1f} s"
        setup.say(f"{count} dripping {what}: cut off {dict(answers)}, the last after {last:.1f} s (timeout {timeout} s)")
        for connection in dripping:
            connection.close()


def heads_that_drip(setup):
    drip(setup, "heads", b"GET / HTTP/1.1\r\nHost: localhost\r\n", [b"X: y\r\n"] * 1000, 1)


def bodies_that_drip(setup):
    """Each byte in time, but never an end: each would hold a place in the queue."""
    drip(setup, "bodies", SIZED + b"Content-Length: 100000\r\n\r\n{", [b" "] * 1000, 1)


def one_request(server):
    """Seconds that an honest request took."""
    begin = time.monotonic()
    assert server.complete("hello").status == 200
    return time.monotonic() - begin


def honest_p99(ask, num_batches=5, num_requests=60):
    """The 99th percentile of honest requests' seconds: the median of several, because one pause of the machine is in each."""
    return statistics.median(sorted(ask() for _ in range(num_requests))[int(0.99 * (num_requests - 1))] for _ in range(num_batches))


def check_honest(setup, quiet, beside, what, elsewhere=None):
    """Twice the unloaded time, or what the same attackers cost who send to another process (`elsewhere`), and a millisecond: client,
    attackers and server share two processors, and the loopback's own work is no server's. Without such a control the floor is one
    turn of the system's scheduler (4 ms)."""
    setup.say(f"beside {what}: p99 {1000 * beside:.1f} ms, without {1000 * quiet:.1f} ms")
    floor = 0.004 if elsewhere is None else 1.5 * elsewhere
    assert beside < max(2 * quiet, floor) + 0.001 * setup.time_factor, f"{what}: {beside:.4f} s of {quiet:.4f} s"


def stalled_bodies_hold_nothing(setup):
    """513 clients with a head and one byte, 128 that announce 8 MiB and send 64 KiB: honest clients are served all along."""
    with live_server(setup) as server:
        def one_of_many():
            seconds = one_request(server)
            with server.connect() as connection:  # head and body apart: on its way for a moment, as an upload is
                send_all(connection, SIZED + b"Content-Length: %d\r\n\r\n" % len(BODY))
                time.sleep(0.005)
                send_all(connection, BODY)
                assert connection.read_answer().status == 200
            return seconds

        quiet = honest_p99(one_of_many)  # with the same pauses, from which processors wake
        count = setup.scaled(513, 60)
        stalled = [server.connect() for _ in range(count)]
        for connection in stalled:
            send_all(connection, SIZED + b"Content-Length: 100000\r\n\r\n{")
        announcing = [server.connect() for _ in range(setup.scaled(128, 16))]
        for connection in announcing:
            send_all(connection, SIZED + b"Content-Length: 8388608\r\n\r\n" + b" " * 65536)
        time.sleep(0.5)
        check_honest(setup, quiet, honest_p99(one_of_many), f"{count + len(announcing)} stalled bodies")
        for connection in stalled + announcing:
            connection.reset()


ATTACK = ["nice", "-n", "19", sys.executable, str(Path(__file__).resolve().parent / "attack.py")]


@contextlib.contextmanager
def attackers(port, kind, count):
    """Processes that send what attack.py calls `kind`, one request behind the other each. With the lowest priority: an
    attacker's own work is not done by the server's processors."""
    processes = [subprocess.Popen([*ATTACK, str(port), kind]) for _ in range(count)]
    time.sleep(1)  # they are at it
    try:
        yield
        assert all(process.poll() is None for process in processes), f"an attacker with {kind} ended"
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def sink():
    """A process that reads requests and throws them away; gives its port."""
    process = subprocess.Popen([*ATTACK, "0", "sink"], stdout=subprocess.PIPE, text=True)
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def costly_bodies_hold_nobody_up(setup):
    """Bodies of megabytes from two clients that never stop: what is long keeps away from some of the threads, and is
    refused before it is tokenised, or kept once each."""
    with live_server(setup) as server:
        quiet = honest_p99(lambda: one_request(server))
        # Attackers take processors from the server, which others would not: for comparison.
        with attackers(server.port, "busy", 2):
            setup.say(f"beside two busy processes that ask for nothing: p99 {1000 * honest_p99(lambda: one_request(server)):.1f} ms")
        for kind in ("spaces", "tokenize", "ids"):
            with sink() as port, attackers(port, kind, 2):
                elsewhere = honest_p99(lambda: one_request(server))
            setup.say(f"beside two clients that send {kind} to a server that throws them away: p99 {1000 * elsewhere:.1f} ms")
            with attackers(server.port, kind, 2):
                beside = honest_p99(lambda: one_request(server))
                begin = time.monotonic()
                assert server.complete("hello" + " " * (72 << 10)).status in (200, 400)  # long, too: waits for few of the others
                setup.say(f"an honest body of 72 KiB: {time.monotonic() - begin:.2f} s")
                assert time.monotonic() - begin < 6 * setup.time_factor
            check_honest(setup, quiet, beside, f"two clients that send {kind}", elsewhere)
        time.sleep(0.5)  # the last bodies of megabytes are parsed to their ends


def thousands_of_connections(setup):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = setup.scaled(3000, 300)
    if hard < wanted + 200:
        wanted = hard - 200
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, wanted + 200)), hard))
    with live_server(setup, "--idle-timeout", 600, "--header-timeout", 600) as server:
        begin = time.monotonic()
        connections = [server.connect() for _ in range(wanted)]
        for i, connection in enumerate(connections):
            if i % 3 == 1:
                connection.send(b"GET / HTTP/1.1\r\n")
            elif i % 3 == 2:
                assert connection.ask(wire.get("/health/live")).status == 200
        setup.say(f"{wanted} connections in {time.monotonic() - begin:.1f} s; the server has "
                  f"{server.num_descriptors()} descriptors, {server.rss() >> 20} MiB")
        assert server.complete("hello").status == 200
        for connection in connections:
            connection.reset()
        gone = wait_until(lambda: server.num_descriptors() < 100, 5 * setup.time_factor)
        assert gone is not None, f"{server.num_descriptors()} descriptors stay open"


def too_many_connections(setup):
    with setup.serve(TEXT_MODEL, "--max-connections", 20) as server:
        connections = [server.connect() for _ in range(20)]
        for connection in connections:
            assert connection.ask(wire.get("/health/live")).status == 200
        assert server.ask(wire.get("/health/live")).status == 503
        for connection in connections:
            connection.close()

        def is_served():
            return server.ask(wire.get("/health/live")).status == 200

        assert wait_until(is_served, 2 * setup.time_factor) is not None
        setup.stops_clean(server)


def pipelining(setup):
    with live_server(setup) as server:
        words = [f"pipe{'abcdefghij'[i % 10]}{'klmnopqrst'[i // 10]}" for i in range(setup.scaled(100, 20))]
        expected = [server.complete(word).json()["choices"] for word in words]
        with server.connect() as connection:
            connection.send(b"".join(wire.post("/v1/completions", {"prompt": word}) for word in words))
            for word, choices in zip(words, expected):
                assert connection.read_answer().json()["choices"] == choices, f"{word}: another's answer"
        with server.connect() as connection:
            def send():
                send_all(connection, wire.get("/health/live") * 20000)

            sender = threading.Thread(target=send)
            sender.start()
            for _ in range(20000):
                assert connection.read_answer().status == 200
            sender.join()
        setup.say(f"{len(words)} completions and 20000 probes in pipelines")


def mutated(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 30))):
        at, kind = rng.randrange(len(data) + 1), rng.randrange(6)
        if kind == 0:
            data[at:at + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            del data[at:at + rng.choice((1, 2, 8, 50))]
        elif kind == 2:
            data[at:at] = rng.choice((b"\r\n", b"\n", b"\0", b":", b" ", b"\xff", b'"', b"{", b"[" * 70, b"1e999",
                                      b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"%00", b"null",
                                      b"-1", b"9" * 30, b"\xed\xa0\x80", b"\\u0000", b"\\ud800", b"A" * 3000))
        elif kind == 3:
            other = rng.randrange(len(data) + 1)
            data[at:at] = data[other:other + rng.randrange(60)]
        elif kind == 4 and data:
            data[min(at, len(data) - 1)] ^= 1 << rng.randrange(8)
        elif kind == 5:
            del data[at:]
        data = data or bytearray(b"x")
    return bytes(data)


def seeds():
    full = {"model": "g2p", "prompt": ["hello", [7, 8, 2]], "max_tokens": 5, "n": 2, "temperature": 0.5, "top_p": 0.9,
            "top_k": 3, "seed": 1, "stop": ["x"], "logprobs": 2, "logit_bias": {"5": 1.5}, "stream": True,
            "stream_options": {"include_usage": True}, "bad_words": ["a"], "min_tokens": 1}
    return [wire.post("/v1/completions", full), wire.post("/v1/completions", {"prompt": "hello"}),
            wire.post("/v1/completions", {"prompt": {"encoder_prompt": "a", "decoder_prompt": None}, "num_beams": 3}),
            wire.post("/tokenize", {"prompt": "hello", "return_token_strs": True}),
            wire.post("/detokenize", {"tokens": [7, 8, 9]}),
            wire.post("/v1/score", {"prompt": "hello", "decoder_prompt": [7, 8], "prompt_logprobs": 1}),
            wire.post("/v1/translate", {"text": ["hello", "world"]}), wire.get("/v1/models/g2p"), wire.get("/"),
            wire.get("/debug/state?x=%20"), CHUNKED + b"13\r\n" + BODY + b"\r\n0\r\n\r\n",
            wire.form("/v1/audio/transcriptions", [("model", "g2p"), ("timestamp_granularities[]", "word")], b"RIFF")]


def random_mutations(setup):
    """Whatever comes: an answer that is no 500, or the end of the connection."""
    seconds, found, broken = setup.scaled(10, 3), Counter(), []
    with live_server(setup, "--header-timeout", 2, "--body-timeout", 2, "--idle-timeout", 2) as server:
        def work(seed):
            rng, end, originals = random.Random(seed), time.monotonic() + seconds, seeds()
            while time.monotonic() < end:
                data = mutated(rng, rng.choice(originals))
                try:
                    with server.connect(timeout=10 * setup.time_factor) as connection:
                        send_all(connection, data)
                        with contextlib.suppress(OSError):
                            connection.socket.shutdown(1)
                        received = connection.file.read(100)
                except ConnectionError:
                    received = b""
                except TimeoutError:
                    broken.append((seed, "no answer and no end", data))
                    continue
                status = received[9:12].decode("latin-1") if received.startswith(b"HTTP/1.1 ") else "closed"
                found[status] += 1
                if status == "500" or (status == "closed" and received):
                    broken.append((seed, received, data))

        workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        setup.say(f"{sum(found.values())} mutations: {dict(sorted(found.items()))}")
        assert not broken, f"{len(broken)}, such as {broken[0]}"


CASES = [smuggling_is_refused, oversize_is_refused, heads_that_drip, bodies_that_drip, stalled_bodies_hold_nothing,
         costly_bodies_hold_nobody_up,
         thousands_of_connections, too_many_connections, pipelining, random_mutations]
