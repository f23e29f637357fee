"""Clients of a server for bench/epd.py: streams in a closed loop on one thread, which keeps when bytes came and reads them afterwards, so that it takes
little of the processors that are measured. Standard library only."""
import selectors
import socket
import time
from dataclasses import dataclass, field

from epd_fleets import wire

DEADLINE = 60  # s without a byte


@dataclass
class Stream:
    """A request whose answer comes as events."""
    sent: float
    pieces: list = field(default_factory=list)  # (time, bytes)
    times: list = field(default_factory=list)   # of the pieces with text
    are_steps: list = field(default_factory=list)  # of the same: whether one token brought it; others end a text that several tokens spell
    num_tokens: int = 0

    def read(self):
        """Fills times and num_tokens; an answer that is no whole stream is an error."""
        whole = b"".join(piece for _, piece in self.pieces)
        if not whole.startswith(b"HTTP/1.1 200") or b"data: [DONE]" not in whole:
            raise RuntimeError(f"no whole stream: {whole[:200]!r} .. {whole[-200:]!r}")
        texts = [(at, piece) for at, piece in self.pieces if b'"text": "' in piece and piece.count(b'"text": ""') < piece.count(b'"text": "')]
        self.times, self.are_steps = [at for at, _ in texts], [num_tokens(piece) <= 1 for _, piece in texts]
        usage = whole.rfind(b'"completion_tokens": ')
        self.num_tokens = int(whole[usage + 21:usage + 31].split(b",")[0])
        self.pieces = []
        return self


def num_tokens(piece):
    """Of its first event, by its log-probabilities; 0: it has none."""
    at = piece.find(b'"token_logprobs": [')
    listed = piece[at + 19:piece.find(b"]", at)] if at >= 0 else b""
    return len(listed.split(b",")) if listed else 0


class Clients:
    """`count` clients, each on a connection of its own, each of which asks again when it is answered."""

    def __init__(self, port, count, next_request):
        self.selector, self.next_request, self.done, self.open = selectors.DefaultSelector(), next_request, [], []
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.open.append(connection)

    def send(self, connection):
        data = self.next_request()
        stream = Stream(time.monotonic())
        connection.sendall(data)
        self.selector.register(connection, selectors.EVENT_READ, stream)

    def run(self, seconds, when_all_have_begun=None):
        """Asks for so long, then waits for what is in flight. [Stream], read. The function is called once, when every client has had text."""
        begun = set()
        for connection in self.open:
            self.send(connection)
        end, last = time.monotonic() + seconds, time.monotonic()
        while self.selector.get_map():
            for key, _ in self.selector.select(1):
                last = time.monotonic()
                piece = key.fileobj.recv(1 << 16)
                key.data.pieces.append((last, piece))
                if when_all_have_begun and b'"text": "' in piece:
                    begun.add(key.fd)
                    if len(begun) == len(self.open):
                        when_all_have_begun()
                        when_all_have_begun = None
                if piece.endswith(b"0\r\n\r\n") or not piece:
                    self.selector.unregister(key.fileobj)
                    self.done.append(key.data)
                    if piece and last < end:
                        self.send(key.fileobj)
            if time.monotonic() - last > DEADLINE:
                raise RuntimeError(f"nothing within {DEADLINE} s")
        for connection in self.open:
            connection.close()
        return [stream.read() for stream in self.done]


def closed_loop(port, count, next_request, seconds):
    return Clients(port, count, next_request).run(seconds)


def timed(port, data, **options):
    """Seconds of one whole answer, with its connection."""
    begin = time.monotonic()
    answer = wire.ask(port, data, **options)
    seconds = time.monotonic() - begin
    if answer.status != 200:
        raise RuntimeError(f"status {answer.status}: {answer.body[:300]!r}")
    return seconds


def stream_body(prompt, max_tokens, **more):
    """Its log-probabilities say how many tokens a piece is of."""
    return wire.post("/v1/completions", {"prompt": prompt, "max_tokens": max_tokens, "ignore_eos": True, "stream": True, "logprobs": 0,
                                         "stream_options": {"include_usage": True}, **more})


def metrics(port):
    """{name: sum over its series}"""
    found = {}
    for line in wire.ask(port, wire.get("/metrics")).body.decode().splitlines():
        if line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            name = name.split("{")[0].removeprefix("transept:")
            found[name] = found.get(name, 0.0) + float(value)
    return found
