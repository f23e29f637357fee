#!/usr/bin/env python3
"""Asks /health/live every 20 ms until its standard input closes, every tenth time on a new connection, and prints how
long the answers took. A process of its own, so that a busy test does not count as a slow server."""
import json
import select
import subprocess
import sys
import time
from pathlib import Path

import wire

PERIOD = 0.02
REQUEST = wire.get("/health/live")


def probe(port):
    times, failures, lateness, connection = [], [], [], None
    due = time.monotonic()
    while not select.select([sys.stdin], [], [], max(0, due - time.monotonic()))[0]:
        lateness.append(time.monotonic() - due)  # what this process waited for a processor: the machine's, not the server's
        begin = time.monotonic()
        try:
            if connection is None or len(times) % 10 == 0:
                if connection is not None:
                    connection.close()
                connection = wire.Connection(port, timeout=20)
            answer = connection.ask(REQUEST)
            if answer.status != 200:
                failures.append(str(answer.status))
        except (OSError, wire.Cut) as error:
            failures.append(str(error))
            connection = None
        times.append(time.monotonic() - begin)
        if len(times) == 1:
            print("asks", flush=True)
        due = max(due + PERIOD, time.monotonic())
    milliseconds = sorted(1000 * t for t in times) or [0.0]
    return {"count": len(times), "max": milliseconds[-1], "p99": milliseconds[int(0.99 * (len(milliseconds) - 1))],
            "own_max": 1000 * max(lateness, default=0), "failures": failures}


class Prober:
    """The process, from the other side: `with Prober(port) as prober: ...`, then prober.found."""

    def __init__(self, port):
        self.process = subprocess.Popen([sys.executable, str(Path(__file__).resolve()), str(port)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdout.readline()  # it asks
        self.found = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        output, _ = self.process.communicate()
        self.found = json.loads(output) if output else None

    def words(self):
        found = self.found
        return (f"/health/live {found['count']} times: p99 {found['p99']:.1f} ms, max {found['max']:.1f} ms "
                f"(the prober itself waited up to {found['own_max']:.1f} ms for a processor)")


if __name__ == "__main__":
    print(json.dumps(probe(int(sys.argv[1]))))
