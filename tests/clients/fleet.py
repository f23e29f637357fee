"""Separated encoders in the place of the server: the same tests go through `transept serve --epd 1E1D`, or through `transept proxy` before the two
decode instances of a 1E2D. Standard library only."""
import re
import signal
import subprocess
import time

from harness import START_SECONDS, Server, Wire

SHAPES = {"epd": "1E1D", "proxy": "1E2D"}


class Fleet(Server):
    """A launcher with its instances. Clients meet its decode instance, or with `through` "proxy" a `transept proxy` of its own."""

    def __init__(self, binary, model, flags=(), through="epd"):
        super().__init__(binary, model, flags)
        self.through, self.proxy = through, None

    def words(self):
        return [*super().words(), "--epd", SHAPES[self.through]]

    def await_ready(self):
        port = int(self.await_line(r": ready after .*; requests go to http://\S*:(\d+)\n", self.process)[1])
        ports = re.findall(r"^([ep]\d+) \| listening on 127\.0\.0\.1:(\d+)", self.text(), re.M)
        self.instances = {name: Wire(int(port)) for name, port in ports}  # a launcher's instance that starts again makes tests fail, as it should
        if self.through != "proxy":
            return port
        broker = re.search(r"^--epd \S+: broker at (\S+),", self.text(), re.M)[1]
        with open(self.log, "ab") as sink:
            self.proxy = subprocess.Popen([str(self.binary), "proxy", "--broker", f"local:{broker}", "--port", "0"], stdout=sink, stderr=sink,
                                          stdin=subprocess.DEVNULL, env=self.environment())
        port = int(self.await_line(r"^proxy at http://127\.0\.0\.1:(\d+), for", self.proxy)[1])
        self.await_known(Wire(port))
        return port

    def await_known(self, wire):
        """Until the proxy knows a decode instance, which takes it a moment."""
        deadline = time.monotonic() + START_SECONDS
        while wire.get("/health/ready").status != 200:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the proxy of {self.model} is not ready:\n{self.text()[-2000:]}")
            time.sleep(0.02)
        wire.close()

    def await_line(self, pattern, process):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            if found := re.search(pattern, self.text(), re.M):
                return found
            time.sleep(0.02)
        raise RuntimeError(f"the fleet of {self.model} did not start:\n{self.text()[-2000:]}")

    def insides(self):
        return self.instances

    def kill(self):
        if self.proxy:
            self.proxy.kill()
            self.proxy.wait()
        super().kill()

    def __exit__(self, *_):
        for wire in self.instances.values():
            wire.close()
        code = 0
        if self.proxy:
            self.proxy.send_signal(signal.SIGTERM)
            try:
                code = self.proxy.wait(60)
            except subprocess.TimeoutExpired:
                self.proxy.kill()
                code = self.proxy.wait()
        super().__exit__()
        self.exit_code = self.exit_code or code
