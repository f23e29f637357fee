#!/usr/bin/env python3
"""A model over two ranks of one thread beside one process of two threads, in turn: `./dev bench parallel` runs all of it.

    bench/parallel.py [ranks|stages|exchange|idle|memory ...] [--filter NAME,...] [--rounds N] [--json FILE]

ranks: --tensor-parallel-size 2. stages: --pipeline-parallel-size 2, cut by time. Both in tokens/s of decoding, or encodes a second. exchange: what a layer pays
twice, an exchange with its sum, bias and residual over shared memory (comm_bench); with it ranks are predicted by tools/parallel_model.py. idle: processor time of four ranks that have nothing to do.
--json: for ./dev bench --results, which makes the last section of RESULTS.md of it.
memory: what one of two and of four ranks has for itself, beside what one process has (PSS without files' pages), and the bytes of all beside it.
Two ranks on two processors have one memory: what is seen is what ranks cost, never what a second socket gains. Alone on the machine, please: a rank
whose processor is another's makes all wait.
"""
import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from compare import commit
from epd_fleets import cpu_seconds, serving
from machine import ROOT, cpu_model, num_processors
from reuse import INT8, Row, bench, folder, measure
from shapes import SHAPES

sys.path.insert(0, str(ROOT / "tools"))
import parallel_model  # noqa: E402

TEXT = ("opus-mt", "t5-base", "bart-large-cnn")
LEAST_OF_BATCH = {1: 0.9, 8: 0.8, 32: 0.75}
# Rows of 512 floats -> what an exchange of them may take, us.
MOST_OF_EXCHANGE = {1: 2, 32: 45, 512: 650}
MOST_OF_SLOWEST = 3  # medians, for the slowest exchange of a hundred
IDLE_RANKS, IDLE_SECONDS, MOST_IDLE = 4, 10, 0.01
MORE_MEMORY = 0.03  # than a share of 1 / N
ONE = ("--threads", 2)


def met(is_met):
    return "met" if is_met else "missed"


def over(way):
    return ("--threads", 1, f"--{way}-parallel-size", 2, *(("--pipeline-layers", "time") if way == "pipeline" else ()))


@dataclass
class ModelledRow(Row):
    """A row whose ratio tools/parallel_model.py predicts."""
    shape: str
    num_rows: int  # of a step


def row(name, least, way, mode, shape, rate, *flags):
    """rate(report): more is better."""
    def run(with_it):
        report = bench(mode, folder(shape), *flags, *(over(way) if with_it else ONE))
        return rate(report), f"{report['step_ms']:.2f} ms a step" if report.get("step_ms") else ""
    return Row(name, least, run)


def predicted(row, found, wire):
    """The ratio that the model expects, from the step of one process in measure()'s note."""
    one_ms = float(found["without"].split()[0])
    return one_ms / parallel_model.ranks_step_ms(SHAPES[row.shape], one_ms, 2, row.num_rows, True, wire)


def say_predicted(row, found, wire):
    found["predicted"] = predicted(row, found, wire)
    print(f"    predicted {found['predicted']:.2f} x, measured over it {found['ratio'] / found['predicted']:.2f}", flush=True)


def decoding(report):
    return report["decode_tokens_per_s"]


def ranks_of(shape, batch, beams=1):
    flags = ("--batch-size", batch, "--num-beams", beams, "--output-len", 64, "--repeats", 3)
    name = f"{shape}, batch {batch}" + (f", {beams} beams" if beams > 1 else "")
    made = row(name, LEAST_OF_BATCH[batch], "tensor", "latency", shape, decoding, *flags)
    return ModelledRow(made.name, made.least, made.run, shape, batch * beams)


RANKS = [
    *(ranks_of(shape, 1) for shape in TEXT),
    *(ranks_of(shape, 1, 4) for shape in TEXT),
    *(ranks_of(shape, batch) for batch in (8, 32) for shape in TEXT),
    row("whisper-tiny, a step", 0.9, "tensor", "latency", "whisper-tiny", decoding, "--output-len", 64, "--repeats", 3),
    row("whisper-tiny, encode", 0.8, "tensor", "latency", "whisper-tiny", lambda report: 1 / report["encode_ms"], "--output-len", 4, "--repeats", 5),
]
STAGES = [
    *(row(f"{shape}, 32 clients", 0.9, "pipeline", "throughput", shape, lambda report: report["tokens_per_s"],
          "--num-prompts", 128, "--max-concurrency", 32, "--output-len", 64) for shape in TEXT[:2]),
    # 1.1 times the latency. Both sides have their threads on processors of their own: a stage's second thread is to run beside its first.
    *(row(f"{shape}, one client", 0.91, "pipeline", "latency", shape, lambda report: 1 / report["latency_ms"]["p50"], "--output-len", 64, "--repeats", 3,
          "--cpu-affinity", "auto")
      for shape in TEXT[:2]),
]


def times_of_exchange(report):
    """{rows: (us, us of the slowest in a hundred)}: medians of comm_bench's repetitions."""
    return {int(case["name"].split("/")[1]): (case["real_time"] / 1000, case["p99_us"])
            for case in report["benchmarks"] if case.get("aggregate_name") == "median"}


