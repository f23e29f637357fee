"""An encode instance made of Python, for rows that need one to stop, or to lie, at a chosen point. It has a record of its own in Redis, takes tickets,
announces, and sends rows; it encodes nothing, and renews nothing. Standard library only."""
import contextlib
import json
import os
import re
import socket
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from epd_fleet import free_port
from epd_hostile import SECRET, WIDTH, Pusher, ec_frames
from epd_peers import Fields, command
from serving import TEXT_MODEL, wait_until

KEYS = b"transept:default:"
ALLOCATED, WAIT, INCOMPATIBLE = 0, 2, 4
RECORD_SECONDS = 6  # as long as the program's


class Resp:
    """A connection to Redis that answers in bytes."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 30)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def ask(self, *words):
        self.socket.sendall(command(*(word if isinstance(word, bytes) else str(word).encode() for word in words)))
        return self.read()

    def read(self):
        kind, rest = (line := self.file.readline())[:1], line[1:-2]
        assert kind in b"+:$*" and line.endswith(b"\r\n"), line
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if int(rest) < 0:
            return None
        return [self.read() for _ in range(int(rest))] if kind == b"*" else self.file.read(int(rest) + 2)[:-2]


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def text(content):
    return varint(len(content)) + content


@dataclass
class Ticket:
    request_id: bytes
    input_id: int
    attempt: int
    digest: bytes
    num_positions: int
    time_left: int  # us

    @property
    def key(self):
        return ec_frames.key(self.request_id, self.input_id, self.attempt)

    @property
    def num_bytes(self):
        return self.num_positions * WIDTH * 4


def ticket_of(content):
    fields = Fields(content)
    assert fields.varint() == 1, content
    request_id, input_id, attempt, digest, _ = fields.text(), fields.varint(), fields.varint(), fields.text(), fields.text()
    num_positions, _, time_left = fields.zigzag(), fields.varint(), fields.varint()
    return Ticket(request_id, input_id, attempt, digest, num_positions, time_left)


@dataclass
class Allocation:
    key: bytes
    verdict: int
    reservation: int
    port: int


def allocation_of(frame):
    body = frame[48:]
    at = 2 + int.from_bytes(body[:2], "little") + 8
    verdict, reservation, size = struct.unpack_from("<BQH", body, at)
    address = body[at + 11:at + 11 + size].decode()
    return Allocation(body[:at], verdict, reservation, int(address.rsplit(":", 1)[1]) if address else 0)


def rows_of(binary, request):
    """The encoder's, of the text model, as one process has them."""
    prompt = json.loads(request.data.split(b"\r\n\r\n", 1)[1])["prompt"]
    with tempfile.TemporaryDirectory(prefix="epd") as folder:
        path = Path(folder) / "rows.npy"
        subprocess.run([str(binary), "dump", "encoder", str(TEXT_MODEL), prompt, "--output", str(path), "--threads", "1"], check=True, capture_output=True,
                       stdin=subprocess.DEVNULL, timeout=60)
        content = path.read_bytes()
    head = 10 + int.from_bytes(content[8:10], "little")
    assert re.search(rb"'<f4', 'fortran_order': False, 'shape': \(\d+, %d\)" % WIDTH, content[:head]), content[:head]
    return content[head:]


