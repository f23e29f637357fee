"""Rows of peers that are hostile, or broken: what they put into a decode instance's streams in Redis and send to the port where it takes rows is
refused and counted by its reason, its memory stays as it was, and requests that run meanwhile are answered as ever."""
import contextlib
import os
import re
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

from epd_fleet import metric_of
from epd_load import LATE, REFUSED
from epd_redis import FLAGS
from epd_redis_fleet import RedisFleet
from epd_rows import answers_go_on
from serving import ROOT, TEXT_MODEL, wait_until

sys.path.append(str(ROOT / "bench"))

from epd_peers import ZMTP_GREETING, ZMTP_READY, Flood, Slow, command, ec_frames, fingerprint  # noqa: E402

MORE_RESIDENT = 64 << 20
SECRET = b"a secret of hostile peers"
POSITIONS, WIDTH = 40, 160  # of the text model
TIMES = 500


class HostileFleet(RedisFleet):
    """Of one encode and one decode instance that have a secret. What is on its way is checked by it, whoever can write to Redis."""

    def __init__(self, setup, *flags):
        self.secret, self.secret_file = SECRET, Path(tempfile.mkdtemp(prefix="epd")) / "secret"
        self.secret_file.touch(0o600)
        self.secret_file.write_bytes(SECRET)
        super().__init__(setup.binary, TEXT_MODEL, "1E1D", *FLAGS, "--ec-secret-file", self.secret_file, *flags)

    def __exit__(self, *error):
        self.secret_file.unlink()
        self.secret_file.parent.rmdir()
        super().__exit__(*error)

    def stream(self, name, channel):
        return self.redis.run("KEYS", f"transept:default:frames:{name}:*:{channel}").split()[0].encode()

    def incarnation(self, name):
        return int(self.stream(name, 0 if name[0] == "e" else 2).split(b":")[-2])

    def bulk_port(self):
        """Where the decode instance takes rows, by its record."""
        return int(re.search(r"tcp://127\.0\.0\.1:(\d+)", self.redis.run("--raw", "GET", "transept:default:instance:p0"))[1])

    def refused(self, name="p0"):
        """reason -> frames that were refused by it"""
        port = self.servers[name].port
        return {reason: metric_of(port, "ec_frames_refused_total", reason=reason)
                for reason in ("cut", "magic", "version", "channel", "size", "checksum", "code", "field", "unknown_sender", "unreserved")}

    def as_encoder(self):
        """Frames are made as those of e0, which the decode instance knows."""
        ec_frames.INCARNATION = self.incarnation("e0")
        ec_frames.MODEL = fingerprint(self.redis.port)


def put(fleet, stream, frames):
    """As fast as the Redis server takes them."""
    with socket.create_connection(("127.0.0.1", fleet.redis.port)) as connection:
        for i in range(0, len(frames), 100):
            burst = frames[i:i + 100]
            connection.sendall(b"".join(command(b"XADD", stream, b"*", b"frame", frame) for frame in burst))
            answers = b""
            while answers.count(b"\r\n") < 2 * len(burst):
                answers += connection.recv(1 << 16)
            assert b"-" not in re.sub(rb"\d+-\d+", b"", answers), answers[:200]


def announcement(i=0, **more):
    return ec_frames.frame(ec_frames.METADATA, ec_frames.meta(ec_frames.key(f"hostile-{i}", 0, 0), POSITIONS, WIDTH, place=(0, POSITIONS, 0, 0, 0)),
                           **{"secret": SECRET, **more})


def bad_announcements(rng):
    """reason -> frames that have to be refused by it"""
    good = [announcement(i) for i in range(TIMES)]
    body = ec_frames.meta(ec_frames.key("hostile", 0, 0), 0, WIDTH, place=(0, 0, 0, 0, 0))
    return {
        "code": [frame[:40] + bytes([frame[40] ^ 1]) + frame[41:] for frame in good] + [announcement(i, secret=None) for i in range(TIMES)] +
                [announcement(i, secret=b"another secret of peers") for i in range(TIMES)],
        "cut": [frame[:rng.randrange(1, len(frame))] for frame in good],
        "size": [announcement(i, size=rng.choice((65537, 1 << 20, 1 << 31, (1 << 32) - 1))) for i in range(TIMES)],
        "magic": [b"HTTP" + frame[4:] for frame in good],
        "version": [announcement(i, version=rng.choice((0, 2, 258))) for i in range(TIMES)],
        "channel": [ec_frames.frame(rng.choice((4, 77, 255)), ec_frames.key(), secret=SECRET) for _ in range(TIMES)],
        "checksum": [announcement(i, crc=rng.randrange(1 << 20)) for i in range(TIMES)],
        "field": [ec_frames.frame(ec_frames.METADATA, body, secret=SECRET) for _ in range(TIMES)],
    }


