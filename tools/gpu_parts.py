"""The parts of ./dev gpu-check: each runs something on the device, and says how it went and what it found. An outcome is a
dict with `state` (passed, failed, skipped), `why` and figures."""
import http.client
import json
import random
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from repo import ROOT, jobs

MODELS = ROOT / "tests" / "models"
# Whole requests of these, as many at once as there may be: of each a greedy, a sampled, a wide one and more.
TEXT_MODEL = MODELS / "bart-float32"
AT_ONCE = (1, 2, 3, 5, 8, 13, 21, 33, 64)
OPS = "*Vulkan*Test.*"
INVARIANCE = "*BitsDependOnTheRowAlone*:*ARowsBitsDependOnNoOther*"
MINUTE = 60


@dataclass
class Check:
    binary: Path
    release: Path
    device: str  # what --device takes
    options: object
    environment: dict = field(default_factory=dict)


def passed(why="", **figures):
    return {"state": "passed", "why": why, **figures}


def failed(why, **figures):
    return {"state": "failed", "why": why, **figures}


def skipped(why):
    return {"state": "skipped", "why": why}


def run(command, environment=None, seconds=3600, where=ROOT):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=where,
                          env=environment, timeout=seconds)


# ---- the tests of kernels

def counts_of(output):
    """(passed, failed, skipped) of GoogleTest's closing lines."""
    count = lambda word: sum(map(int, re.findall(rf"^\[  {word}\s*\] (\d+) tests?[.,]", output, re.M)))
    return count("PASSED"), count("FAILED"), count("SKIPPED")


def unit_tests(check, chosen):
    environment = {**check.environment, "TRANSEPT_TEST_DEVICE": check.device}
    done = run([check.release / "src/device_vulkan/device_vulkan_test", f"--gtest_filter={chosen}"], environment)
    good, bad, left_out = counts_of(done.stdout)
    figures = {"passed": good, "failed": bad, "skipped": left_out}
    if done.returncode != 0 or good == 0:
        names = re.findall(r"^\[  FAILED  \] (\S+)", done.stdout, re.M)
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        return failed(", ".join(dict.fromkeys(names)) or f"exit code {done.returncode}: {' '.join(last)}", **figures)
    return passed(**figures)


def ops(check):
    """Against oracles in double precision, with the validation layer where there is one."""
    return unit_tests(check, OPS)


# ---- whole requests

def answers(check):
    """The reference's answers of tests/models, in float32, token by token."""
    ways = {"quick": ["--quick"], "pairs": [], "full": ["--full"]}[check.options.answers]
    chosen = ["--filter", check.options.filter] if check.options.filter else []
    done = run([sys.executable, "tests/golden.py", "--transept", check.binary, "--jobs", jobs(), "--device", check.device, *ways, *chosen],
               check.environment, 12 * 3600)
    found = re.search(r"^(\d+) passed, (\d+) failed$", done.stdout, re.M)
    if found is None:
        return failed((done.stdout + done.stderr).strip()[-500:])
    figures = {"ways": check.options.answers, "passed": int(found[1]), "failed": int(found[2])}
    if figures["failed"] or not figures["passed"]:
        return failed(f"{figures['failed']} answers differ from the reference's: {done.stdout.strip()[:500]}", **figures)
    return passed(**figures)


def outputs_of(text):
    """{id: what was generated} of lines of `generate`, with every log-probability."""
    lines = [json.loads(line) for line in text.splitlines()]
    return {line["id"]: line.get("outputs", line.get("error")) for line in lines}


