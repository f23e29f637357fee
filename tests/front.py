"""Programs of others in front of a server: nginx and Caddy as docs/deployment.md has them, taken out of that page. Standard library only."""
import contextlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from ports import free_port

PAGE = Path(__file__).resolve().parent.parent / "docs" / "deployment.md"
NAME = "speech.example"
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


class Skip(Exception):
    """Why a test cannot run here."""


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


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}"


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextlib.contextmanager
def running(*command, port, env=None):
    """A proxy, until its port answers, and ended behind the test."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
        try:
            deadline = time.monotonic() + 20
            while not listens(port):
                assert process.poll() is None, log.seek(0) or log.read().decode()
                assert time.monotonic() < deadline, "the proxy does not listen"
                time.sleep(0.05)
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
    """The port of nginx with TLS before the server, and the certificate that clients are to trust."""
    program, openssl = need("nginx", "openssl")
    with tempfile.TemporaryDirectory() as folder:
        run(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}", "-days", "2",
            "-keyout", f"{folder}/privkey.pem", "-out", f"{folder}/fullchain.pem")
        port = free_port()
        site = changed(block("nginx"), ("127.0.0.1:8000", f"127.0.0.1:{server.port}"),
                       ("listen 443 ", f"listen 127.0.0.1:{port} "), (f"/etc/letsencrypt/live/{NAME}/", f"{folder}/"))
        (Path(folder) / "site").write_text(site, encoding="utf-8")
        settings = Path(folder) / "nginx.conf"
        settings.write_text(NGINX_AROUND.format(folder=folder), encoding="utf-8")
        run(program, "-t", "-c", str(settings), "-p", folder)
        with running(program, "-c", str(settings), "-p", folder, port=port):
            yield port, Path(folder) / "fullchain.pem"


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
