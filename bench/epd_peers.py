"""Peers of a decode instance that are no good, for bench/epd.py: one that is stopped, one that floods it with announcements, one that sends a byte a
second. They have the fleet's secret, so that they come as far as a peer can. Standard library only."""
import importlib.util
import itertools
import os
import socket
import threading
import time

from machine import ROOT

spec = importlib.util.spec_from_file_location("make_ec_frames", ROOT / "src" / "encoder_cache" / "testdata" / "make_ec_frames.py")
ec_frames = importlib.util.module_from_spec(spec)
spec.loader.exec_module(ec_frames)

NUM_FRAMES, BURST = 4000, 200
ZMTP_GREETING = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + b"NULL" + bytes(16) + b"\x00" + bytes(31)
READY = b"\x05READY" + b"\x0bSocket-Type\x00\x00\x00\x04PUSH" + b"\x08Identity\x00\x00\x00\x00"  # rows come by PUSH; others are closed at once
ZMTP_READY = b"\x04" + bytes([len(READY)]) + READY


def command(*words):
    """RESP."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Fields:
    """What local_codec.cc has written, field by field."""

    def __init__(self, content):
        self.content, self.at = content, 0

    def varint(self):
        value = shift = 0
        while True:
            byte, self.at = self.content[self.at], self.at + 1
            value, shift = value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    def zigzag(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def text(self):
        size = self.varint()
        self.at += size
        return self.content[self.at - size:self.at]


def fingerprint(port):
    """Of the model, from the record of the decode instance: behind version, name, incarnation, role, URL and address of rows (local_codec.cc)."""
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as answer:
        connection.sendall(command(b"GET", b"transept:default:instance:p0"))
        record = answer.read(int(answer.readline()[1:]))
    fields = Fields(record)
    fields.varint(), fields.text(), fields.varint(), fields.varint(), fields.text(), fields.text()
    model = fields.text()
    assert len(model) == 32, record
    return model


def announcements(fleet, num_positions, width):
    """Frames of the fleet's encode instance for inputs that never come: each asks for room."""
    model = fingerprint(fleet.redis.port)
    incarnation = int(fleet.redis.run("KEYS", "transept:default:frames:e0:*:0").split()[0].split(":")[-2])
    ec_frames.INCARNATION, ec_frames.MODEL = incarnation, model
    found = []
    for i in range(NUM_FRAMES):
        ec_frames.DIGEST = os.urandom(32)
        body = ec_frames.meta(ec_frames.key(f"flood-{i}", 0, 0), num_positions, width, place=(0, num_positions, 0, 0, 0))
        found.append(ec_frames.frame(ec_frames.METADATA, body, secret=fleet.secret))
    return found


class Flood(threading.Thread):
    """In `with`: puts `count` announcements into the decode instance's stream as fast as the Redis server takes them. `sent`: how many it took."""

    def __init__(self, fleet, count=10 ** 6, num_positions=1500, width=384):
        super().__init__(daemon=True)
        self.port, self.count, self.sent, self.is_over = fleet.redis.port, count, 0, threading.Event()
        stream = fleet.redis.run("KEYS", "transept:default:frames:p0:*:2").split()[0].encode()
        frames = announcements(fleet, num_positions, width)
        self.bursts = [b"".join(command(b"XADD", stream, b"*", b"frame", frame) for frame in frames[i:i + BURST]) for i in range(0, NUM_FRAMES, BURST)]

    def run(self):
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            for burst in itertools.cycle(self.bursts):
                if self.is_over.is_set() or self.sent >= self.count:
                    return
                connection.sendall(burst)
                answers = b""
                while answers.count(b"\r\n") < 2 * BURST:
                    answers += connection.recv(1 << 16)
                self.sent += BURST - answers.count(b"-OOM")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.join()


class Slow(threading.Thread):
    """In `with`: connections that send a byte a second: a chunk of 1 MiB to the place for rows, and requests to the server."""

    def __init__(self, bulk_port, http_port, count=8):
        super().__init__(daemon=True)
        self.ports, self.is_over, self.sent = [bulk_port] * count + [http_port] * count, threading.Event(), 0
        self.bulk_port = bulk_port

    def run(self):
        connections = []
        for port in self.ports:
            connection = socket.create_connection(("127.0.0.1", port))
            if port == self.bulk_port:  # the head of a frame of 1 MiB, of which a byte a second comes
                connection.sendall(ZMTP_GREETING + ZMTP_READY + b"\x02" + (1 << 20).to_bytes(8, "big"))
            connections.append((connection, itertools.cycle(b"TEPD" if port == self.bulk_port else b"POST /v1/completions HTTP/1.1\r\n")))
        while not self.is_over.is_set():
            for connection, source in connections:
                try:
                    connection.send(bytes([next(source)]))
                    self.sent += 1
                except OSError:
                    pass
            self.is_over.wait(1)
        for connection, _ in connections:
            connection.close()

    def __enter__(self):
        self.start()
        time.sleep(0.2)
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.join()
