"""What the client tests share: servers on free ports, plain HTTP over one connection, forms, and the tally of what passed.
Standard library only."""
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
import traceback
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for sanitizers

import sanitizers

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SHARED = ROOT.parent / "shared"
BUILD = ROOT / "build" / "clients"
START_SECONDS = 60
ANSWER_SECONDS = 300  # no bound of speed: what takes longer is lost, with sanitizers and on a busy machine, too


class Tally:
    """Counts cases; a failing one is told in full, as long as there are few."""

    def __init__(self, shown=40):
        self.passed, self.failed, self.skips, self.shown = 0, 0, {}, shown

    @contextlib.contextmanager
    def case(self, name):
        try:
            yield
        except Exception as why:  # whatever a client throws is a failure of this case alone
            at = traceback.extract_tb(why.__traceback__)[-1]
            self.fail(f"{name} ({Path(at.filename).name}:{at.lineno})", f"{type(why).__name__}: {why}")
        else:
            self.passed += 1

    def fail(self, name, why):
        self.failed += 1
        if self.failed <= self.shown:
            print(f"FAIL {name}\n  {str(why)[:1200]}", flush=True)

    def skip(self, reason, count=1):
        self.skips[reason] = self.skips.get(reason, 0) + count

    def closing(self):
        for reason, count in self.skips.items():
            print(f"skipped: {count} ({reason})")
        if self.failed > self.shown:
            print(f"... and {self.failed - self.shown} more")
        return f"{self.passed} passed, {self.failed} failed, {sum(self.skips.values())} skipped"


@dataclass
class Reply:
    status: int
    headers: dict  # names in lower case
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def text(self):
        return self.body.decode()

    @property
    def events(self):
        """The data of server-sent events, [DONE] as text."""
        found = [block.removeprefix("data: ") for block in self.text.split("\n\n") if block]
        return [event if event == "[DONE]" else json.loads(event) for event in found]


class Wire:
    """Plain HTTP over one connection that is kept; opened anew where the server closed it."""

    def __init__(self, port, timeout=ANSWER_SECONDS):
        self.port, self.timeout, self.connection = port, timeout, None

    def ask(self, method, path, body=None, content_type="application/json", headers=None):
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body, ensure_ascii=False)
        data = body.encode() if isinstance(body, str) else body
        sent = {**({"Content-Type": content_type} if content_type and data is not None else {}), **(headers or {})}
        for attempt in (1, 2):
            fresh = self.connection is None
            if fresh:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout)
            try:
                self.connection.request(method, path, data, sent)
                answer = self.connection.getresponse()
                reply = Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
            except (http.client.HTTPException, ConnectionError):
                self.close()
                if fresh or attempt == 2:
                    raise
                continue
            if answer.will_close:
                self.close()
            return reply

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def post(self, path, body, **more):
        return self.ask("POST", path, body, **more)

    def form(self, path, fields, **more):
        body, content_type = encode_form(fields)
        return self.ask("POST", path, body, content_type=content_type, **more)

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


def encode_form(fields, boundary="----transept-client-tests"):
    """(body, content type) of multipart/form-data. A value of bytes is a file; lists of pairs may repeat a name."""
    pairs = list(fields.items()) if isinstance(fields, dict) else fields
    body = b""
    for name, value in pairs:
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"'
        if isinstance(value, bytes):
            head += '; filename="audio.wav"\r\nContent-Type: application/octet-stream'
        body += head.encode() + b"\r\n\r\n" + (value if isinstance(value, bytes) else str(value).encode()) + b"\r\n"
    return body + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


@dataclass
class Server:
    """A running `transept serve`; stops with its with-block, and must then leave with 0."""
    binary: Path
    model: Path
    flags: tuple = ()
    exit_code: int = None
    report: str = None  # of a sanitizer, once it has ended
    process: subprocess.Popen = field(default=None, repr=False)

    def __enter__(self):
        BUILD.mkdir(parents=True, exist_ok=True)
        self.log = BUILD / f"server-{os.getpid()}-{id(self):x}.log"
        with open(self.log, "wb") as sink:
            self.process = subprocess.Popen(self.words(), stdout=sink, stderr=sink, stdin=subprocess.DEVNULL, env=self.environment())
        try:
            self.port = self.await_ready()
        except BaseException:
            self.kill()
            raise
        self.url = f"http://127.0.0.1:{self.port}"
        self.wire = Wire(self.port)
        return self

    def words(self):
        return [str(self.binary), "serve", str(self.model), "--port", "0", *self.flags]

    def environment(self):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TRANSEPT_")}
        return {**sanitizers.ENVIRONMENT, **kept}

    def text(self):
        """Of the log."""
        return self.log.read_text(errors="replace")

    def insides(self):
        """name -> Wire of the processes whose state and metrics are the server's."""
        return {"server": self.wire}

    def kill(self):
        self.process.kill()
        self.process.wait()

    @property
    def key(self):
        """The first of its keys, or none."""
        return self.flags[self.flags.index("--api-key") + 1] if "--api-key" in self.flags else "none"

    def await_ready(self):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            found = re.search(r"listening on 127\.0\.0\.1:(\d+)", self.text())
            with contextlib.suppress(OSError):
                if found and urllib.request.urlopen(f"http://127.0.0.1:{found[1]}/health/ready", timeout=5).status == 200:
                    return int(found[1])
            time.sleep(0.02)
        raise RuntimeError(f"the server of {self.model} did not start:\n{self.text()[-2000:]}")

    def __exit__(self, *_):
        self.wire.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.exit_code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.exit_code = self.process.wait()
        self.report = sanitizers.report_in(self.text())
        if self.exit_code == 0 and self.report is None:
            self.log.unlink()


def counts(usage):
    """A reply's usage without what depends on earlier requests."""
    details = usage.get("prompt_tokens_details", {})
    return {**usage, "prompt_tokens_details": {name: count for name, count in details.items() if not name.startswith("cached_")}}


def num_unused(state):
    """KV blocks of no request: free, or with what is kept as long as there is room: inputs and prefixes for later requests,
    and an encoder's output at a decode instance."""
    return sum(state["blocks"][kind] for kind in ("free", "pinned", "cached", "prefixes"))


def run_binary(binary, *arguments, cwd=ROOT, stdin=None):
    """Standard output of the binary; raises with its words unless it leaves with 0 or 1 (some inputs failed)."""
    done = subprocess.run([str(binary), *map(str, arguments)], cwd=cwd, input=stdin, capture_output=True, timeout=600)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.decode(errors='replace')[-1500:]}")
    return done.stdout.decode()


def read_jsonl(text):
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def same(got, wanted, what=""):
    assert got == wanted, f"{what}: got {got!r}, wanted {wanted!r}"


def near(got, wanted, what="", tolerance=1e-5):
    assert got is not None and abs(got - wanted) <= tolerance, f"{what}: got {got!r}, wanted {wanted!r}"
