"""The suites that both ./dev test and ./dev check run. Each returns a Result."""
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import docs
from repo import ROOT, jobs
from results import Result, must_have_run
from unit_tests import run_unit_tests


def run_logged(command, log):
    """Runs a command with its output in a log file. True: it succeeded."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as sink:
        sink.write(f"+ {' '.join(map(str, command))}\n".encode())
        sink.flush()
        return subprocess.run(command, cwd=ROOT, stdout=sink, stderr=sink, stdin=subprocess.DEVNULL).returncode == 0


# What holds a second's bound of processes that are killed: ./dev check runs it when nothing is built beside it any more.
IN_QUIET = ("rank_faults_test.py",)


def python_tests(log, name_filter="", binary=None, is_busy=False):
    """The tests of the tools themselves, and of the binary as a user runs it (build/release's unless another is given). is_busy: without IN_QUIET."""
    files = [path for folder in ("tools", "tests", "bench") for path in sorted((ROOT / folder).glob("*_test.py")) if not (is_busy and path.name in IN_QUIET)]
    log.parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(jobs()) as pool:
        results = pool.map(lambda path: python_test(path, log, name_filter, binary), files)
        total = Result()
        for result in results:
            total.add(result)
        return total


def quiet_tests(log):
    """The files of IN_QUIET, one after the other."""
    total = Result()
    for name in IN_QUIET:
        total.add(python_test(ROOT / "tests" / name, log, "", None))
    return total


def python_test(path, log, name_filter, binary):
    """One file of unittest, run in its folder."""
    environment = {**os.environ, **({"TRANSEPT_BINARY": str(binary)} if binary else {})}
    command = [sys.executable, "-m", "unittest", "-v", *(["-k", name_filter] if name_filter else []), path.stem]
    start = time.monotonic()
    done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment)
    with open(log, "a", encoding="utf-8") as sink:
        sink.write(done.stdout + done.stderr)
    outcomes = [line.rsplit("... ", 1)[1] for line in done.stderr.splitlines() if "... " in line]
    passed, skipped = outcomes.count("ok"), [o for o in outcomes if o.startswith("skipped")]
    failed = max(len(outcomes) - passed - len(skipped), 0 if done.returncode in (0, 5) else 1)
    notes = [*skipped, *(failures_of(done.stderr) if failed else [])]
    result = Result(passed, failed, len(skipped), notes, Counter({path.stem: time.monotonic() - start}))
    return result if name_filter else must_have_run(result, path.name)  # unittest is content with a file without tests


def failures_of(output):
    """What unittest says at its end of each test that failed; all it said where it did not come to that."""
    lines = output.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith("=" * 70)), None)
    return lines if first is None else [line for line in lines[first:] if line.strip()]


def goldens(binary, log, root=None, arguments=()):
    """tests/golden.py: the reference's answers through the binary, whose starts leave processors idle: as many at once."""
    command = [sys.executable, "tests/golden.py", "--transept", str(binary), "--jobs", str(jobs()), *(["--root", str(root)] if root else []),
               *arguments]
    return run_suite(command, log)


def has_lavapipe(binary):
    done = subprocess.run([str(binary), "devices", "--json"], capture_output=True, text=True)
    return done.returncode == 0 and any(device["alias"] == "lavapipe" for device in json.loads(done.stdout)["devices"])


# The checkers beside the shared goldens: words of their own, the folder of --root, flags of the binary. check_vision.py has families of speech that are
# not built, too.
SHARED_CHECKS = (("check_golden.py", [], "", []), ("check_golden.py", [], "text-quant", ["--quantization", "none"]), ("check_audio.py", [], "", []),
                 ("check_vision.py", ["--filter", "vision/"], "", []))
# As they are, with plans that go through bytes, and with encoders in other processes.
SHARED_WAYS = ([], ["--debug-loopback-plans"], ["--epd", "1E1D"], ["--epd", "2E1D", "--attention-backend", "reference", "--block-size", "1"])
RANKS_OF_SPEECH = ("--tensor-parallel-size 2", "--pipeline-parallel-size 2")
# The groups but those that give their flags to `dump`, which has no separated encoders and no ranks.
WITHOUT_DUMPS = {"check_vision.py": ["--only", "generate,errors,tokenize,chat"],
                 "check_audio.py": ["--only", "features,windows,beam,language,longform,fallback,words,writers,formats,broken,wer,moonshine"]}


def shared_checks(binary, root, log):
    """Text, quantised text, audio and vision by the checkers there, in each of SHARED_WAYS."""
    result = Result()
    for script, words, folder, flags in SHARED_CHECKS:
        for more in SHARED_WAYS:
            chosen = [*words, *(["--root", str(root / folder)] if folder else []), *(WITHOUT_DUMPS.get(script, []) if "--epd" in more else [])]
            command = [sys.executable, str(root / script), "--transept", str(binary), *chosen, f"--args={' '.join([*flags, *more])}"]
            if (root / script).exists():
                result.add(run_suite(command, log))
    return result


