#!/usr/bin/env python3
"""./dev quality: what a faster type costs in quality, gate by gate, against float32 of the same weights.

    ./dev quality --quantization int8 --kv-cache-dtype int8
    ./dev quality --dtype bfloat16 --only outputs
    ./dev quality --dtype float32 --quantization none --kv-cache-dtype float32 --ec-transfer-dtype bfloat16

Gates: the word error rate of whisper-tiny over every clip of ../shared/audio with a text; the most probable next token under
teacher forcing (the tokens of float32's greedy answers), of every model; greedy answers of text models that are the same, or that
float32 finds as probable. Models: the bundled one, and ../shared's where they are. Prints each gate with figure, limit and verdict, and closes
with `N passed, N failed`.

Agreement counts twice: over all positions, and over decisive ones, where float32's most probable token leads by 0.2 nats. The rest
are near ties, which any rounding turns. Speech has three gates of agreement: recordings, in windows of 30 s that begin every 3 s (cut by PyAV: python3-av, or `pip install av`), clips of synthetic
English, and of other languages.
"""
import argparse
import json
import subprocess
import sys
import tempfile
import wave
from dataclasses import dataclass
from pathlib import Path

from repo import ROOT

SHARED = ROOT.parent / "shared"
BUNDLED = ROOT / "models" / "g2p"
MAX_WER_RISE = 0.3          # points absolute
MIN_AGREEMENT = 0.99        # of positions: more than that
DECISIVE_NATS = 0.2         # between float32's two most probable tokens: a position below is a near tie
MIN_DECISIVE_AGREEMENT = 0.995
MIN_SAME_OUTPUTS = 0.99     # of answers
EQUAL_SCORE = 0.01          # nats of a whole answer that still count as equal in score
GATES = ("wer", "agreement", "outputs")
RECORDINGS = (("jfk.wav", "en"), ("tedlium_long_120s.flac", "en"), ("multilingual.mp3", "en"))  # the last as whisper-tiny takes it
SAMPLE_RATE, WINDOW_SECONDS, STRIDE_SECONDS = 16000, 30, 3


# ---- arithmetic

def words_of(text):
    return "".join(c if c.isalnum() or c == "'" else " " for c in text.lower()).split()


def word_errors(reference, hypothesis):
    """Fewest substitutions, deletions and insertions from one list of words to the other."""
    row = list(range(len(hypothesis) + 1))
    for i, word in enumerate(reference, 1):
        above, row[0] = row[0], i
        for j, heard in enumerate(hypothesis, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (word != heard))
    return row[-1]


def error_rate(pairs):
    """Word error rate in per cent, and words, of [(reference, hypothesis)] together."""
    errors = sum(word_errors(words_of(reference), words_of(hypothesis)) for reference, hypothesis in pairs)
    count = sum(len(words_of(reference)) for reference, _ in pairs)
    return 100 * errors / count, count


def top_tokens(answer):
    """Of each scored position the most probable token."""
    return [min(entry, key=lambda token: entry[token]["rank"]) for entry in answer["prompt_logprobs"][1:]]


def is_decisive(entry):
    """Whether the most probable token of a position leads by more than a near tie."""
    first, second = sorted((token["logprob"] for token in entry.values()), reverse=True)[:2]
    return first - second >= DECISIVE_NATS


@dataclass
class Agreement:
    """Positions, those where both have the same most probable token, and both counts of float32's decisive positions."""
    same: int = 0
    total: int = 0
    same_decisive: int = 0
    decisive: int = 0


def agreement(ours, theirs):
    """The Agreement of two lists of scored answers, of which `ours` says what is decisive."""
    found = Agreement()
    for a, b in zip(ours, theirs, strict=True):
        for entry, x, y in zip(a["prompt_logprobs"][1:], top_tokens(a), top_tokens(b), strict=True):
            found.total, found.same = found.total + 1, found.same + (x == y)
            if is_decisive(entry):
                found.decisive, found.same_decisive = found.decisive + 1, found.same_decisive + (x == y)
    return found


def judge_outputs(reference, candidate, score_of):
    """(same, equal in score, all): `score_of([(index, token ids)])` scores answers by the reference's weights."""
    changed = [i for i, (a, b) in enumerate(zip(reference, candidate, strict=True)) if a != b]
    scores = score_of([(i, reference[i]) for i in changed] + [(i, candidate[i]) for i in changed])
    pairs = list(zip(scores[:len(changed)], scores[len(changed):], strict=True))
    equal = sum(theirs >= own - EQUAL_SCORE for own, theirs in pairs)
    return len(reference) - len(changed), equal, len(reference)


