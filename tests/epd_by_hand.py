"""A fleet that is started by hand, as several machines have it: a Redis server, a network that delays and breaks, and instances with their roles.
Standard library only."""
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import deque

from epd_fleet import free_port

import harness
import serving
from serving import wait_until


class Redis:
    """A server of its own, in its own folder, with nothing on disk."""

    def __init__(self, *flags, password=""):
        program = shutil.which("redis-server")
        if program is None:
            raise harness.Skip("needs redis-server")
        self.port, self.folder, self.password = free_port(), tempfile.mkdtemp(prefix="redis"), password
        flags = [*flags, *(["--requirepass", password] if password else [])]
        self.command = [program, "--bind", "127.0.0.1", "--port", str(self.port), "--dir", self.folder, "--save", "", "--appendonly", "no", *flags]
        self.start()

    def start(self):
        """Empty, whatever it held before."""
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def wait_until_it_listens(self):
        assert wait_until(lambda: listens(self.port), 20, 0.02) is not None, "redis-server does not listen"

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait()

    def __enter__(self):
        self.wait_until_it_listens()
        return self

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.folder)

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def run(self, *command):
        """What redis-cli prints."""
        environment = {**os.environ, **({"REDISCLI_AUTH": self.password} if self.password else {})}
        return subprocess.run(["redis-cli", "-p", str(self.port), *command], capture_output=True, text=True, errors="replace", env=environment).stdout

    def num_calls(self, command):
        found = [line for line in self.run("INFO", "commandstats").splitlines() if line.startswith(f"cmdstat_{command}:calls=")]
        return int(found[0].split("=")[1].split(",")[0]) if found else 0


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def shut(pair):
    for one in pair:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)  # which wakes who reads
        one.close()


class Network:
    """A port whose bytes reach another one `delay` seconds later, and back. `delay` may be changed, and cut() breaks it for a while."""

    def __init__(self, port, delay=0.0, password=""):
        self.target, self.delay, self.password, self.is_over = port, delay, password, False
        self.open, self.num_cut, self.lock = set(), 0, threading.Lock()  # pairs of sockets; those that cut() has closed
        self.listen(0)
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.close()

    @property
    def url(self):
        return f"redis://:{self.password}@127.0.0.1:{self.port}" if self.password else f"redis://127.0.0.1:{self.port}"

    def cut(self, seconds):
        """Closes every connection, whatever is on its way, and refuses others for so long."""
        self.close()
        time.sleep(seconds)
        self.listen(self.port)

    def listen(self, port):
        self.listener = socket.create_server(("127.0.0.1", port), backlog=256)
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)  # which wakes accept()
        self.listener.close()
        with self.lock:
            pairs, self.open = self.open, set()
        self.num_cut += len(pairs)
        for pair in pairs:
            shut(pair)

    def accept(self, listener):
        while not self.is_over:
            try:
                near = listener.accept()[0]
            except OSError:
                return  # it is closed
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            for one in (near, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                if listener is self.listener and listener.fileno() >= 0:
                    self.open.add((near, far))
                else:  # cut meanwhile
                    shut((near, far))
                    return
            self.relay(near, far, (near, far))
            self.relay(far, near, (near, far))

    def relay(self, source, target, pair):
        """Threads: one that notes when bytes came, one that sends them on when they are due. None: their end."""
        packets, changed = deque(), threading.Condition()

        def note():
            data = b"-"
            while data:
                try:
                    data = source.recv(1 << 16)
                except OSError:
                    data = b""
                with changed:
                    packets.append((time.monotonic() + self.delay, data))
                    changed.notify()

        def send():
            data = b"-"
            while data:
                with changed:
                    changed.wait_for(lambda: packets)
                    due, data = packets.popleft()
                time.sleep(max(0.0, due - time.monotonic()))
                with contextlib.suppress(OSError):
                    target.sendall(data)
            with self.lock:
                self.open.discard(pair)
            shut(pair)

        for work in (note, send):
            threading.Thread(target=work, daemon=True).start()


class Proxy:
    """`transept proxy` on a port of its own."""

    def __init__(self, binary, broker, *flags):
        self.port = free_port()
        self.process = subprocess.Popen([str(binary), "proxy", "--broker", broker, "--port", str(self.port), "--quiet", *flags], stdin=subprocess.DEVNULL)

    def __enter__(self):
        assert wait_until(lambda: serving_status(self.port) == 200, 30, 0.05) is not None, "the proxy is not ready"
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def serving_status(port):
    """Of /health/ready; 0: nobody answers."""
    with contextlib.suppress(OSError, serving.wire.Cut):
        return serving.wire.ask(port, serving.wire.get("/health/ready"), timeout=5).status
    return 0


def instance(binary, model, role, broker, *flags, **options):
    """A running one, whose name is its port's. `options`: of a Server."""
    return serving.Server(binary, model, "--role", role, "--broker", broker, "--threads", 1, *flags, **options)


@contextlib.contextmanager
def instances(binary, model, shape, broker, *flags):
    """(encode instances, decode instances) of a shape such as 1E2D, without a launcher. They are killed at the end."""
    with contextlib.ExitStack() as stack:
        roles = ["encode"] * int(shape[0]) + ["decode"] * int(shape[2])
        all_of_them = [stack.enter_context(instance(binary, model, role, broker, *flags)) for role in roles]
        yield all_of_them[:int(shape[0])], all_of_them[int(shape[0]):]