def run_suite(command, log):
    """A program that closes with `N passed, N failed`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    with open(log, "a", encoding="utf-8") as sink:
        sink.write(f"+ {' '.join(command)}\n{done.stdout}{done.stderr}")
    return read_closing_line(done.stdout, done.returncode)


def client_tests(binary, log, name_filter="", through=""):
    """tests/clients: the official clients and plain HTTP against the server, or through a fleet. Installs from PyPI and npm what is missing."""
    way = ["--through", through] if through else []
    return run_suite([sys.executable, "tests/clients/run.py", "--transept", str(binary), "--filter", name_filter, *way], log)


def torch_files(binary, log, name_filter=""):
    """tests/torch_files: checkpoints as torch.save writes them, and hostile files. Installs torch from PyPI where it is missing."""
    return run_suite([sys.executable, "tests/torch_files/run.py", "--transept", str(binary), "--filter", name_filter], log)


def quantized_files(binary, log, name_filter=""):
    """tests/quantized_files: quantised weights of other libraries, against what these read. Installs the libraries from PyPI where they are missing."""
    return run_suite([sys.executable, "tests/quantized_files/run.py", "--transept", str(binary), "--filter", name_filter], log)


def server_tests(binary, log, scale=1.0):
    """tests/server/run.py: the running server under load and faults."""
    return run_suite([sys.executable, "tests/server/run.py", "--binary", str(binary), "--scale", str(scale)], log)


def fleet_faults(binary, log, minutes=10):
    """tests/epd_faults.py: fleets whose processes are killed and stopped, and whose network is cut, under load."""
    return run_suite([sys.executable, "tests/epd_faults.py", "--transept", str(binary), "--minutes", str(minutes)], log)


def fleet_answers(binary, log):
    """tests/epd_same_answers.py: bytes of fleets and of one process, each circumstance through one fleet in turn."""
    return run_suite([sys.executable, "tests/epd_same_answers.py", "--transept", str(binary), "--jobs", str(jobs())], log)


RANK_TESTS = ("ranks_test.py", "rank_faults_test.py", "rank_nodes_test.py", "packed_ranks_test.py")


def rank_answers(binary, log, name_filter="", full=False):
    """What ranks and stages answer, beside one process, digit by digit: tests/rank_products.py over tests/models and, where they are, the shared goldens;
    and, without a filter, how ranks live and die, and the shared recordings through two ranks and two stages."""
    result, shared = Result(), shared_goldens()
    words = ["--jobs", str(jobs()), "--filter", name_filter, *(["--full"] if full else [])]
    roots = [ROOT / "tests" / "models", *([shared / "text"] if shared else [])]
    for root in roots:
        result.add(run_suite([sys.executable, "tests/rank_products.py", "--transept", str(binary), "--root", str(root), *words], log))
    if not name_filter:
        for name in RANK_TESTS:
            result.add(python_test(ROOT / "tests" / name, log, "", binary))
        for flags in RANKS_OF_SPEECH if shared else ():
            words = ["--transept", str(binary), *WITHOUT_DUMPS["check_audio.py"], f"--args={flags}"]
            result.add(run_suite([sys.executable, str(shared / "check_audio.py"), *words], log))
    return result


def transfer_histories(binary, log):
    """A hundred thousand random histories of transfers between instances; the check runs some of them."""
    result = Result()
    for folder, tests in (("encoder_cache", "EcProperty.*"), ("engine", "RemoteInputsProperty.*")):
        program = binary.parent / "src" / folder / f"{folder}_test"
        good = run_logged(["env", "TRANSEPT_PROPERTY_HISTORIES=100000", str(program), f"--gtest_filter={tests}"], log)
        result.add(Result(passed=int(good), failed=int(not good), notes=[] if good else [f"failed: {tests} of {program.name}"]))
    return result


def deployment(binary, log):
    """tests/deploy/run.py: what a fleet is deployed with, and examples/epd. Installs from PyPI what is missing."""
    return run_suite([sys.executable, "tests/deploy/run.py", "--transept", str(binary)], log)


def rank_deaths(binary, log, minutes=2, every=15):
    """tests/deploy/rank_soak.py: servers of two ranks behind HAProxy, of whose processes one is killed now and then. By hand it takes ten minutes."""
    return run_suite([sys.executable, "tests/deploy/rank_soak.py", "--transept", str(binary), "--minutes", str(minutes), "--every", str(every)], log)


def library_tests(binary, log):
    """tests/library/run.py: the library and its examples as they are installed."""
    return run_suite([sys.executable, "tests/library/run.py", "--build", str(binary.parent)], log)


def ffmpeg_tests(binary, log):
    """tests/ffmpeg/run.py: audio by other releases of FFmpeg, beside PyAV. Installs from PyPI what is missing."""
    return run_suite([sys.executable, "tests/ffmpeg/run.py", "--build", str(binary.parent)], log)


def python_package_tests(binary, log, name_filter=""):
    """tests/python/run.py: the wheel and what it installs. Installs from PyPI what is missing."""
    return run_suite([sys.executable, "tests/python/run.py", "--transept", str(binary), "--filter", name_filter], log)


def package_tests(log):
    """tests/package/run.py: what ./dev package makes, lived with in fresh roots."""
    return run_suite([sys.executable, "tests/package/run.py"], log)


def documentation(binary, log):
    """./dev docs, and tests/docs/run.py: the site without a dead link, and every code block of the pages for users that runs."""
    skips = []
    if docs.prepare(skips) is None:
        site = Result(skipped=1, notes=[f"skipped: the documentation site: {skips[0]}"])
    else:
        built = run_logged([sys.executable, "tools/docs.py"], log)
        site = Result(passed=int(built), failed=int(not built), notes=[] if built else ["failed: the documentation site"])
    site.add(run_suite([sys.executable, "tests/docs/run.py", "--transept", str(binary)], log))
    return site


def hub_tests(binary, log, name_filter=""):
    """tests/hub/run.py: the binary beside huggingface_hub, over one hub. Installs from PyPI what is missing."""
    return run_suite([sys.executable, "tests/hub/run.py", "--transept", str(binary), "--filter", name_filter], log)


def image_tests(binary, log, name_filter=""):
    """tests/images/run.py: random images against Pillow, by tools/image_probe.cc. Installs from PyPI what is missing."""
    probe = binary.parent / "src" / "media" / "image_probe"
    if not probe.exists():
        return Result(skipped=1, notes=["skipped: this tree builds no image_probe"])
    return run_suite([sys.executable, "tests/images/run.py", "--probe", str(probe), "--filter", name_filter], log)


def websocket_tests(binary, log, name_filter=""):
    """tests/websocket/run.py: Python's websockets and node's ws against tools/websocket_echo.cc. Installs from PyPI and npm what is missing."""
    echo = binary.parent / "src" / "net" / "websocket_echo"
    if not echo.exists():
        return Result(skipped=1, notes=["skipped: this tree builds no websocket_echo"])
    return run_suite([sys.executable, "tests/websocket/run.py", "--echo", str(echo), "--filter", name_filter], log)


def chat_templates(binary, log, name_filter=""):
    """tests/chat_templates/run.py: chat templates beside transformers' and jinja2. Installs from PyPI what is missing."""
    return run_suite([sys.executable, "tests/chat_templates/run.py", "--transept", str(binary), "--filter", name_filter], log)


