"""examples/epd as they are written: the launcher script, and the client beside what it started. Needs bash, redis-server, and for the client openai."""
import base64
import contextlib
import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from epd_fleet import free_port, is_alive

import front
import harness
import serving
import sound
import wire
from serving import SPEECH_MODEL, TEXT_MODEL, metric_of, wait_until

EPD = serving.ROOT / "examples" / "epd"
LAUNCH, CLIENT = EPD / "launch_epd_serve.sh", EPD / "parallel_separated_encoder_request.py"
IMAGE_MODEL = serving.ROOT / "tests" / "models" / "trocr-float16"
PORTS = {"PORT_REDIS": 19533, "PORT_ENCODE": 19534, "PORT_PREFILL_DECODE": 19535, "PORT_PROXY": 19536}


def is_free(port):
    with contextlib.suppress(OSError), socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that have ended do not count
        one.bind(("127.0.0.1", port))
        return True
    return False


def ports_for_test():
    """The script's own where they are free, so that commands run as they are printed."""
    return PORTS if all(map(is_free, PORTS.values())) else {name: free_port() for name in PORTS}


class Launched:
    """The script, in `with` until it is ready, and ended by SIGTERM (or `number`)."""

    def __init__(self, setup, model, ports, **variables):
        front.need("bash", "redis-server", "setsid")
        self.folder, self.ports = tempfile.TemporaryDirectory(), ports
        self.log = open(Path(self.folder.name) / "log", "w+b")
        variables = {"TRANSEPT": str(setup.binary), "TMPDIR": self.folder.name, **{name: str(port) for name, port in ports.items()}, **variables}
        self.process = subprocess.Popen(["bash", str(LAUNCH), str(model)], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        env={**os.environ, **variables}, start_new_session=True)

    def text(self):
        return Path(self.log.name).read_text(errors="replace")

    def __enter__(self):
        def is_ready():
            assert self.process.poll() is None, self.text()
            return "ready: " in self.text()

        assert wait_until(is_ready, serving.START_SECONDS, 0.05) is not None, self.text()
        self.children = children(self.process.pid)
        return self

    def end(self, number=signal.SIGTERM):
        """The exit code; nothing of it is left."""
        os.kill(self.process.pid, number)
        code = self.process.wait(60)
        assert not any(map(is_alive, self.children)), "processes are left"
        assert all(map(is_free, self.ports.values())), "ports are taken"
        left = [path.name for path in Path(self.folder.name).iterdir() if path.name != "log"]
        assert not left, f"left behind: {left}"
        return code

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGTERM)
            self.process.wait(60)
        self.log.close()
        self.folder.cleanup()


