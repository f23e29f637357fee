"""Ports for servers that tests start: none that another test, or any connection, is about to take."""
import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

# Below what the kernel gives to connections and to whoever binds port 0 (32768 on Linux).
FIRST, LAST = 20000, 32000
_held = []  # locks of this process's ports, which end with it


def free_port():
    """A port of 127.0.0.1 that nothing listens on, and that no other caller on this machine is given while this process lives. It can be listened on
    again and again."""
    folder = Path(tempfile.gettempdir()) / f"transept-test-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for _ in range(1000):
        port = random.randrange(FIRST, LAST)
        lock = open(folder / str(port), "w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as one:
                one.bind(("127.0.0.1", port))
        except OSError:
            lock.close()
            continue
        _held.append(lock)
        return port
    raise OSError(f"no free port from {FIRST} to {LAST}")
