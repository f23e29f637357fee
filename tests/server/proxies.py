"""nginx and Caddy as docs/deployment.md has them, taken out of that page, before the real server: the configuration is
read by the real programs, and requests go through them. Needs nginx, caddy and openssl."""
import contextlib
import http.client
import json
import re
import socket
import ssl
import threading
import time

import live_wire
import sound
import wire
from front import NAME, caddy, nginx
from serving import SPEECH_MODEL, TEXT_MODEL

MEBIBYTE = 1 << 20


class Client:
    """By the proxy's name, over TLS where it has that."""

    def __init__(self, port, tls):
        self.port, self.tls = port, tls

    def send(self, method, path, body=None, headers=(), timeout=60):
        """The open answer of http.client."""
        connection = http.client.HTTPConnection(NAME, self.port, timeout=timeout)
        connection.sock = socket.create_connection(("127.0.0.1", self.port), timeout)
        if self.tls:
            connection.sock = ssl._create_unverified_context().wrap_socket(connection.sock, server_hostname=NAME)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # answered before the body was taken
            connection.request(method, path, body, {"Host": NAME, **dict(headers)})
        return connection.getresponse()

    def ask(self, *arguments, **options):
        answer = self.send(*arguments, **options)
        return answer.status, answer.read()


def upload(num_bytes):
    """The body of a form with audio of so many bytes, and its headers."""
    wav = sound.tones(1)
    request = wire.form("/v1/audio/transcriptions", [("language", "en")], wav + b"\0" * (num_bytes - len(wav)))
    head, _, body = request.partition(b"\r\n\r\n")
    kind = re.search(rb"Content-Type: (\S+ \S+)\r\n", head + b"\r\n")[1].decode()
    return body, [("Content-Type", kind)]


def goes_through(setup, proxy, tls):
    """What the page promises of a proxy: a Host that the server knows, uploads up to the server's own limit, the server's
    own refusals, and nothing of its inside."""
    asked = ("/v1/completions", json.dumps({"prompt": "hello"}), [("Content-Type", "application/json")])
    with setup.serve(TEXT_MODEL, "--allowed-host", NAME) as server, proxy(server) as port:
        client = Client(port, tls)
        status, body = client.ask("POST", *asked)
        assert status == 200 and json.loads(body)["choices"] == server.complete("hello").json()["choices"], body
        for inside in ("/metrics", "/debug/state"):
            assert client.ask("GET", inside)[0] in (403, 404), f"{inside} is open to everybody"
        large = json.dumps({"prompt": "x" * (9 * MEBIBYTE)})
        status, body = client.ask("POST", "/v1/completions", large, [("Content-Type", "application/json")])
        assert status == 413 and b"at most 8388608 are taken" in body, (status, body[:300])
    with setup.serve(SPEECH_MODEL, "--allowed-host", NAME) as server, proxy(server) as port:
        client = Client(port, tls)
        body, headers = upload(25 * MEBIBYTE)
        status, answer = client.ask("POST", "/v1/audio/transcriptions", body, headers)
        assert status == 200, f"an upload that the server takes: {status} {answer[:300]}"
        body, headers = upload(27 * MEBIBYTE)
        assert client.ask("POST", "/v1/audio/transcriptions", body, headers)[0] == 413


class SlowStream:
    """A server of one request, whose answer is one event after another with pauses between."""
    EVENTS, PAUSE = 4, 0.4

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def serve(self):
        while True:  # whoever only looks whether somebody listens goes without a word
            with contextlib.suppress(OSError), self.listener.accept()[0] as connection:
                if connection.recv(65536):
                    self.answer(connection)
                    return

    def answer(self, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for i in range(self.EVENTS):
            time.sleep(self.PAUSE if i else 0)
            connection.sendall(b"%x\r\ndata: %d\n\n\r\n" % (9, i))
        connection.sendall(b"0\r\n\r\n")


def events_come_one_by_one(setup, proxy, tls):
    with SlowStream() as server, proxy(server) as port:
        answer = Client(port, tls).send("GET", "/v1/events")
        times = []
        while line := answer.readline():
            times += [time.monotonic()] if line.startswith(b"data:") else []
        assert len(times) == server.EVENTS, f"{len(times)} events"
        spread = times[-1] - times[0]
        setup.say(f"{len(times)} events, the first {spread:.2f} s before the last")
        assert spread > 0.8 * server.PAUSE * (server.EVENTS - 1), "events come together: the proxy collects them"


def live_audio_goes_through(setup, proxy, tls):
    """A session of /v1/realtime, which the proxy upgrades: its transcript is the file's."""
    rate, frames, file = live_wire.clip(4)
    with setup.serve(SPEECH_MODEL, "--allowed-host", NAME) as server, proxy(server) as port:
        wanted = wire.ask(server.port, wire.form("/v1/audio/transcriptions", [("language", "en")], file), timeout=120).json()["text"].strip()
        with live_wire.Session(port, headers=[("Host", NAME)], tls_name=NAME if tls else None) as session:
            assert session.created["type"] == "session.created", session.created
            session.configure(rate)
            assert wanted and session.transcribe(frames) == wanted
            session.close()
            assert session.receive() == 1000


@contextlib.contextmanager
def port_of_nginx(server):
    with nginx(server) as (port, _):
        yield port


def nginx_before_the_server(setup):
    goes_through(setup, port_of_nginx, tls=True)
    events_come_one_by_one(setup, port_of_nginx, tls=True)
    live_audio_goes_through(setup, port_of_nginx, tls=True)


def caddy_before_the_server(setup):
    goes_through(setup, caddy, tls=False)
    events_come_one_by_one(setup, caddy, tls=False)
    live_audio_goes_through(setup, caddy, tls=False)


CASES = (nginx_before_the_server, caddy_before_the_server)