# ---- running

class Engine:
    """The binary with some flags, over a folder that may be another one (a packed form) for some models."""

    def __init__(self, binary, flags, folders):
        self.binary, self.flags, self.folders = str(binary), flags, folders

    def run(self, arguments, folder=None):
        done = subprocess.run([self.binary, *map(str, arguments), *self.flags], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              cwd=folder)
        if done.returncode not in (0, 1):  # 1: some inputs failed, and their answers say why
            sys.exit(f"quality: {' '.join(map(str, arguments[:2]))} {' '.join(self.flags)}: {done.stderr.strip()[-600:]}")
        return done.stdout

    def folder(self, model):
        return self.folders.get(model.name, model)

    def generate(self, model, requests, score=False):
        with tempfile.TemporaryDirectory() as scratch:
            source, out = Path(scratch) / "in.jsonl", Path(scratch) / "out.jsonl"
            source.write_text("".join(json.dumps(request) + "\n" for request in requests), encoding="utf-8")
            self.run(["generate", self.folder(model), "--input", source, "--output", out, "--log-level", "error", *(["--score"] if score else [])])
            answers = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        return answers

    def transcribe(self, model, clips, language):
        """{path: text}"""
        with tempfile.TemporaryDirectory() as scratch:
            links = {f"{i}": clip for i, clip in enumerate(clips)}
            for name, clip in links.items():
                (Path(scratch) / f"{name}{clip.suffix}").symlink_to(clip.resolve())
            self.run(["transcribe", Path(self.folder(model)).resolve(), *(f"{n}{c.suffix}" for n, c in links.items()), "--language", language,
                      "--output-format", "json", "--verbose", "false", "--temperature-increment-on-fallback", "none", "--beam-size", 1,
                      "--condition-on-previous-text", "false"], folder=scratch)
            return {clip: json.loads((Path(scratch) / f"{name}.json").read_text(encoding="utf-8"))["text"] for name, clip in links.items()}


# ---- what is asked of the models

def clips():
    """[(path, language, text)] of ../shared/audio: those of its index, and recordings whose text the goldens have."""
    found = {}
    index, goldens = SHARED / "audio" / "spoken" / "refs.jsonl", SHARED / "golden" / "audio" / "wer.jsonl"
    for row in read_jsonl(index):
        found[SHARED / "audio" / row["file"]] = (row["language"], row["text"])
    for row in read_jsonl(goldens):
        found[SHARED / row["audio"]] = (row["language"], row["text"])
    return [(path, *rest) for path, rest in sorted(found.items()) if path.exists()]


def read_jsonl(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()] if path.exists() else []


def word_list(limit):
    """The bundled test words, and as many more made of pairs of them."""
    plain = (BUNDLED / "words_test.txt").read_text(encoding="utf-8").split("\n")
    plain = [word.strip() for word in plain if word.strip()]
    made = [f"{a}{b}" for a, b in zip(plain, reversed(plain)) if len(a) + len(b) < 24]
    return (plain + made)[:limit]


def word_requests(model, words):
    """Requests of words; of a model without a tokenizer by the characters that its config lists."""
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    characters = config.get("grapheme_chars")
    if not characters:
        return [{"prompt": word} for word in words]
    ids = {character: index for index, character in enumerate(characters)}
    begin, end = config["bos_token_id"], config["eos_token_id"]
    known = [word for word in words if all(character in ids for character in word)]
    return [{"prompt": {"prompt_token_ids": [begin, *(ids[c] for c in word), end]}, "max_tokens": 40} for word in known]


def samples_of(path):
    """Mono 16-bit samples of an audio file."""
    import av
    resampler, found = av.AudioResampler("s16", "mono", SAMPLE_RATE), bytearray()
    with av.open(str(path)) as container:
        for frame in [*container.decode(audio=0), None]:
            for part in resampler.resample(frame):
                found += bytes(part.planes[0])[:2 * part.samples]
    return bytes(found)


def window_starts(num_samples):
    """Of windows that begin every STRIDE_SECONDS until one reaches the end."""
    window, stride = WINDOW_SECONDS * SAMPLE_RATE, STRIDE_SECONDS * SAMPLE_RATE
    return list(range(0, max(num_samples - window, 0) + stride, stride)) if num_samples > window else [0]


