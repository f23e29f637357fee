"""Runs one workload through the transept binary: figures by the same names as the peers'. Standard library only."""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from machine import BUILD

BINARY = BUILD / "transept"
# What a result file keeps of a run's own account: no paths.
FACTS = ("version", "commit", "isa", "threads", "dtype", "quantization", "kv_cache_dtype", "attention_backend", "seed")


def run(command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(str(part) for part in command[1:4])}: {done.stderr.strip()[-800:]}")
    return done.stdout


def facts_of(report):
    facts = {name: report[name] for name in FACTS if name in report}
    facts["encoder_cache_hits"] = report["num_encoder_cache_hits"]
    facts["weight_bytes"] = {}  # of matrices, by the type that they are kept in
    for matrix in report.get("weights", ()):
        facts["weight_bytes"][matrix["dtype"]] = facts["weight_bytes"].get(matrix["dtype"], 0) + matrix["bytes"]
    return facts


def rss_mib(report):
    return report["peak_rss_bytes"] / 2**20


def bench_command(work, model, flags, repeats, seed, binary=BINARY):
    beams = work["beam"]
    if work["task"] == "clients":
        low, high = work["target_tokens_range"]
        load = ["throughput", model, "--num-prompts", work["requests"], "--max-concurrency", work["clients"], "--output-len", f"{low}-{high}"]
        seqs = work["clients"] * beams
    else:
        load = ["latency", model, "--batch-size", work["batch"], "--output-len", work["target_tokens"]]
        seqs = work["batch"] * beams
    lengths = ["--input-len", work["source_tokens"]] if "source_tokens" in work else []
    return [binary, "bench", *load, *lengths, "--num-beams", beams, "--max-num-seqs", max(64, seqs), "--repeats", repeats, "--seed", seed,
            "--json", *flags]


def run_bench(work, model, flags, repeats, seed, binary=BINARY):
    """(figures, facts)"""
    report = json.loads(run(bench_command(work, model, flags, repeats, seed, binary)))
    figures = {"tokens_per_s": report["tokens_per_s"], "call_ms": report["call_ms"], "step_ms": report["step_ms_mean"],
               "encode_ms": report["encode_ms"], "load_s": report["load_s"], "peak_rss_mib": rss_mib(report)}
    if report["start_to_first_token_s"] is not None:
        figures["start_to_first_token_s"] = report["start_to_first_token_s"]
    if work["task"] == "clients":
        del figures["step_ms"], figures["encode_ms"]
        figures.update(latency_ms_p50=report["latency_ms"]["p50"], latency_ms_p99=report["latency_ms"]["p99"],
                       ttft_ms_p99=report["ttft_ms"]["p99"], any_step_ms_p50=report["any_step_ms"]["p50"],
                       any_step_ms_p99=report["any_step_ms"]["p99"])
    return figures, facts_of(report)


def run_transcribe(work, model, flags, repeats, audio, binary=BINARY):
    """(figures, facts): the clip under other names, one after the other; the first warms up."""
    with tempfile.TemporaryDirectory() as scratch:
        names = [f"{i}{audio.suffix}" for i in range(repeats + 1)]
        for name in names:
            (Path(scratch) / name).symlink_to(audio.resolve())
        mode = ["--mode", "batched", "--batch-size", work["batch"], "--without-timestamps", "true"] if work["batch"] > 1 else [
            "--mode", "sequential"]
        run([binary, "transcribe", Path(model).resolve(), *names, "--output-format", "json", "--verbose", "false", "--num-workers", 1,
             "--share-identical-inputs", "off", "--language", "en", "--temperature-increment-on-fallback", "none", "--beam-size",
             work["beam"], *mode, "--stats-json", "stats.json", *flags], cwd=scratch)
        stats = json.loads((Path(scratch) / "stats.json").read_text())
        text = json.loads((Path(scratch) / "0.json").read_text())["text"]
    seconds = sorted(file["seconds"] for file in stats["files"][1:])
    middle = seconds[len(seconds) // 2]
    audio_seconds = stats["files"][0]["audio_seconds"]
    figures = {"x_real_time": audio_seconds / middle, "seconds": middle, "call_ms": middle * 1e3, "peak_rss_mib": rss_mib(stats)}
    facts = {**facts_of(stats), "audio_seconds": audio_seconds, "windows": stats["encoder_runs"] / len(names),
             "steps": stats["num_steps"] / len(names)}
    return figures, {**facts, "text": text}
