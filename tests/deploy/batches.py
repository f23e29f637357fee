"""Batches over several machines: deploy/slurm/transcribe.sbatch with the environment that Slurm gives, and examples/ray_batch.py, one of whose actors
is killed. Results are compared with those of one run. Slurm itself is not run: there is no cluster."""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import front
import harness
import serving
from packages import prepare_venv
from serving import TEXT_MODEL

BATCH, RAY = serving.ROOT / "deploy" / "slurm" / "transcribe.sbatch", serving.ROOT / "examples" / "ray_batch.py"


def make_speech_model(folder):
    sys.path.append(str(serving.ROOT / "tests"))
    from speech_model import make_model, write_tone

    audio = folder / "audio"
    audio.mkdir()
    for index in range(7):
        write_tone(audio / f"{index}.wav", 2 + index, hertz=200 + 40 * index)
    return make_model(folder / "model"), audio


def path_with(binary, folder):
    """PATH with a `transept` that is this binary."""
    (folder / "bin").mkdir()
    (folder / "bin" / "transept").symlink_to(binary)
    return f"{folder / 'bin'}:{os.environ['PATH']}"


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def a_job_array_writes_what_one_run_writes(setup):
    front.need("bash")
    flags = ["--language", "en", "--output-format", "json", "--beam-size", "1"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, audio = make_speech_model(folder)
        path = path_with(setup.binary, folder)
        subprocess.run([setup.binary, "transcribe", model, audio, "--output-dir", folder / "whole", "--verbose", "false", *flags], check=True, timeout=300)
        whole = contents(folder / "whole")
        assert len(whole) == 7, sorted(whole)
        for first, step, count in ((0, 1, 3), (4, 1, 2), (0, 5, 9)):
            out = folder / f"{first}-{step}-{count}"
            for task in range(count):
                array = {"SLURM_ARRAY_TASK_ID": first + step * task, "SLURM_ARRAY_TASK_COUNT": count, "SLURM_ARRAY_TASK_MIN": first,
                         "SLURM_ARRAY_TASK_STEP": step, "SLURM_CPUS_PER_TASK": 1}
                subprocess.run(["bash", BATCH, model, out, audio, "--", *flags], check=True, timeout=300,
                               env={**os.environ, "PATH": path, **{key: str(value) for key, value in array.items()}})
            assert contents(out) == whole, (first, step, count, sorted(contents(out)))


def the_batch_script_says_what_is_missing(setup):
    front.need("bash")
    env = {key: value for key, value in os.environ.items() if not key.startswith("SLURM")}
    for arguments, code, words in (([], 2, "usage: sbatch"), (["m", "o", "a"], 1, "start this with sbatch")):
        done = subprocess.run(["bash", BATCH, *arguments], env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == code and words in done.stderr, (done.returncode, done.stderr)


def requests():
    draw = random.Random(1)
    words = ["hello", "world", "there", "transformer", "encoder", "again", "fine"]
    for index in range(4000):
        request = {"prompt": " ".join(draw.choices(words, k=draw.randint(1, 4))), "max_tokens": draw.randint(8, 40)}
        if index % 3 == 0:
            request |= {"temperature": 1.0, "n": 2}
        if index % 5 == 0:
            request["id"] = f"own-{index}"
        yield request


def results(path):
    """Without how long each took, which is all that runs differ in."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [{key: value for key, value in line.items() if key != "metrics"} for line in lines]


def pids_of(words):
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if words in (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


def parent_of(pid):
    return int((Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[1])


def ray_with_a_killed_actor_answers_as_one_run(setup):
    skips = []
    python = prepare_venv(Path(__file__).parent / "requirements-ray.txt", serving.ROOT / "build" / "ray", skips)  # xds-protos hides a package of its
    if python is None:
        raise harness.Skip(skips[0])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked = folder / "requests.jsonl"
        asked.write_text("".join(json.dumps(one) + "\n" for one in requests()), encoding="utf-8")
        subprocess.run([setup.binary, "generate", TEXT_MODEL, "--input", asked, "--output", folder / "one.jsonl", "--shard", "0/1"], check=True, timeout=600)
        command = [python, RAY, TEXT_MODEL, asked, folder / "ray.jsonl", "--actors", "2", "--batch-size", "8", "--binary", setup.binary]
        with open(folder / "log", "w+b") as log:
            job = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"})
            try:
                killed = kill_both(job, f"generate {TEXT_MODEL} --input -")
                code = job.wait(900)
            finally:
                job.kill()
            assert code == 0, (folder / "log").read_text(errors="replace")[-3000:]
        assert killed == ["a transept", "an actor"], f"killed before the job ended: {killed}"
        assert results(folder / "ray.jsonl") == results(folder / "one.jsonl")
        assert not pids_of(f"generate {TEXT_MODEL} --input -"), "a process was left behind"


def kill_both(job, words):
    """Kills a transept of an actor while both have work, then an actor. Returns what was killed before the job ended."""
    killed = []
    while len(killed) < 2 and job.poll() is None:
        time.sleep(0.3)
        processes = pids_of(words)
        if len(processes) == 2:
            try:
                os.kill(parent_of(processes[1]) if killed else processes[0], signal.SIGKILL)
                killed.append("an actor" if killed else "a transept")
            except (FileNotFoundError, ProcessLookupError):
                pass  # it has just ended
    return killed


CASES = (a_job_array_writes_what_one_run_writes, the_batch_script_says_what_is_missing, ray_with_a_killed_actor_answers_as_one_run)
