"""nginx and Caddy as docs/deployment.md has them, taken out of that page, before the real server: the configuration is
read by the real programs, and requests go through them. Needs nginx, caddy and openssl."""
import contextlib
import http.client
import json
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import serving
import sound
import wire
from harness import Skip
from serving import SPEECH_MODEL, TEXT_MODEL, wait_until

PAGE = serving.ROOT / "docs" / "deployment.md"
NAME = "speech.example"
MEBIBYTE = 1 << 20
# The rest of an nginx.conf, with everything that it writes in the folder, and without becoming a daemon.
NGINX_AROUND = """daemon off;
pid {folder}/pid;
error_log {folder}/errors;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site;
}}
"""


def block(section):
    """The first block of a section of the page."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    found = re.search(r"^```\w+\n(.*?)^```$", text, re.M | re.S)
    assert found, f"{PAGE}: no block under {section}"
    return found[1]


def changed(text, *pairs):
    """What a test has to change of the page's text: each must be there."""
    for before, after in pairs:
        assert before in text, f"{PAGE}: no {before!r}"
        text = text.replace(before, after)
    return text


def need(*programs):
    paths = [shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin") for name in programs]
    missing = [name for name, path in zip(programs, paths) if path is None]
    if missing:
        raise Skip(f"needs {', '.join(missing)}")
    return paths


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}"


@contextlib.contextmanager
def running(*command, port, env=None):
    """A proxy, until its port answers, and ended behind the test."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
        try:
            def is_up():
                assert process.poll() is None, log.seek(0) or log.read().decode()
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    return True
                return False

            assert wait_until(is_up, 20, 0.05) is not None, "the proxy does not listen"
            yield
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def nginx(server):
    """The port of nginx before the server."""
    program, openssl = need("nginx", "openssl")
    with tempfile.TemporaryDirectory() as folder:
        run(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={NAME}", "-days", "2",
            "-keyout", f"{folder}/privkey.pem", "-out", f"{folder}/fullchain.pem")
        port = free_port()
        site = changed(block("nginx"), ("127.0.0.1:8000", f"127.0.0.1:{server.port}"),
                       ("listen 443 ", f"listen 127.0.0.1:{port} "), (f"/etc/letsencrypt/live/{NAME}/", f"{folder}/"))
        (Path(folder) / "site").write_text(site, encoding="utf-8")
        settings = Path(folder) / "nginx.conf"
        settings.write_text(NGINX_AROUND.format(folder=folder), encoding="utf-8")
        run(program, "-t", "-c", str(settings), "-p", folder)
        with running(program, "-c", str(settings), "-p", folder, port=port):
            yield port


@contextlib.contextmanager
def caddy(server):
    """The port of Caddy before the server, without TLS: nobody gives a test a certificate."""
    (program,) = need("caddy")
    with tempfile.TemporaryDirectory() as folder:
        text, port = block("Caddy"), free_port()
        settings = Path(folder) / "Caddyfile"
        settings.write_text(text, encoding="utf-8")
        run(program, "adapt", "--config", str(settings), "--validate")
        text = changed(text, (f"{NAME} {{", f"http://{NAME}:{port} {{"), ("127.0.0.1:8000", f"127.0.0.1:{server.port}"))
        settings.write_text("{\n    admin off\n    auto_https off\n}\n" + text, encoding="utf-8")
        home = {"HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder}
        with running(program, "run", "--config", str(settings), port=port, env=home):
            yield port


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


def nginx_before_the_server(setup):
    goes_through(setup, nginx, tls=True)
    events_come_one_by_one(setup, nginx, tls=True)


def caddy_before_the_server(setup):
    goes_through(setup, caddy, tls=False)
    events_come_one_by_one(setup, caddy, tls=False)


CASES = (nginx_before_the_server, caddy_before_the_server)