def children(parent):
    """Processes whose parent it is, but for those that wait a moment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == parent and (entry / "comm").read_text() != "sleep\n":
                found.append(int(entry.name))
    return found


def client(ports, model, *words):
    """(exit code, output, errors) of the client script."""
    if importlib.util.find_spec("openai") is None:
        raise harness.Skip("needs openai (tests/deploy/requirements.txt)")
    command = [sys.executable, str(CLIENT), "--port_encode", str(ports["PORT_ENCODE"]), "--port_prefill_decode", str(ports["PORT_PREFILL_DECODE"]),
               "--model_path", str(model), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    return done.returncode, done.stdout, done.stderr


def refused(outcome, words):
    code, out, errors = outcome
    assert code != 0 and words in errors + out and "Traceback" not in errors, outcome


def the_script_and_the_client_of_text(setup):
    ports = ports_for_test()
    with Launched(setup, TEXT_MODEL, ports) as launched, setup.serve() as one_process:
        assert len(launched.children) == 4, launched.children
        code, out, errors = client(ports, TEXT_MODEL, "--text", "transformer", "--num_requests", 32)
        assert code == 0 and out.endswith("s\n") and "32 of 32 answered" in out, (out, errors)
        wanted = one_process.complete("transformer").json()["choices"][0]["text"]
        texts = re.findall(r"^request \d+: '(.*)' in ", out, re.M)
        assert texts == [wanted] * 32, texts
        assert metric_of(ports["PORT_PREFILL_DECODE"], "encoder_tokens_total") == 0 < metric_of(ports["PORT_ENCODE"], "encoder_tokens_total")
        answer = wire.ask(ports["PORT_PROXY"], wire.post("/v1/completions", {"prompt": "transformer"})).json()
        assert answer["choices"][0]["text"] == wanted, answer
        refused(client(ports, TEXT_MODEL, "--image_path", serving.ROOT / "docs" / "img" / "page.png"), "serve g2p, a model that takes no images")
        refused(client(ports, TEXT_MODEL, "--audio_path", "a.wav"), "takes no audio; it takes text: --text")
        refused(client(ports, "other"), "the decode instance serves g2p")
        refused(client(ports, TEXT_MODEL, "--consumer", "another"), "no decode instance another is known")
        assert launched.end() == 0
        refused(client(ports, TEXT_MODEL), "nothing answers")


def the_script_and_the_client_of_speech(setup):
    ports = ports_for_test()
    with Launched(setup, SPEECH_MODEL, ports) as launched, setup.serve(SPEECH_MODEL) as one_process, tempfile.NamedTemporaryFile(suffix=".wav") as clip:
        Path(clip.name).write_bytes(sound.tones(3))
        code, out, errors = client(ports, SPEECH_MODEL, "--audio_path", clip.name, "--num_requests", 4)
        assert code == 0 and "4 of 4 answered" in out, (out, errors)
        wanted = one_process.ask(wire.form("/v1/audio/transcriptions", [], Path(clip.name).read_bytes())).json()["text"].strip()
        assert out.count(f": {wanted!r} in ") == 4, (out, wanted)
        assert metric_of(ports["PORT_PREFILL_DECODE"], "encoder_tokens_total") == 0 < metric_of(ports["PORT_ENCODE"], "encoder_tokens_total")
        refused(client(ports, SPEECH_MODEL, "--text", "x"), "takes no text; it takes audio: --audio_path")
        assert launched.end(signal.SIGINT) == 0


def the_script_and_the_client_of_images(setup):
    ports, picture = ports_for_test(), serving.ROOT / "docs" / "img" / "page.png"
    with Launched(setup, IMAGE_MODEL, ports) as launched, setup.serve(IMAGE_MODEL) as one_process:
        code, out, errors = client(ports, IMAGE_MODEL, "--image_path", picture, "--num_requests", 4)
        assert code == 0 and "4 of 4 answered" in out, (out, errors)
        url = "data:image/png;base64," + base64.b64encode(picture.read_bytes()).decode()
        body = {"model": IMAGE_MODEL.name, "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]}
        wanted = one_process.ask(wire.post("/v1/chat/completions", body)).json()["choices"][0]["message"]["content"]
        assert out.count(f": {wanted!r} in ") == 4, (out, wanted)
        assert metric(ports["PORT_PREFILL_DECODE"], "encoder_tokens_total") == 0 < metric(ports["PORT_ENCODE"], "encoder_tokens_total")
        refused(client(ports, IMAGE_MODEL, "--text", "x"), "takes no text; it takes images: --image_path")
        refused(client(ports, IMAGE_MODEL, "--image_path", "/none.png"), "/none.png: no such file")
        refused(client(ports, IMAGE_MODEL, "--image_path", __file__), "FAILED")
        assert launched.end() == 0


def script_ends(setup, words, model=TEXT_MODEL, path=None, **variables):
    """It does not start: says so, and leaves nothing."""
    ports = {name: free_port() for name in PORTS}
    variables = {**({"PATH": path} if path else {}), **variables}
    launched = Launched(setup, model, {**ports}, **variables)
    try:
        code = launched.process.wait(60)
        assert code == 1 and words in launched.text(), (code, launched.text())
        left = [one.name for one in Path(launched.folder.name).iterdir() if one.name != "log"]
        assert not left, left
        assert all(is_free(port) for name, port in ports.items() if name not in variables)
    finally:
        launched.__exit__()


def the_script_says_why_it_does_not_start(setup):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for name in PORTS:
            script_ends(setup, f"port {port} is taken", **{name: port})
    script_ends(setup, "no such program", TRANSEPT="/nowhere/transept")
    script_ends(setup, "no port", PORT_ENCODE="x")
    script_ends(setup, "encode has ended: ", model="/nowhere/model")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("bash", "dirname", "env"):
            (Path(folder) / name).symlink_to(front.need(name)[0])
        script_ends(setup, "no redis-server (Debian: apt install redis-server)", path=folder)


def the_script_ends_when_one_of_its_processes_does(setup):
    with Launched(setup, TEXT_MODEL, {name: free_port() for name in PORTS}) as launched:
        victim = next(pid for pid in launched.children if b"decode" in Path(f"/proc/{pid}/cmdline").read_bytes())
        os.kill(victim, signal.SIGKILL)
        assert launched.process.wait(60) == 1 and "decode has ended" in launched.text(), launched.text()
        assert not any(map(is_alive, launched.children)), "processes are left"


CASES = (the_script_and_the_client_of_text, the_script_and_the_client_of_speech, the_script_and_the_client_of_images, the_script_says_why_it_does_not_start,
         the_script_ends_when_one_of_its_processes_does)