def recorded_windows(folder):
    """[(path, language)] of the recordings' windows, written to `folder`."""
    found = []
    for name, language in RECORDINGS:
        samples = samples_of(SHARED / "audio" / name)
        for start in window_starts(len(samples) // 2):
            path = Path(folder) / f"{Path(name).stem}_{start // SAMPLE_RATE:03}.wav"
            with wave.open(str(path), "wb") as out:
                out.setnchannels(1)
                out.setsampwidth(2)
                out.setframerate(SAMPLE_RATE)
                out.writeframes(samples[2 * start:2 * (start + WINDOW_SECONDS * SAMPLE_RATE)])
            found.append((path, language))
    return found


def audio_requests(model, inputs):
    """Of [(path, language)]: one window each, behind Whisper's whole prompt."""
    settings = json.loads((model / "generation_config.json").read_text(encoding="utf-8"))
    prompt = lambda language: [settings["decoder_start_token_id"], settings["lang_to_id"][f"<|{language}|>"],
                               settings["task_to_id"]["transcribe"], settings["no_timestamps_token_id"]]
    return [{"prompt": {"prompt_token_ids": prompt(language), "multi_modal_data": {"audio": str(path.resolve())}}, "max_tokens": 220}
            for path, language in inputs]


def without_errors(model, requests, answers):
    """The requests that float32 answers: audio of more than one window is for the word error rate alone."""
    kept = [(request, answer) for request, answer in zip(requests, answers, strict=True) if "error" not in answer]
    if len(kept) < len(requests):
        print(f"     {len(requests) - len(kept)} inputs of {model.name} left out: {next(a for a in answers if 'error' in a)['error']['message']}")
    return [list(part) for part in zip(*kept)]


def text_models(limit):
    """[(folder, requests)] of every model of text that is here."""
    folders = [BUNDLED, *(SHARED / "models" / name for name in ("bart-g2p-en-us", "bart-g2p-en-gb"))]
    return [(folder, word_requests(folder, word_list(limit))) for folder in folders if folder.exists()]


# ---- gates

class Report:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def gate(self, name, figure, limit, good):
        self.passed, self.failed = self.passed + good, self.failed + (not good)
        print(f"{'ok  ' if good else 'FAIL'} {name:<44} {figure:<58} limit {limit}", flush=True)

    def skip(self, name, why):
        self.skipped += 1
        print(f"skipped: {name}: {why}", flush=True)


def gate_wer(report, baseline, candidate):
    model, all_clips = SHARED / "models" / "whisper-tiny", clips()
    if not (model.exists() and all_clips):
        return report.skip("word error rate", "no ../shared/models/whisper-tiny or no clips with texts")
    heard = {engine: {} for engine in (baseline, candidate)}
    for language in sorted({language for _, language, _ in all_clips}):
        for engine, texts in heard.items():
            texts.update(engine.transcribe(model, [path for path, code, _ in all_clips if code == language], language))
    for name, chosen in (("all languages", all_clips), ("English", [clip for clip in all_clips if clip[1] == "en"])):
        rates = [error_rate([(text, texts[path]) for path, _, text in chosen]) for texts in (heard[baseline], heard[candidate])]
        rise = rates[1][0] - rates[0][0]
        changed = sum(heard[baseline][path] != heard[candidate][path] for path, _, _ in chosen)
        report.gate(f"word error rate, whisper-tiny, {name}",
                    f"{rates[0][0]:.2f} -> {rates[1][0]:.2f} % ({rise:+.2f} points; {changed} of {len(chosen)} texts differ)",
                    f"+{MAX_WER_RISE} points", rise <= MAX_WER_RISE)


def forced(requests, answers):
    """Requests that score the answers."""
    found = []
    for request, answer in zip(requests, answers, strict=True):
        ids = {"prompt_token_ids": answer["prompt_token_ids"] + answer["outputs"][0]["token_ids"]}
        has_audio = isinstance(request["prompt"], dict) and "multi_modal_data" in request["prompt"]
        found.append({"prompt": {**request["prompt"], **ids}, "prompt_logprobs": 2} if has_audio else
                     {"prompt": request["prompt"], "decoder_prompt": ids, "prompt_logprobs": 2})
    return found


def forced_agreement(model, requests, answers, baseline, candidate):
    scored = forced(requests, answers)
    return agreement(*(engine.generate(model, scored, score=True) for engine in (baseline, candidate)))


def gate_agreement(report, name, found):
    for kind, same, total, least in (("", found.same, found.total, MIN_AGREEMENT),
                                     (", decisive", found.same_decisive, found.decisive, MIN_DECISIVE_AGREEMENT)):
        if not total:
            report.skip(f"top-1 agreement, {name}{kind}", "no such position")
            continue
        report.gate(f"top-1 agreement, {name}{kind}", f"{100 * same / total:.3f} % of {total} positions ({total - same} differ)",
                    f"> {100 * least:g} %", same / total > least)


def gate_speech_agreement(report, scratch, baseline, candidate):
    model = SHARED / "models" / "whisper-tiny"
    if not (model.exists() and clips()):
        return report.skip("top-1 agreement of speech", "no ../shared/models/whisper-tiny or no clips")

    def measure(inputs):
        requests = audio_requests(model, inputs)
        requests, answers = without_errors(model, requests, baseline.generate(model, requests))
        return forced_agreement(model, requests, answers, baseline, candidate)

    try:
        gate_agreement(report, f"{model.name}, recordings", measure(recorded_windows(scratch)))
    except ImportError:
        report.skip("top-1 agreement of recordings", "PyAV is missing: apt install python3-av")
    for name, is_english in (("English clips", True), ("clips of other languages", False)):
        gate_agreement(report, f"{model.name}, {name}", measure([(path, language) for path, language, _ in clips() if (language == "en") == is_english]))


def gate_outputs(report, model, requests, answers, baseline, candidate):
    ids = [[answer["outputs"][0]["token_ids"] for answer in found] for found in (answers, candidate.generate(model, requests))]

    def score_of(chosen):
        if not chosen:
            return []
        scored = forced([requests[i] for i, _ in chosen],
                        [{"prompt_token_ids": answers[i]["prompt_token_ids"], "outputs": [{"token_ids": tokens}]} for i, tokens in chosen])
        return [answer["score"] for answer in baseline.generate(model, scored, score=True)]

    same, equal, total = judge_outputs(*ids, score_of)
    report.gate(f"greedy answers, {model.name}", f"{100 * (same + equal) / total:.2f} % of {total} ({same} the same, {equal} equal in score)",
                f"{100 * MIN_SAME_OUTPUTS:.0f} %", (same + equal) / total >= MIN_SAME_OUTPUTS)


def transfer_flags(dtype):
    """The flags for encoders in a process of their own, whose rows travel as `dtype`. None if it is empty."""
    return ["--epd", "1E1D", "--ec-transfer-dtype", dtype] if dtype else []


def check(options):
    folders = dict(entry.split("=", 1) for entry in options.candidate)
    binary = Path(options.transept).resolve()
    baseline = Engine(binary, ["--dtype", "float32", "--quantization", "none", "--kv-cache-dtype", "float32"], {})
    flags = ["--dtype", options.dtype, "--quantization", options.quantization, "--kv-cache-dtype", options.kv_cache_dtype,
             *transfer_flags(options.ec_transfer_dtype), *options.flag]
    candidate = Engine(binary, flags, {name: Path(path).resolve() for name, path in folders.items()})
    report, wanted = Report(), options.only.split(",") if options.only else GATES
    print(f"float32 against {' '.join(flags)}" + "".join(f", {name} of {path}" for name, path in folders.items()))
    if "wer" in wanted:
        gate_wer(report, baseline, candidate)
    for model, requests in text_models(options.limit) if {"agreement", "outputs"} & set(wanted) else ():
        requests, answers = without_errors(model, requests, baseline.generate(model, requests))
        if "agreement" in wanted:
            gate_agreement(report, model.name, forced_agreement(model, requests, answers, baseline, candidate))
        if "outputs" in wanted:
            gate_outputs(report, model, requests, answers, baseline, candidate)
    if "agreement" in wanted:  # speech's answers are judged by their words
        with tempfile.TemporaryDirectory() as scratch:
            gate_speech_agreement(report, scratch, baseline, candidate)
    print(f"{report.passed} passed, {report.failed} failed" + (f", {report.skipped} skipped" if report.skipped else ""))
    return 1 if report.failed or not report.passed else 0


def main():
    parser = argparse.ArgumentParser(prog="./dev quality", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--quantization", default="auto")
    parser.add_argument("--kv-cache-dtype", default="auto")
    parser.add_argument("--ec-transfer-dtype", default="", help="what rows travel as between an encode and a decode instance (--epd 1E1D)")
    parser.add_argument("--flag", action="append", default=[], help="one more argument of the candidate: --flag=--isa=avx2")
    parser.add_argument("--candidate", action="append", default=[], metavar="MODEL=FOLDER", help="another form of a model: --candidate g2p=packed/g2p")
    parser.add_argument("--only", default="", help=f"of {','.join(GATES)}")
    parser.add_argument("--limit", type=int, default=4000, help="inputs of a model at most (default: %(default)s)")
    parser.add_argument("--transept", type=Path, default=ROOT / "build" / "release" / "transept")
    sys.exit(check(parser.parse_args()))


if __name__ == "__main__":
    main()