def wire_of(micros):
    """The line through the times of 2 and of 64 KiB."""
    per_kib = (micros[32][0] - micros[1][0]) / 62
    return parallel_model.Wire(micros[1][0] - 2 * per_kib, per_kib)


def exchange(rounds):
    """(rows for --json, the wire)"""
    command = [str(ROOT / "build" / "release" / "src" / "comm" / "comm_bench"), "--benchmark_format=json", f"--benchmark_repetitions={max(rounds, 2)}",
               "--benchmark_report_aggregates_only=true"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"comm_bench: {done.stderr}")
    found, times = [], times_of_exchange(json.loads(done.stdout))
    for rows, most in MOST_OF_EXCHANGE.items():
        micros, slowest = times[rows]
        print(f"exchange of {2 * rows} KiB, sum, bias, residual {micros:31.2f} us (at most {most}: {met(micros <= most)}), p99 {slowest:.2f} us "
              f"(at most {MOST_OF_SLOWEST} medians: {met(slowest <= MOST_OF_SLOWEST * micros)})", flush=True)
        found.append({"name": f"exchange of {2 * rows} KiB", "us": micros, "p99_us": slowest, "most": most})
    return found, wire_of(times)


def processes_of(server):
    """Its process and those that its threads have started."""
    tasks = Path(f"/proc/{server.process.pid}/task").iterdir()
    return [server.process.pid, *(int(pid) for task in tasks for pid in (task / "children").read_text().split())]


def idle():
    model = ROOT / "tests" / "models" / "t5-float32"
    with serving.Server(ROOT / "build" / "release" / "transept", model, "--tensor-parallel-size", IDLE_RANKS, "--threads", 1) as server:
        pids = processes_of(server)
        if len(pids) != IDLE_RANKS:
            sys.exit(f"{len(pids)} processes of {IDLE_RANKS} ranks")
        before = sum(map(cpu_seconds, pids))
        time.sleep(IDLE_SECONDS)
        share = (sum(map(cpu_seconds, pids)) - before) / IDLE_SECONDS
    print(f"{IDLE_RANKS} idle ranks: {100 * share:.2f} % of a processor (at most {100 * MOST_IDLE:.0f}: {met(share < MOST_IDLE)})", flush=True)
    return [{"name": "idle ranks", "share": share, "most": MOST_IDLE}]


def memory_of(pid):
    """(bytes of its own, of files, too): proportional set sizes."""
    sizes = dict(line.split(":") for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    own, whole = (1024 * int(sizes[name].split()[0]) for name in ("Pss_Anon", "Pss"))
    return own, whole


def memory():
    found, one = [], None
    for ranks in (1, 2, 4):
        flags = ("--threads", 1, "--kv-cache-memory", "64MiB", *INT8, *(("--tensor-parallel-size", ranks) if ranks > 1 else ()))
        with serving.Server(ROOT / "build" / "release" / "transept", folder("t5-base"), *flags) as server:
            sizes = [memory_of(pid) for pid in processes_of(server)]
        own, whole = max(own for own, _ in sizes), sum(whole for _, whole in sizes)
        if one is None:
            one = own, whole
            continue
        most = 1 / ranks + MORE_MEMORY
        print(f"t5-base, the largest of {ranks} ranks: {own / 2**20:.0f} MiB of its own, {own / one[0]:.3f} of one process's (at most {most:.2f}: "
              f"{met(own <= most * one[0])}); all {ranks}: {whole / 2**20:.0f} MiB, {whole / one[1]:.2f} of one process", flush=True)
        found.append({"name": f"t5-base, memory of one of {ranks} ranks", "share": own / one[0], "most": most, "share_of_all": whole / one[1]})
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="exchange, ranks, stages, idle, memory (default: all, in this order)")
    parser.add_argument("--filter", default="", help="only rows of ranks and stages whose name contains one of these, separated by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    known = {"exchange": None, "ranks": RANKS, "stages": STAGES, "idle": None, "memory": None}
    if unknown := [part for part in options.parts if part not in known]:
        parser.error(f"{unknown[0]} is none of {', '.join(known)}")
    if num_processors() < 2:
        sys.exit("two ranks want two processors")
    print(f"{cpu_model()}, {num_processors()} processors, int8, medians of {options.rounds} rounds")
    started = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    found, wire = [], parallel_model.SHARED_MEMORY
    for part in options.parts or known:
        print(f"-- {part}", flush=True)
        if part == "exchange":
            times, wire = exchange(options.rounds)
            found += times
        elif part == "idle":
            found += idle()
        elif part == "memory":
            found += memory()
        for row in known[part] or ():
            if not any(name in row.name for name in options.filter.split(",")):
                continue
            found.append({"part": part, **measure(row, options.rounds)})
            if isinstance(row, ModelledRow):
                say_predicted(row, found[-1], wire)
    if options.json:
        head = {"part": "parallel", "started": started, "commit": commit(), "cpu": cpu_model(), "threads": num_processors(), "rounds": options.rounds}
        options.json.write_text(json.dumps({**head, "rows": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