def generate(check, model, *flags):
    """(outputs, counters) of all requests of a model of tests/models."""
    stats = check.options.out / "stats.json"
    stats.unlink(missing_ok=True)
    done = run([check.binary, "generate", model, "--input", model / "requests.jsonl", "--device", check.device, "--debug-poison",
                "--stats-json", stats, *flags], check.environment, where=model)
    if done.returncode not in (0, 1):  # 1: a request is refused, as the file wants it
        raise AssertionError(f"generate ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return outputs_of(done.stdout), json.loads(stats.read_text())


def rows(check):
    """The bits of a row do not depend on company: of kernels at every place of up to 64 rows, and of whole requests."""
    outcome = unit_tests(check, INVARIANCE)
    if outcome["state"] == "failed":
        return outcome
    alone, _ = generate(check, TEXT_MODEL, "--max-num-seqs", AT_ONCE[0])
    for count in AT_ONCE[1:]:
        among, _ = generate(check, TEXT_MODEL, "--max-num-seqs", count)
        if differing := sorted(name for name in alone if among.get(name) != alone[name]):
            return failed(f"among {count} at once other than alone: {', '.join(differing[:5])}", **{**outcome, "requests": len(alone)})
    return passed(kernels=outcome["passed"], requests=len(alone), at_once=list(AT_ONCE))


def recordings(check):
    """Steps that are submitted again have the bits of steps that are recorded anew."""
    kept, stats = generate(check, TEXT_MODEL)
    anew, _ = generate(check, TEXT_MODEL, "--no-recordings")
    differing = sorted(name for name in kept if anew.get(name) != kept[name])
    recorded, replayed = stats.get("step_recordings", 0), stats.get("step_replays", 0)
    figures = {"requests": len(kept), "recorded": recorded, "replayed": replayed}
    if recorded + replayed:
        figures["host_us_a_submission"] = round(stats["step_host_seconds"] / (recorded + replayed) * 1e6, 1)
    if differing or not replayed:
        return failed(f"differ: {', '.join(differing[:5])}" if differing else "no step was submitted again", **figures)
    return passed(**figures)


# ---- what it does in a second

def constants(check):
    done = run([check.release / "bench/device_probe", check.device, "16" if check.options.tiny else "256"], check.environment)
    if done.returncode != 0:
        return failed(done.stderr.strip())
    return passed(found=json.loads(done.stdout))


# What a Python has: asked of it, as it need not be this one. A GPU of whisper.cpp shows in what its libraries hold.
ASK_PEERS = """
import importlib.util, json
found = {"makes": all(map(importlib.util.find_spec, ("numpy", "safetensors"))), "cuda": 0, "whispercpp": None, "broken": []}
found["peers"] = [name for name, module in (("ctranslate2", "ctranslate2"), ("faster-whisper", "faster_whisper"), ("whispercpp", "_pywhispercpp"))
                  if importlib.util.find_spec(module)]
for peer, module in (("ctranslate2", "ctranslate2"), ("whispercpp", "_pywhispercpp")):
    if peer not in found["peers"]:
        continue
    try:
        loaded = importlib.import_module(module)
    except (ImportError, OSError) as why:
        found["broken"].append(f"{peer}: {why}")
        continue
    if peer == "ctranslate2":
        found["cuda"] = loaded.get_cuda_device_count()
        continue
    paths = {line.split(maxsplit=5)[5].strip() for line in open("/proc/self/maps", encoding="utf-8") if "libwhisper" in line or "libggml" in line}
    held = [open(path, "rb").read() for path in paths]
    backends = {"Vulkan": b"ggml_backend_vk_reg", "CUDA": b"ggml_backend_cuda_reg"}
    found["whispercpp"] = [name for name, symbol in backends.items() if any(symbol in library for library in held)]
print(json.dumps(found))
"""


def peers_of(python, environment=None):
    """What of the peers this Python has: `peers`, devices of CUDA that CTranslate2 sees, what whisper.cpp is built for."""
    done = subprocess.run([str(python), "-c", ASK_PEERS], capture_output=True, text=True, env=environment)
    return json.loads(done.stdout) if done.returncode == 0 else {"peers": [], "cuda": 0, "whispercpp": None, "broken": [], "makes": False}


def beside(have):
    """(peers that run on a card, why the others are left out): on the processor they say nothing about one."""
    chosen, left_out = [], list(have["broken"])
    for peer in have["peers"]:
        if any(why.startswith(f"{peer}: ") for why in left_out):
            continue
        if peer == "whispercpp" and have["whispercpp"]:
            chosen.append(peer)
        elif peer == "whispercpp":
            left_out.append("whispercpp: it is built for no GPU")
        elif have["cuda"]:
            chosen.append(peer)
        else:
            left_out.append(f"{peer}: CTranslate2 sees no CUDA device")
    return chosen, left_out


def workloads(check):
    """bench/workloads with the device, beside the peers that are installed and run on a card: CTranslate2 and faster-whisper on
    CUDA, whisper.cpp on what it is built for."""
    options = check.options
    have = peers_of(options.python, check.environment)
    if not have["makes"]:
        return skipped(f"{options.python} has not numpy and safetensors, which make the checkpoints: --python PYTHON, or ./dev bench --peers before")
    out = options.out / "workloads.json"
    chosen, left_out = beside(have)
    command = [options.python, "bench/compare.py", f"--flag=--device={check.device}", "--json", out, "--beside", ",".join(chosen) or "none",
               *(["--filter", options.workloads] if options.workloads else []), *(["--tiny", "--quick"] if options.tiny else [])]
    environment = {**check.environment, **({"TRANSEPT_PEER_DEVICE": "cuda" if have["cuda"] else "gpu"} if chosen else {})}
    done = run(command, environment, 6 * 3600)
    if done.returncode != 0:
        return failed((done.stdout + done.stderr).strip()[-800:])
    rows_of = json.loads(out.read_text())
    return passed("; ".join([f"beside {', '.join(chosen) or 'no peer: none is installed that runs on a card'}", *left_out]), found=rows_of)


# ---- a server under load

class Client(threading.Thread):
    """Asks the same questions in random order, at times without waiting for the answer; equal questions have equal answers."""

    def __init__(self, port, first, lock, seed, end):
        super().__init__()
        self.port, self.first, self.lock, self.end = port, first, lock, end
        self.rng = random.Random(seed)
        self.asked, self.left, self.wrong, self.broken = 0, 0, [], []

    def run(self):
        while time.monotonic() < self.end:
            which = self.rng.randrange(40)
            try:
                self.ask(which)
            except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
                self.broken.append(f"{which}: {error!r}")

    def ask(self, which):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10 * MINUTE)
        body = {"prompt": " ".join(["one", "two", "three", "four"][i % 4] for i in range(1 + which)), "max_tokens": 1 + which % 17, "temperature": 0,
                **({"n": 2, "use_beam_search": True} if which % 5 == 0 else {})}
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        if self.rng.random() < 0.1:
            self.left += 1
            return connection.close()
        answer = connection.getresponse()
        told = json.loads(answer.read())
        connection.close()
        if answer.status != 200:
            self.broken.append(f"{which}: {answer.status} {told}")
            return
        texts = [choice["text"] for choice in told["choices"]]
        with self.lock:
            if self.first.setdefault(which, texts) != texts:
                self.wrong.append(which)
        self.asked += 1


def soak(check):
    """Requests that come and go, for minutes: the same question has the same answer, and nothing breaks."""
    minutes = check.options.soak_minutes
    if minutes <= 0:
        return skipped("--soak-minutes 0")
    sys.path.insert(0, str(ROOT / "tests" / "server"))
    import serving
    first, lock = {}, threading.Lock()
    with serving.Server(check.binary, MODELS / "t5-float32", "--device", check.device, env=check.environment) as server:
        end = time.monotonic() + minutes * MINUTE
        clients = [Client(server.port, first, lock, seed, end) for seed in range(6)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        has_ended = server.process.poll() is not None
    wrong, broken = [which for client in clients for which in client.wrong], [text for client in clients for text in client.broken]
    figures = {"minutes": minutes, "answers": sum(client.asked for client in clients), "left": sum(client.left for client in clients)}
    if wrong or broken or has_ended or not figures["answers"]:
        return failed(f"{len(wrong)} answers differ, {len(broken)} broke{': ' + broken[0] if broken else ''}{', the server ended' if has_ended else ''}", **figures)
    return passed(**figures)