class FakeEncoder:
    """In `with`: of a HostileFleet, whose secret it has. `is_other`: its record has another fingerprint, as one of another version. When it vanishes its
    connections close, and whatever it has in Redis runs out."""

    NAME = b"fake"

    def __init__(self, fleet, is_other=False, seconds=RECORD_SECONDS, version=1):
        self.fleet, self.is_other, self.seconds, self.version = fleet, is_other, seconds, version
        self.incarnation, self.pushers, self.seen = int.from_bytes(os.urandom(8), "little") | 1, [], b"0"

    def __enter__(self):
        self.redis = Resp(self.fleet.redis.port)
        (self.queue,) = self.redis.ask("KEYS", KEYS + b"encode:*")
        self.receiver = self.fleet.stream("p0", 2)
        self.make_record()
        self.register()
        return self

    def __exit__(self, *_):
        self.vanish()

    def vanish(self):
        with contextlib.ExitStack() as all_of_them:
            all_of_them.callback(self.redis.close)
            for pusher in self.pushers:
                all_of_them.push(pusher)
        self.pushers = []

    def make_record(self):
        """As that of e0, of another process."""
        fields = Fields(self.redis.ask("GET", KEYS + b"instance:e0"))
        assert (fields.varint(), fields.text()) == (1, b"e0")
        fields.varint(), fields.varint(), fields.text()  # incarnation, role, URL
        bulk_address, self.model = fields.text(), fields.text()
        if self.is_other:
            self.model = os.urandom(32)
        url = b"http://127.0.0.1:%d" % free_port()
        self.record = b"".join((varint(1), text(self.NAME), varint(self.incarnation), varint(0), text(url), text(bulk_address), text(self.model),
                                fields.content[fields.at:]))

    def register(self):
        """It is known for as long as a record lives, from now on."""
        self.redis.ask("SET", KEYS + b"owner:" + self.NAME, self.incarnation, "PX", 1000 * self.seconds)
        self.redis.ask("SADD", KEYS + b"instances", self.NAME)
        self.redis.ask("SET", KEYS + b"instance:" + self.NAME, self.record, "PX", 1000 * self.seconds)

    def stream(self, channel):
        return KEYS + b"frames:%s:%d:%d" % (self.NAME, self.incarnation, channel)

    # ---- What an encode instance does

    def take(self):
        """The next ticket, as it was offered first."""
        given = self.redis.ask("XREADGROUP", "GROUP", "encode", self.NAME + b":%d" % self.incarnation, "COUNT", 1, "BLOCK", 10000, "STREAMS", self.queue, ">")
        assert given is not None, "no ticket: another instance has it"
        ((_, ((_, fields),)),) = given
        return ticket_of(dict(zip(fields[::2], fields[1::2]))[b"ticket"])

    def frame(self, channel, body, **more):
        ec_frames.INCARNATION = self.incarnation
        return ec_frames.frame(channel, body, **{"secret": SECRET, "version": self.version, **more})

    def announce(self, ticket):
        ec_frames.MODEL, ec_frames.DIGEST = self.model, ticket.digest
        body = ec_frames.meta(ticket.key, ticket.num_positions, WIDTH, place=(0, ticket.num_positions, 0, 0, 0), time_left=ticket.time_left)
        self.redis.ask("XADD", self.receiver, "*", "frame", self.frame(ec_frames.METADATA, body))

    def next_allocation(self, seconds=10):
        """The next answer; None: none came."""
        given = self.redis.ask("XREAD", "COUNT", 1, "BLOCK", round(1000 * seconds), "STREAMS", self.stream(ec_frames.ALLOCATION), self.seen)
        if given is None:
            return None
        ((_, ((self.seen, (_, frame)),)),) = given
        return allocation_of(frame)

    def reserve(self, ticket):
        """Announces, again while nothing comes (who has just registered may not be known yet), and has room."""
        for _ in range(20):
            self.announce(ticket)
            while (answer := self.next_allocation(0.5)) is not None:
                if answer.key == ticket.key and answer.verdict != WAIT:  # others are of an announcement that came twice
                    assert answer.verdict == ALLOCATED, answer
                    return answer
        raise AssertionError("no answer to an announcement")

    def chunk(self, key, reservation, rows, end, **more):
        head = ec_frames.chunk_head(end, 0, len(rows), reservation, name=key)
        return self.frame(ec_frames.CACHE, head, chunk=rows[:end], **more)

    def send(self, ticket, allocation, rows, end):
        """The first `end` bytes of the rows. They have been taken: a chunk that comes behind them, of no reservation, was refused."""
        before = self.fleet.refused()["unreserved"]
        self.pushers.append(Pusher(allocation.port))
        self.pushers[-1].send(self.chunk(ticket.key, allocation.reservation, rows, end))
        self.pushers[-1].send(self.chunk(ticket.key, allocation.reservation ^ 1, rows, end))
        assert wait_until(lambda: self.fleet.refused()["unreserved"] > before, 20, 0.01) is not None, "the rows do not arrive"

    def num_told(self):
        """Injection messages that lie there, unread."""
        return self.redis.ask("XLEN", self.stream(ec_frames.INJECTION))
