#!/usr/bin/env python3
"""Drafts and caches beside our own without them: the same work, in turn. `./dev bench speculation` and `./dev bench caches` run all of each.

    bench/reuse.py speculation|caches [--filter NAME,...] [--rounds N] [--json FILE]

speculation: tokens/s of decoding, one sequence unless said. Answers of random weights agree with no draft, so the drafts are the answers
themselves, each token right with the share that is named (`--speculative-oracle`); a draft model is run all the same. Whisper's own row is its
transcript with every 20th token changed. caches: requests to a server, and calls with unequal inputs, which caches do not help. Checkpoints are random, of
published shapes, made once below .cache/bench. Alone on the machine, please.
"""
import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from epd_fleets import serving, wire
from machine import ROOT, cpu_model, num_processors
from transept_side import BINARY

CACHE = ROOT / ".cache" / "bench"
SPEECH = ROOT.parent / "shared" / "models" / "whisper-tiny"
CLIP = ROOT.parent / "shared" / "audio" / "jfk.wav"
FIRST_TOKEN = "time_to_first_token_seconds_sum"
INT8 = ("--quantization", "int8")


@dataclass
class Row:
    """run(with_it) gives (a rate, a note)."""
    name: str
    least: float
    run: object


def folder(shape):
    """A random checkpoint's."""
    path = CACHE / f"{shape}-shape" / "hf"
    if not path.exists():
        subprocess.run([sys.executable, "bench/checkpoints.py", shape], cwd=ROOT, check=True, stdout=sys.stderr)  # which needs numpy
    return path