def page_tests(log):
    """tests/page: the page in Chromium. Skipped, and says so, where Chromium or node is missing."""
    missing = [name for name in ("node", "npm", "chromium") if not shutil.which(name)]
    if missing:
        return Result(skipped=1, notes=[f"skipped: the page's tests need {', '.join(missing)}"])
    modules = ROOT / "build" / "page"
    modules.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "tests" / "page" / "package.json", modules)
    if not run_logged(["npm", "install", "--prefix", str(modules), "--no-audit", "--no-fund"], log):
        return Result(skipped=1, notes=["skipped: npm cannot install what the page's tests need"])
    return run_suite(["env", f"TRANSEPT_PAGE_NODE={modules}", "node", "tests/page/run.mjs"], log)


def instruction_counts(log):
    """bench/instructions.py: an encode and a step against the committed counts. Of the release build."""
    return run_suite([sys.executable, "bench/instructions.py"], log)


def read_closing_line(output, code):
    """`N passed, N failed[, N skipped]` at the end of an output."""
    lines = output.strip().splitlines() or [""]
    numbers = {word.split()[1]: int(word.split()[0]) for word in lines[-1].split(", ") if word.count(" ") == 1 and word[0].isdigit()}
    result = Result(numbers.get("passed", 0), numbers.get("failed", 0), numbers.get("skipped", 0))
    result.notes = [line for line in lines if line.startswith(("skipped:", "note:"))]
    for line in lines:
        if line.startswith("seconds: "):  # `seconds: NAME 1.5, NAME 2.0`
            result.seconds.update({part.rsplit(" ", 1)[0]: float(part.rsplit(" ", 1)[1]) for part in line[9:].split(", ")})
    if (code != 0 or not numbers) and not result.failed:  # a suite that says no numbers has not run
        result.failed = 1
        result.notes.append("failed: " + (lines[-1] or f"exit code {code}, and no closing line"))
    return result


def binary_of(preset):
    """The transept binary of a preset; None while the tree has none."""
    path = ROOT / "build" / preset / "transept"
    return path if path.exists() else None


def shared_goldens():
    """The goldens beside the checkout, where they are present."""
    path = ROOT.parent / "shared" / "golden"
    return path if path.is_dir() else None

