"""What bench/epd.py measures: one process, a fleet of the launcher, a fleet over a Redis server that is started and ended here; their inputs.
Standard library only; needs Linux."""
import array
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import wave
from pathlib import Path

from machine import ROOT

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "server")]
import epd_fleet  # noqa: E402
import serving  # noqa: E402
import wire  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
RATE = 16000


class Clips:
    """WAV files of a clip in a folder, none equal: some samples differ by one bit."""

    def __init__(self, source, count=0, seconds=30):
        with wave.open(str(source)) as reader:
            assert (reader.getnchannels(), reader.getsampwidth(), reader.getframerate()) == (1, 2, RATE), f"{source}: not 16 bits mono at 16 kHz"
            self.clip = array.array("h", reader.readframes(reader.getnframes()))
        self.rng, self.folder, self.turn = random.Random(), Path(tempfile.mkdtemp(prefix="clips")), 0
        window = array.array("h", (self.clip * (1 + seconds * RATE // len(self.clip)))[:seconds * RATE])
        for i in range(count):
            (self.folder / f"{i}.wav").write_bytes(self.noisy(window))
        self.count = count

    def noisy(self, clip=None):
        samples = array.array("h", clip or self.clip)
        for _ in range(1000):
            samples[self.rng.randrange(len(samples))] ^= 1
        data = samples.tobytes()
        head = b"fmt " + (16).to_bytes(4, "little") + b"\1\0\1\0" + RATE.to_bytes(4, "little") + (2 * RATE).to_bytes(4, "little") + b"\2\0\x10\0"
        return b"RIFF" + (36 + len(data)).to_bytes(4, "little") + b"WAVE" + head + b"data" + len(data).to_bytes(4, "little") + data

    def prompt(self, ids=None):
        """A window that no request had before, while there are some left."""
        self.turn += 1
        media = {"multi_modal_data": {"audio": str(self.folder / f"{self.turn % self.count}.wav")}}
        return {**media, "prompt_token_ids": ids} if ids else media

    def close(self):
        shutil.rmtree(self.folder)


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_mib(pid):
    """(peak of what is resident, what of it is no file's at the moment)"""
    text = Path(f"/proc/{pid}/status").read_text()
    return tuple(int(re.search(rf"^{name}:\s+(\d+)", text, re.M)[1]) / 1024 for name in ("VmHWM", "RssAnon"))


# For times of a process that has run for a while: WARM_UP requests write all pages of its pool once. On a virtual machine the
# first write of a large page waits for the host for up to 5 ms, of a window of whisper-tiny (20 MiB) 40 ms.
SMALL_POOL = ("--kv-cache-memory", "256MiB")
SMALL_CACHE = ("--ec-buffer-memory", "64MiB")
WARM_UP = 30


class One(serving.Server):
    """One process, with slices."""

    def __init__(self, binary, model, *flags):
        super().__init__(binary, model, "--encode-slice", "auto", *flags)

    def pids(self):
        return {"one": self.process.pid}


class Fleet(epd_fleet.Fleet):
    """Of the launcher, also with several decode instances."""

    def pids(self):
        return super().pids()

    def all_pids(self):
        return {**self.pids(), "launcher": self.process.pid}


class Redis:
    """A server of its own on a port of loopback, which keeps nothing."""

    def __init__(self):
        self.folder, self.port = Path(tempfile.mkdtemp(prefix="redis")), epd_fleet.free_port()
        self.start()

    def start(self):
        self.process = subprocess.Popen(["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no", "--dir",
                                         str(self.folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert serving.wait_until(self.answers, 10) is not None, "redis-server does not answer"

    def answers(self):
        try:
            return self.run("PING") == "PONG"
        except (OSError, subprocess.CalledProcessError):
            return False

    def run(self, *words):
        done = subprocess.run(["redis-cli", "-p", str(self.port), *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def info(self, section):
        return dict(line.strip().split(":", 1) for line in self.run("INFO", section).splitlines() if ":" in line)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.kill()
        shutil.rmtree(self.folder)


class RedisFleet:
    """Instances over Redis, started by hand: encode instances on processor 0, decode instances on the last one. In `with`."""

    def __init__(self, binary, model, num_encoders=1, flags=(), bulk_port=None):
        self.redis, self.servers = Redis(), {}
        secret = self.redis.folder / "secret"
        secret.write_text("a secret of one measurement")
        secret.chmod(0o600)
        self.secret = secret.read_bytes()
        shared = ["--broker", f"redis://127.0.0.1:{self.redis.port}/0", "--ec-secret-file", secret, "--threads", 1, *flags]
        last = os.cpu_count() - 1
        try:
            for i in range(num_encoders):
                self.servers[f"e{i}"] = serving.Server(binary, model, "--role", "encode", "--instance-name", f"e{i}", "--cpu-affinity", 0, *shared)
            bulk = ["--ec-bulk-address", f"tcp://127.0.0.1:{bulk_port}"] if bulk_port else []
            self.servers["p0"] = serving.Server(binary, model, "--role", "decode", "--instance-name", "p0", "--cpu-affinity", last, *bulk, *shared)
        except BaseException:
            self.__exit__(ValueError)
            raise
        self.port = self.servers["p0"].port

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for server in self.servers.values():
            server.__exit__(kind or ValueError)
        self.redis.close()

    def pids(self):
        return {name: server.process.pid for name, server in self.servers.items()}

    def port_of(self, name):
        return self.servers[name].port

    def send(self, name, number):
        os.kill(self.pids()[name], number)

    def log(self):
        return "\n".join(server.log()[-1000:] for server in self.servers.values())


def wait_until_it_answers(port, data, seconds=30):
    """Until a request is answered: instances have found each other."""
    took = serving.wait_until(lambda: wire.ask(port, data()).status == 200, seconds, 0.1)
    assert took is not None, f"no answer within {seconds} s"
    return took


def stopped(fleet, name):
    """A context in which an instance is stopped."""
    class Stopped:
        def __enter__(self):
            fleet.send(name, signal.SIGSTOP)
            time.sleep(0.2)

        def __exit__(self, *_):
            fleet.send(name, signal.SIGCONT)
    return Stopped()