def bench(mode, model, *flags):
    done = subprocess.run([str(BINARY), "bench", mode, str(model), "--json", *INT8, *map(str, flags)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"transept bench {mode} {model}: {done.stderr}")
    return json.loads(done.stdout)


def told_of_drafts(report):
    drafts = report["num_drafts"]
    if not drafts:
        return "no drafts"
    return f"{report['num_accepted_tokens'] / drafts:.2f} of {report['num_draft_tokens'] / drafts:.2f} drafts a step"


# ---- speculation

def oracle(name, least, shape, share, most=4, draft=None, batch=1):
    def run(with_it):
        flags = ["--output-len", 128, "--batch-size", batch, "--repeats", 5 if batch == 1 else 3]
        if not with_it:
            flags += ["--num-speculative-tokens", 0]
        elif draft:
            config = {"method": "model", "model": str(folder(draft)), "num_speculative_tokens": most}
            flags += ["--speculative-oracle", share, "--speculative-config", json.dumps(config)]
        else:
            flags += ["--speculative-oracle", share, "--num-speculative-tokens", most]
        report = bench("latency", folder(shape), *flags)
        return report["decode_tokens_per_s"], told_of_drafts(report) if with_it else ""
    return Row(name, least, run)


def of_speech():
    """Whisper's transcript as a draft, with every 20th token changed. The time of the encode is in neither."""
    def run(with_it):
        request = {"prompt": {"multi_modal_data": {"audio": str(CLIP)}}, "max_tokens": 200}
        first = generated(request)
        ids = first["outputs"][0]["token_ids"]
        wrong = [id if i % 20 != 19 else id + 1 for i, id in enumerate(ids)]
        got = generated(*([{**request, **({"draft_token_ids": wrong} if with_it else {})}] * 5))
        if got["outputs"][0]["token_ids"] != ids:
            sys.exit("a draft changed an answer")
        return 1 / got["stats"]["decode_seconds"], told_of_drafts(got["stats"]) if with_it else ""
    return Row("whisper-tiny, its transcript, every 20th token wrong", 1.8, run)


def generated(*requests):
    """The first result of these requests, one behind the other, and the run's stats."""
    stats = CACHE / "stats.json"
    stats.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([str(BINARY), "generate", str(SPEECH), "--input", "-", *INT8, "--max-num-seqs", "1", "--stats-json", str(stats)],
                          input=lines, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"transept generate {SPEECH}: {done.stderr} {done.stdout[:1000]}")
    return {**json.loads(done.stdout.splitlines()[0]), "stats": json.loads(stats.read_text())}


SPECULATION = [
    oracle("t5-base, 0.8 right, 4 drafts", 2.4, "t5-base", 0.8),
    oracle("t5-base, 0.5 right, 4 drafts", 1.4, "t5-base", 0.5),
    oracle("t5-base, 0.95 right, 16 drafts", 5.0, "t5-base", 0.95, most=16),
    oracle("opus-mt, 0.8 right, 4 drafts", 1.9, "opus-mt", 0.8),
    oracle("whisper-small, drafts of whisper-tiny, 0.8 right", 1.6, "whisper-small", 0.8, draft="whisper-tiny"),
    of_speech(),
    oracle("t5-base, none right", 0.97, "t5-base", 0),
    oracle("opus-mt, none right", 0.97, "opus-mt", 0),
    oracle("t5-base, batch 32, 0.8 right", 0.98, "t5-base", 0.8, batch=32),
    oracle("opus-mt, batch 32, 0.8 right", 0.98, "opus-mt", 0.8, batch=32),
]


# ---- caches

def ask(server, body):
    reply = wire.ask(server.port, wire.post("/v1/completions", body), timeout=120)
    if reply.status != 200:
        sys.exit(f"{reply.status}: {reply.body}")
    return reply.json()


def served(name, least, shape, requests, flags, clients):
    """Requests a second of a server whose caches are on, or off by `flags`. requests(rng): the bodies."""
    def run(with_it):
        with serving.Server(BINARY, folder(shape), *INT8, *([] if with_it else flags)) as server:
            ask(server, {"prompt": [5] * 32, "max_tokens": 4})
            bodies = requests(random.Random(1))
            begin = time.monotonic()
            with ThreadPoolExecutor(clients) as pool:
                replies = list(pool.map(lambda body: ask(server, body), bodies))
            seconds = time.monotonic() - begin
        found = sum(reply["usage"].get("prompt_tokens_details", {}).get("cached_tokens", 0) > 0 for reply in replies)
        return len(bodies) / seconds, f"{found} of {len(bodies)} found their input" if with_it else ""
    return Row(name, least, run)


def ids(rng, count):
    return [rng.randrange(10, 30000) for _ in range(count)]


def questions(rng):
    document = ids(rng, 512)
    return [{"prompt": document, "decoder_prompt": {"prompt_token_ids": [0, *ids(rng, 12)]}, "max_tokens": 4, "min_tokens": 4} for _ in range(200)]


def candidates(rng):
    document, begin, bodies = ids(rng, 64), [0, *ids(rng, 255)], []
    for _ in range(8):
        bodies += [{"prompt": document, "decoder_prompt": {"prompt_token_ids": begin + ids(rng, 8)}, "max_tokens": 1, "logprobs": 1}]
    return bodies


def speaking(shape):
    """A random checkpoint with whisper-tiny's tokenizer, which is its own: what a server needs to take recordings."""
    made = CACHE / f"{shape}-served"
    made.mkdir(parents=True, exist_ok=True)
    for source in (*SPEECH.iterdir(), *folder(shape).iterdir()):  # the latter's weights and configurations
        (made / source.name).unlink(missing_ok=True)
        (made / source.name).symlink_to(source.resolve())
    return made


def window_again(shape, least):
    """To the first token of a clip's window that was sent before, and of one that was not."""
    def run(with_it):
        def form(*fields):
            return wire.form("/v1/audio/transcriptions", [("language", "en"), ("temperature", "0"), *fields], CLIP.read_bytes(), filename=CLIP.name)
        with serving.Server(BINARY, speaking(shape), *INT8) as server:
            wire.ask(server.port, form(("cache_salt", "another's")), timeout=120)  # memory is written once
            for _ in range(2 if with_it else 1):
                before = serving.metric_of(server.port, FIRST_TOKEN)
                wire.ask(server.port, form(), timeout=120)
            seconds = serving.metric_of(server.port, FIRST_TOKEN) - before
            return 1 / seconds, f"{1000 * seconds:.1f} ms"
    return Row(f"{shape}, the same window again: first token", least, run)


def unequal(shape, batch):
    """Inputs that no request had before: what looking for them costs. Enough of them that the cache is full for most of the time."""
    def run(with_it):
        flags = ["--encoder-cache-memory", "64MiB", "--enable-prefix-caching", "auto"] if with_it else []
        report = bench("throughput", folder(shape), "--num-prompts", max(512, 32 * batch), "--max-concurrency", batch, "--output-len", 32, *flags)
        return report["tokens_per_s"], f"{report['peak_rss_bytes'] / 2**20:.0f} MiB"
    return Row(f"{shape}, {batch} clients, inputs all unequal", 0.99, run)


CACHES = [
    window_again("whisper-small", 10),
    served("t5-base, 200 questions to one text of 512 tokens, 8 clients", 3.0, "t5-base", questions, ("--share-identical-inputs", "off"), 8),
    served("t5-base, 8 candidates behind 256 common tokens", 3.0, "t5-base", candidates, ("--enable-prefix-caching", "off"), 1),
    unequal("opus-mt", 1),
    unequal("opus-mt", 32),
    unequal("t5-base", 8),
]


def measure(row, rounds):
    pairs = [(row.run(True), row.run(False)) for _ in range(rounds)]
    ratios = [mine[0] / theirs[0] for mine, theirs in pairs]
    ratio = statistics.median(ratios)
    verdict = "met" if ratio >= row.least else "missed"
    print(f"{row.name:62} {ratio:6.2f} x  (at least {row.least}: {verdict}; {min(ratios):.2f} to {max(ratios):.2f})  {pairs[-1][0][1]}", flush=True)
    return {"name": row.name, "ratio": ratio, "ratios": ratios, "least": row.least, "note": pairs[-1][0][1], "without": pairs[-1][1][1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["speculation", "caches"])
    parser.add_argument("--filter", default="", help="only rows whose name contains one of these, separated by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = SPECULATION if options.part == "speculation" else CACHES
    rows = [row for row in rows if not options.filter or any(name in row.name for name in options.filter.split(","))]
    if not SPEECH.is_dir() or not CLIP.is_file():
        rows = [row for row in rows if not row.name.startswith("whisper") or "drafts of" in row.name]
        print(f"left out: rows of recordings, for want of {SPEECH} and {CLIP}", file=sys.stderr)
    print(f"{cpu_model()}, {num_processors()} processors, int8, medians of {options.rounds} rounds")
    found = [measure(row, options.rounds) for row in rows]
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