@contextlib.contextmanager
def attacked(setup, fleet, allowed=()):
    """A load whose answers are right while the block attacks; what instances hold is not more than MORE_RESIDENT afterwards, and all still run."""
    setup.warm(fleet)
    fleet.as_encoder()
    before = fleet.held()
    most = dict.fromkeys(before, 0)

    def look():
        for name, (memory, _) in fleet.held().items():
            most[name] = max(most[name], memory)

    with setup.load(fleet) as load:
        answers_go_on(load)
        yield look
        answers_go_on(load, 20)
        look()
    assert metric_of(fleet.servers["p0"].port, "ec_transfers_total", verdict="incompatible") == 0, "what was announced is of another model"
    setup.say("more MiB at most: " + ", ".join(f"{name} {(most[name] - memory) / 2**20:.0f}" for name, (memory, _) in before.items()))
    setup.check(load.replies, allowed=allowed)
    grown = {name: most[name] - memory for name, (memory, _) in before.items() if most[name] - memory > MORE_RESIDENT}
    assert not grown or setup.sanitizer != "none", f"grown by {grown}"
    setup.becomes_free(fleet, 60)  # what was announced with the secret is given up with its lease
    setup.works(fleet)
    assert all(server.process.poll() is None for server in fleet.servers.values()), f"an instance ended:\n{fleet.words()}"
    setup.stops_clean(fleet)


def becomes(fleet, name, wanted, look):
    """Frames were refused as often as wanted, by each reason."""
    def is_so():
        look()
        now = fleet.refused(name)
        return all(now[reason] >= count for reason, count in wanted.items())

    wait_until(is_so, 30, 0.1)
    assert fleet.refused(name) == wanted, f"{name} refused {fleet.refused(name)}, not {wanted}"


def frames_that_are_forged_cut_and_huge(setup):
    """In the streams of both instances: each is refused, by its own reason."""
    with HostileFleet(setup) as fleet, attacked(setup, fleet) as look:
        wanted, bad = fleet.refused(), bad_announcements(setup.rng)
        frames = [(reason, frame) for reason, some in bad.items() for frame in some]
        setup.rng.shuffle(frames)
        put(fleet, fleet.stream("p0", 2), [frame for _, frame in frames])
        becomes(fleet, "p0", {**wanted, **{reason: wanted[reason] + len(some) for reason, some in bad.items()}}, look)
        wanted = fleet.refused("e0")
        for channel, body in ((0, ec_frames.allocation(0, 1, "tcp://127.0.0.1:1")), (1, ec_frames.key() + b"\0")):
            put(fleet, fleet.stream("e0", channel), [ec_frames.frame(channel, body, code=os.urandom(16)) for _ in range(TIMES)])
        becomes(fleet, "e0", {**wanted, "code": wanted["code"] + 2 * TIMES}, look)
        setup.say(f"{len(frames) + 2 * TIMES} frames were refused")


def frames_of_a_sender_without_a_record(setup):
    """They have the secret, and nobody knows the sender: a process that has gone, or frames from before."""
    with HostileFleet(setup) as fleet, attacked(setup, fleet) as look:
        wanted = fleet.refused()
        ec_frames.INCARNATION ^= 1
        put(fleet, fleet.stream("p0", 2), [announcement(i) for i in range(TIMES)])
        becomes(fleet, "p0", {**wanted, "unknown_sender": wanted["unknown_sender"] + TIMES}, look)


def garbage_larger_than_any_frame(setup):
    """Read and gone, without having been kept. An instance reads 64 entries at once, and Redis bounds what one may have (decision 39)."""
    with HostileFleet(setup) as fleet, attacked(setup, fleet) as look:
        stream, wanted = fleet.stream("p0", 2), fleet.refused()
        for _ in range(128):
            put(fleet, stream, [os.urandom(256 << 10) for _ in range(8)])
            look()
        took = wait_until(lambda: int(fleet.redis.run("XLEN", stream.decode())) == 0, 30, 0.1)
        setup.within("the stream is empty after", took, 10)
        becomes(fleet, "p0", {**wanted, "size": wanted["size"] + 1024}, look)


def garbage_that_was_there_all_at_once(setup):
    """256 MiB of it, put there while the decode instance stands still. Once it runs on it gets rid of that, and answers."""
    with HostileFleet(setup) as fleet, attacked(setup, fleet) as look:
        stream, wanted = fleet.stream("p0", 2), fleet.refused()
        fleet.send("p0", signal.SIGSTOP)
        try:
            put(fleet, stream, [os.urandom(4 << 20)] * 64)
        finally:
            fleet.send("p0", signal.SIGCONT)
        took = wait_until(lambda: look() or int(fleet.redis.run("XLEN", stream.decode())) == 0, 20, 0.1)
        assert took is not None, f"{fleet.redis.run('XLEN', stream.decode()).strip()} entries are still there"
        becomes(fleet, "p0", {**wanted, "size": wanted["size"] + 64}, look)


