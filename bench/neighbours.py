"""Busy processes beside what is measured: loops that want a processor each and touch no memory."""
import os
import signal
import subprocess
import sys
import time

SETTLE_SECONDS = 0.3  # until the system has placed them


class Neighbours:
    """with Neighbours(2): ... runs two busy processes of this process's own priority. They end with it, come what may."""

    def __init__(self, count):
        self.count, self.processes = count, []

    def __enter__(self):
        watch = f"import os\nwhile os.getppid() == {os.getpid()}:\n    for _ in range(10**6): pass\n"
        self.processes = [subprocess.Popen([sys.executable, "-c", watch]) for _ in range(self.count)]
        time.sleep(SETTLE_SECONDS if self.count else 0)
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.send_signal(signal.SIGKILL)
        for process in self.processes:
            process.wait()


def kept(quiet, busy, more_is_better):
    """Share of the quiet figure that is left beside neighbours."""
    return busy / quiet if more_is_better else quiet / busy
