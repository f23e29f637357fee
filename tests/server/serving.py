"""The real binary as a child: started on a free port, looked at from outside, stopped. Standard library only."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for sanitizers

import sanitizers
import wire

ROOT = Path(__file__).resolve().parent.parent.parent
TEXT_MODEL = ROOT / "models" / "g2p"
SPEECH_MODEL = ROOT / "tests" / "models" / "whisper-transcribes"
START_SECONDS = 60
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


def wait_until(condition, seconds, pause=0.005):
    """Seconds until `condition` held; None if it did not within `seconds`."""
    begin = time.monotonic()
    while True:
        if condition():
            return time.monotonic() - begin
        if time.monotonic() - begin > seconds:
            return None
        time.sleep(pause)


def metric_of(port, name):
    """The sum over a name's series."""
    text = wire.ask(port, wire.get("/metrics")).body.decode()
    return sum(float(value) for value in re.findall(rf"^transept:{name}(?:{{.*}})? (\S+)$", text, re.M))


class Server:
    """Use in `with`: it is killed at the end, if it still runs. Its log is kept in a file without a name."""

    def __init__(self, binary, model, *flags, port=0, wait=True, env=None):
        self.log_file = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [str(binary), "serve", str(model), "--port", str(port), *map(str, flags)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=self.log_file, env={**sanitizers.ENVIRONMENT, **os.environ, **(env or {})})
        if wait:
            self.wait_until_ready()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        report = sanitizers.report_in(self.log())
        self.log_file.close()
        # However it ended: a server that was killed has no exit code to show it by.
        assert kind is not None or report is None, report

    def log(self):
        return os.pread(self.log_file.fileno(), 1 << 26, 0).decode(errors="replace")

    def wait_until_ready(self):
        def is_ready():
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.log()[-2000:]}")
            found = re.search(r"serves .* at http://\S*:(\d+), ready", self.log())
            if found:
                self.port = int(found[1])
            return found

        if wait_until(is_ready, START_SECONDS, 0.02) is None:
            raise AssertionError(f"the server is not ready after {START_SECONDS} s:\n{self.log()[-2000:]}")

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self, seconds):
        """The exit code; None: it still runs."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def stop(self):
        """Exit code after SIGTERM; a server that does not stop is an error."""
        self.signal()
        code = self.wait(60)
        assert code is not None, f"the server did not stop:\n{self.log()[-2000:]}"
        return code

    # ---- Through HTTP

    def ask(self, data, **options):
        return wire.ask(self.port, data, **options)

    def connect(self, **options):
        return wire.Connection(self.port, **options)

    def complete(self, prompt, headers=(), **fields):
        return self.ask(wire.post("/v1/completions", {"prompt": prompt, **fields}, headers))

    def state(self):
        return self.ask(wire.get("/debug/state")).json()

    def metric(self, name):
        """The sum over a name's series."""
        return metric_of(self.port, name)

    def is_idle(self):
        """Nothing runs or waits, and every block is free."""
        state = self.state()
        blocks = state["blocks"]
        return (not state["running"] and not state["waiting"] and not state["swapped"] and
                sum(blocks[kind] for kind in ("free", "cached", "prefixes")) == blocks["total"] and state["queue"]["requests"] == 0)

    # ---- Through the system

    def _proc(self, name):
        return Path(f"/proc/{self.process.pid}/{name}")

    def rss(self):
        return int(self._proc("statm").read_text().split()[1]) * PAGE_BYTES

    def num_descriptors(self):
        return len(list(self._proc("fd").iterdir()))

    def cpu_seconds(self):
        fields = self._proc("stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


def generate(binary, model, requests, *flags):
    """The results of `generate` over JSONL: what the engine says without a server."""
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([str(binary), "generate", str(model), "--input", "-", "--output", "-", *map(str, flags)],
                          input=lines, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]
