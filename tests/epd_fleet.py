"""A fleet on one machine (`transept serve MODEL --epd 2E1D`) seen from outside: its launcher, its instances, what they hold, and faults for them.
Standard library only."""
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "server"))

import serving
import wire
from ports import free_port
from serving import wait_until

LAUNCHER = "launcher"


def num_unused(blocks):
    """KV blocks of no request and of no reservation: free, or with what is kept as long as there is room."""
    return sum(blocks[kind] for kind in ("free", "pinned", "cached", "prefixes"))


def names_of(shape):
    """Of a shape such as 1E2D: e0, p0, p1."""
    return [f"e{i}" for i in range(int(shape[0]))] + [f"p{i}" for i in range(int(shape[2]))]


def is_busy(state):
    """Of an instance's /debug/state. Rows that nobody uses lie in blocks of idle tables (pinned), which are as good as free: what is neither is a block
    of a request or a reservation."""
    blocks = state["blocks"]
    return bool(state["running"] or state["waiting"] or state["swapped"] or state["queue"]["requests"] or num_unused(blocks) != blocks["total"])


def busy(fleet):
    """What is in use in one: name -> its state; {}: nothing."""
    found = {}
    for name in fleet.names:
        try:
            state = fleet.state_of(name)
        except (OSError, wire.Cut) as error:
            found[name] = repr(error)
            continue
        if is_busy(state):
            found[name] = state
    return found


def metric_of(port, name, **labels):
    """The sum of transept_`name` over the series that have the labels."""
    found = re.findall(rf"^transept_{name}{{(.*)}} (\S+)$", wire.ask(port, wire.get("/metrics")).body.decode(), re.M)
    return sum(float(value) for said, value in found if all(f'{label}="{is_so}"' in said for label, is_so in labels.items()))


def stop_for(fleet, name, seconds):
    fleet.send(name, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        fleet.send(name, signal.SIGCONT)


def is_alive(pid):
    """A zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def num_descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident_bytes(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * serving.PAGE_BYTES


class Fleet(serving.Server):
    """As a Server, whose port is that of P (of the proxy, if there are several) and whose process is the launcher. Sockets lie in a folder of its own,
    `folder`."""

    def __init__(self, binary, model, shape, *flags, wait=True):
        self.folder = Path(tempfile.mkdtemp(prefix="epd"))
        self.names = names_of(shape)
        self.started = set()  # every process that was seen
        self.read_bytes, self.rest, self.lines = 0, "", []
        self.port = free_port()
        super().__init__(binary, model, "--epd", shape, *flags, port=self.port, wait=wait,
                         env={"TMPDIR": str(self.folder), "XDG_RUNTIME_DIR": str(self.folder)})

    def __exit__(self, kind, *_):
        self.pids()
        try:
            super().__exit__(kind, *_)
        finally:
            for pid in filter(is_alive, self.started):
                os.kill(pid, signal.SIGKILL)
            shutil.rmtree(self.folder)

    def wait_until_ready(self):
        def is_ready():
            assert self.process.poll() is None, f"the launcher ended with {self.process.returncode}:\n{self.log()[-2000:]}"
            return any(line.startswith("--epd") and ": ready after" in line for line in self.told())

        assert wait_until(is_ready, serving.START_SECONDS, 0.02) is not None, self.log()[-2000:]
        self.at_start = self.held()

    def told(self):
        """Lines of the log so far, without those of requests."""
        new = os.pread(self.log_file.fileno(), 1 << 26, self.read_bytes)
        self.read_bytes += len(new)
        *whole, self.rest = (self.rest + new.decode(errors="replace")).split("\n")
        self.lines += [line for line in whole if ' info "' not in line]
        return self.lines

    # ---- Instances

    def pids(self):
        """name -> process, of the instances that run."""
        found = {}
        for entry in os.scandir("/proc"):
            if not entry.name.isdigit():
                continue
            try:
                parent = int(Path(entry.path, "stat").read_text().rsplit(")", 1)[1].split()[1])
                command = Path(entry.path, "cmdline").read_bytes() if parent == self.process.pid else b""
            except (FileNotFoundError, ProcessLookupError):
                continue
            if name := re.search(rb"--instance-name=(\w+)\0", command):
                found[name[1].decode()] = int(entry.name)
        self.started.update(found.values())
        return found

    def num_starts(self, name):
        return sum(line.startswith(f"{name} | transept ") for line in self.told())

    def port_of(self, name):
        """Of its last start."""
        lines = [line for line in self.told() if line.startswith(f"{name} | transept ")]
        return int(re.search(r" at http://\S*:(\d+), ready", lines[-1])[1])

    def send(self, name, number):
        """A signal. The process; None: it does not run."""
        pid = self.process.pid if name == LAUNCHER else self.pids().get(name)
        if pid is not None:
            os.kill(pid, number)
        return pid

    def kill(self, name):
        """Returns a function that waits until the instance is there again."""
        starts = self.num_starts(name)
        self.send(name, signal.SIGKILL)

        def wait_again(seconds=60):
            took = wait_until(lambda: self.num_starts(name) > starts, seconds, 0.05)
            assert took is not None, f"{name} is not there again after {seconds} s:\n{self.words()}"
            return took

        return wait_again

    def stop_for(self, name, seconds):
        stop_for(self, name, seconds)

    def words(self):
        return "\n".join(self.told()[-25:])

    # ---- What they hold

    def state_of(self, name):
        port = self.port if name == "p0" and "p1" not in self.names else self.port_of(name)
        return wire.ask(port, wire.get("/debug/state"), timeout=20).json()

    def busy(self):
        return busy(self)

    def held(self):
        """name -> (resident bytes, descriptors)"""
        return {name: (resident_bytes(pid), num_descriptors(pid)) for name, pid in {**self.pids(), LAUNCHER: self.process.pid}.items()}