def replayed_announcements(setup):
    """Each of 100 comes a hundred times: there is one transfer of each, which ends with its lease."""
    with HostileFleet(setup, "--ec-lease", 5) as fleet, attacked(setup, fleet, (REFUSED,)) as look:
        before = metric_of(fleet.servers["p0"].port, "ec_expired_total")
        put(fleet, fleet.stream("p0", 2), [announcement(i) for i in range(100)] * 100)
        took = wait_until(lambda: look() or metric_of(fleet.servers["p0"].port, "ec_expired_total") > before, 30, 0.2)
        assert took is not None, "no transfer expired"
        time.sleep(3)
        assert metric_of(fleet.servers["p0"].port, "ec_expired_total") - before <= 100, "more than one transfer of an announcement"


def a_flood_of_announcements(setup):
    """10^5 of a peer with the secret, each of which asks for room: the queue is bounded, and what is promised is given up."""
    count = 100_000
    with HostileFleet(setup, "--ec-lease", 5) as fleet, attacked(setup, fleet, (REFUSED, LATE)) as look, \
            Flood(fleet, count, POSITIONS, WIDTH) as flood:
        begin = time.monotonic()
        took = wait_until(lambda: look() or flood.sent >= count, 120, 0.2)
        stream, port = fleet.stream("p0", 2).decode(), fleet.servers["p0"].port
        read = wait_until(lambda: look() or int(fleet.redis.run("XLEN", stream)) == 0, 120, 0.2)
        assert took is not None and read is not None, f"{flood.sent} were sent; {fleet.redis.run('XLEN', stream)} are not read"
        refused = metric_of(port, "ec_transfers_total", verdict="busy") + metric_of(port, "ec_frames_refused_total", reason="inbox_full")
        setup.say(f"{flood.sent} were sent, and all were read after {time.monotonic() - begin:.1f} s; {refused:.0f} were told that too many wait")
        assert refused > 0, "nothing was refused"


# ---- Where rows are taken

class Pusher:
    """A peer that speaks ZMTP to the decode instance's place for rows. In `with`."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.socket.sendall(ZMTP_GREETING + ZMTP_READY)
        with self.socket.makefile("rb") as answers:
            assert len(answers.read(len(ZMTP_GREETING))) == len(ZMTP_GREETING), "no greeting"
            size = answers.read(2)[1]
            assert len(answers.read(size)) == size, "not ready"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, frame):
        self.socket.sendall(b"\x02" + len(frame).to_bytes(8, "big") + frame)

    def announces(self, size):
        """A message so long, of which some bytes come. Whether it was closed."""
        with contextlib.suppress(ConnectionError):
            self.socket.sendall(b"\x02" + size.to_bytes(8, "big") + bytes(1000))
            try:
                return self.socket.recv(1) == b""
            except TimeoutError:
                return False
        return True


def rows_of_strangers(setup):
    """Chunks without a reservation, or of somebody else's; forged, cut and huge ones; and a byte a second."""
    with HostileFleet(setup) as fleet, attacked(setup, fleet) as look:
        port, wanted, rows = fleet.bulk_port(), fleet.refused(), os.urandom(4096)

        def chunk(**more):
            head = ec_frames.chunk_head(len(rows), 0, len(rows), setup.rng.randrange(1, 1 << 64))
            return ec_frames.frame(ec_frames.CACHE, head, **{"secret": SECRET, "chunk": rows, **more})

        bad = {
            "unreserved": [chunk() for _ in range(TIMES)],
            "code": [chunk(secret=None) for _ in range(TIMES)] + [chunk(secret=b"another secret of peers") for _ in range(TIMES)],
            "cut": [frame[:setup.rng.randrange(1, len(frame))] for frame in (chunk() for _ in range(TIMES))],
            "size": [chunk(size=(1 << 32) - 1) for _ in range(TIMES)],
            "checksum": [chunk()[:-1] + b"?" if rows[-1:] != b"?" else chunk()[:-1] + b"!" for _ in range(TIMES)],
        }
        with Pusher(port) as peer:
            for some in bad.values():
                for frame in some:
                    peer.send(frame)
            becomes(fleet, "p0", {**wanted, **{reason: wanted[reason] + len(some) for reason, some in bad.items()}}, look)
        for size in (2 << 20, 1 << 32, 1 << 62, (1 << 64) - 1):
            with Pusher(port) as peer:
                assert peer.announces(size), f"a message of {size} bytes is waited for"
        with Slow(port, fleet.servers["p0"].port):
            for _ in range(20):
                time.sleep(0.2)
                look()


SLOW = [frames_that_are_forged_cut_and_huge, frames_of_a_sender_without_a_record, garbage_larger_than_any_frame,
        garbage_that_was_there_all_at_once, replayed_announcements, a_flood_of_announcements, rows_of_strangers]
