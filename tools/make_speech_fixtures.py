#!/usr/bin/env python3
"""Writes src/speech/testdata/: small cases of long audio, and what openai-whisper makes of them.

    tools/make_speech_fixtures.py            # needs `pip install openai-whisper==20250625`

No model is asked: attention is a table of numbers that the tests can make too (weights()), decodings are drawn at random.

writers.jsonl    a transcript, options of subtitles, and the files txt, vtt, srt, tsv
ratios.jsonl     a text, its compression ratio
split.jsonl      tokens with their bytes (base64), and their words: [word, number of tokens]
warping.jsonl    a matrix of costs, many of them equal, and its path
alignment.jsonl  tokens, the seed of their attention, and their words with times
words.jsonl      an alignment and the segments of a window; the segments with words
runs.jsonl       a whole transcribe(): every decoding that it asked for (prompt, temperature, answer), and its segments
"""
import base64
import importlib
import json
import math
import pathlib
import random
import types

import numpy as np
import torch
import whisper
from whisper import timing, utils
from whisper.decoding import DecodingResult
from whisper.tokenizer import get_tokenizer

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "src" / "speech" / "testdata"
transcription = importlib.import_module("whisper.transcribe")
SENTENCES = ("And so, my fellow Americans: ask not what your country can do.", "Wait... what? \"Yes!\" (he said) - no [really] {ok} it's 3.14% of $5.",
             "naïve café — ½ Straße “quoted” ¿qué?", "日本語の文、です。終わり！", "emoji 👍🏽 and ☕ -->  arrows", "สวัสดีครับ ไทย", "a b c", "Hm.")


def write(name, rows):
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / name, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


# ------------------------------------------------------------------ writers
def random_words(rng, start):
    words = []
    for piece in rng.choice(SENTENCES).split(" "):
        start += rng.choice((0, 0, 0.02, 0.3, 3.5))
        end = start + rng.choice((0, 0.0004, 0.24, 1.1))
        word = " " + piece if rng.random() < 0.9 else piece
        if rng.random() < 0.08:
            word = rng.choice((" \n", "\u3000" + piece + "\x1f", " a\nb", piece + "\n", "", "\t", " " + piece * 9))
        words.append({"word": word, "start": round(start, 4), "end": round(end, 4), "probability": 0.5})
        start = end
    return words


def random_transcript(rng, has_words):
    segments, at = [], rng.choice((0, 0.0005, 3590.9996, 359999.9995))
    for i in range(rng.randrange(6)):
        words = random_words(rng, at) if rng.random() < 0.9 else []
        end = words[-1]["end"] if words else at + 1.0005
        text = "".join(w["word"] for w in words) + rng.choice(("", "", " --> ", "\t--->\u2028"))
        segments.append({"id": i, "seek": 0, "start": at, "end": end, "text": text, "tokens": [], "temperature": 0.0, "avg_logprob": -0.25,
                         "compression_ratio": 1.5, "no_speech_prob": 0.0, **({"words": words} if has_words else {})})
        at = round(end + rng.choice((0, 0.0015, 5)), 4)
    return {"text": "", "segments": segments, "language": "en"}


def written(fmt, result, options):
    path = FOLDER / f"x.{fmt}"
    utils.get_writer(fmt, str(FOLDER))(result, "x.wav", **options)
    text = path.read_bytes().decode()
    path.unlink()
    return text


def writers():
    rng = random.Random(1)
    for i in range(48):
        result = random_transcript(rng, i % 7 != 0)
        options = {"max_line_width": rng.choice((None, None, 1, 12, 42)), "max_line_count": rng.choice((None, None, 1, 2, 3)),
                   "max_words_per_line": rng.choice((None, None, 1, 3, 2000)), "highlight_words": rng.random() < 0.4}
        yield {"transcript": result, "options": options, **{fmt: written(fmt, result, options) for fmt in ("txt", "vtt", "srt", "tsv")}}


def ratios():
    rng = random.Random(2)
    for text in ("", "a", "you", SENTENCES[0], SENTENCES[3], "no no no no no " * 40, "".join(rng.choice("abcdefgh é") for _ in range(3000))):
        yield {"text": text, "ratio": utils.compression_ratio(text)}


# ------------------------------------------------------------------ words
def with_bytes(tokenizer, tokens):
    return [[t, base64.b64encode(tokenizer.encoding.decode_single_token_bytes(t)).decode()] for t in tokens]


def random_tokens(rng, tokenizer):
    """Text as the tokenizer cuts it, or each byte for itself, or with bytes that are no UTF-8 between characters."""
    text = " ".join(rng.sample(SENTENCES, rng.randrange(1, 3)))
    byte_token = lambda b: tokenizer.encoding.encode_single_token(bytes([b]))
    way = rng.randrange(3)
    if way == 0:
        return tokenizer.encode(" " + text)
    if way == 1:
        return [byte_token(b) for b in text.encode()][:60]
    tokens = []
    for word in text.split(" "):
        tokens += tokenizer.encode(" " + word)
        if rng.random() < 0.2:
            # Each a whole piece by itself, whatever follows: a lone continuation byte, or one that begins nothing.
            tokens += [byte_token(rng.choice((0x80, 0xBF, 0xC0, 0xFF)))] * rng.randrange(1, 3)
    return tokens


def splits():
    rng = random.Random(3)
    for language in ("en", "fr", "ja", "zh", "th", "lo", "my", "yue", "de", "ko"):
        tokenizer = get_tokenizer(True, num_languages=100, language=language)
        for _ in range(4):
            tokens = random_tokens(rng, tokenizer)
            words, word_tokens = tokenizer.split_to_word_tokens(tokens + [tokenizer.eot])
            assert words[-1] == "<|endoftext|>" and sum(len(t) for t in word_tokens) == len(tokens) + 1
            yield {"language": language, "tokens": with_bytes(tokenizer, tokens), "words": [[w, len(t)] for w, t in zip(words[:-1], word_tokens)]}


def warping():
    rng = random.Random(4)
    for i in range(60):
        rows, columns = rng.randrange(1, 13), rng.randrange(1, 19)
        scale = rng.choice((1, 1, 2, 3, 0))
        costs = [[float(rng.randrange(-scale, scale + 1)) if i % 3 else rng.gauss(0, 1) for _ in range(columns)] for _ in range(rows)]
        matrix = torch.tensor(costs, dtype=torch.float32)
        path = timing.dtw(matrix)
        yield {"costs": matrix.tolist(), "rows": path[0].tolist(), "columns": path[1].tolist()}


def weights(seed, heads, tokens, positions):
    """The numbers that the tests make as well: a linear congruential generator, more on the diagonal; they sum to more than 1."""
    state, out = seed, np.empty((heads, tokens, positions), dtype=np.float64)
    for h in range(heads):
        for t in range(tokens):
            for p in range(positions):
                state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
                near = abs(p * tokens - t * positions) < 2 * positions
                out[h, t, p] = ((state >> 33) % 1000 + 1) * (30 if near else 1)
    return out


class FakeAttention(torch.nn.Module):
    def __init__(self, scores):
        super().__init__()
        self.scores = scores

    def forward(self, x):
        return x, self.scores


class FakeModel:
    """As much of a model as find_alignment asks: attention scores a layer, and logits."""

    def __init__(self, scores, logits):
        self.attention = [FakeAttention(scores[None, i : i + 1]) for i in range(len(scores))]
        self.decoder = types.SimpleNamespace(blocks=[types.SimpleNamespace(cross_attn=a) for a in self.attention])
        self.dims = types.SimpleNamespace(n_text_layer=len(scores))
        self.alignment_heads = torch.ones(len(scores), 1).to_sparse()
        self.device, self.logits = torch.device("cpu"), logits

    def __call__(self, _mel, tokens):
        for attention in self.attention:
            attention(torch.zeros(1))
        return self.logits[None, : tokens.shape[-1]]


def alignments():
    rng = random.Random(5)
    for i in range(24):
        language = rng.choice(("en", "fr", "ja"))
        tokenizer = get_tokenizer(True, language=language)
        tokens = random_tokens(rng, tokenizer)[: rng.randrange(1, 24)]
        # Where a character is cut off, the reference loses words.
        while len(tokens) > 1 and "\ufffd" in tokenizer.decode(tokens[-3:])[-1:]:
            tokens.pop()
        heads, positions = rng.randrange(1, 5), rng.choice((4, 40, 90))
        num_frames = rng.choice((2 * positions, 2 * positions + 50, positions + 1, 5, 9))  # of one position alone the reference divides 0 by 0
        num_tokens = len(tokenizer.sot_sequence) + 2 + len(tokens)
        scores = torch.tensor(np.log(weights(i + 1, heads, num_tokens, positions)), dtype=torch.float32)
        logits = torch.zeros(num_tokens, tokenizer.encoding.n_vocab)
        for k, t in enumerate(tokens):
            logits[len(tokenizer.sot_sequence) + k, t] = rng.uniform(5, 20)
        probabilities = logits[len(tokenizer.sot_sequence) :, : tokenizer.eot].softmax(-1)[range(len(tokens)), tokens].tolist()
        words = timing.find_alignment(FakeModel(scores, logits), tokenizer, tokens, torch.zeros(80, 3000), num_frames)
        yield {"language": language, "seed": i + 1, "heads": heads, "positions": positions, "prefix": len(tokenizer.sot_sequence), "frames": num_frames,
               "tokens": with_bytes(tokenizer, tokens), "probabilities": probabilities,
               "words": [[w.word, len(w.tokens), float(w.start), float(w.end), float(w.probability)] for w in words]}


# ------------------------------------------------------------------ words of segments
def random_alignment(rng, tokenizer, tokens, num_frames):
    """As find_alignment gives it: words one after the other, within the window; long and short ones, pauses, punctuation."""
    if not tokens:
        return []
    words, word_tokens = tokenizer.split_to_word_tokens(tokens + [tokenizer.eot])
    longest, at, alignment = num_frames // 2, rng.choice((0, 0, 40, 400)), []
    for word, ids in zip(words[:-1], word_tokens):
        if rng.random() < 0.06:  # the rest is at the window's end
            at = max(at, longest - rng.randrange(150))
        end = min(at + rng.choice((0, 4, 12, 12, 18, 40, 130)), longest)
        alignment.append(timing.WordTiming(word, ids, np.float64(min(at, longest) / 50), np.float64(end / 50), rng.choice((0.05, 0.6, 0.99))))
        at = end
    return alignment


def as_rows(alignment):
    return [[w.word, len(w.tokens), float(w.start), float(w.end), w.probability] for w in alignment]


def plain(value):
    """Without numpy's numbers."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value


def words_of_segments():
    rng = random.Random(6)
    original = timing.find_alignment
    for i in range(60):
        tokenizer = get_tokenizer(True, language="ja" if i % 5 == 0 else "en")
        seek, segments, at = rng.choice((0, 37, 3000, 123457)), [], 0.0
        for _ in range(rng.randrange(1, 4)):
            end = round(at + rng.choice((0.0, 1.4, 6.02)), 2)
            tokens = tokenizer.encode(" " + rng.choice(SENTENCES))[: rng.randrange(14)]
            segments.append({"seek": seek, "start": seek / 100 + at, "end": seek / 100 + end, "tokens": [tokenizer.timestamp_begin, *tokens, tokenizer.timestamp_begin + round(end * 50)]})
            at = end
        before = plain(segments)
        alignment = random_alignment(rng, tokenizer, [t for s in segments for t in s["tokens"] if t < tokenizer.eot], 3000)
        row = {"alignment": as_rows(alignment), "alignment_tokens": [t for w in alignment for t in w.tokens], "end_of_text": tokenizer.eot, "segments": before,
               "last_speech_timestamp": rng.choice((0.0, seek / 100 - 0.5, seek / 100))}
        timing.find_alignment = lambda *_, **__: alignment
        timing.add_word_timestamps(segments=segments, model=None, tokenizer=tokenizer, mel=None, num_frames=3000, last_speech_timestamp=row["last_speech_timestamp"])
        yield {**row, "words": [plain([s["start"], s["end"], s["words"]]) for s in segments]}
    timing.find_alignment = original


# ------------------------------------------------------------------ runs
def random_decoding(rng, tokenizer):
    """Tokens as the timestamp rules allow them: pairs, never going back; a single end, an unfinished one, or no pair."""
    begin, tokens, at = tokenizer.timestamp_begin, [], rng.choice((0, 0, 20))
    pieces = rng.choice((0, 1, 1, 2, 3))
    for _ in range(pieces):
        end = min(at + rng.choice((0, 60, 250, 600)), 1500)
        tokens += [begin + at, *tokenizer.encode(" " + rng.choice(SENTENCES))[: rng.randrange(1, 14)], begin + end]
        at = min(end + rng.choice((0, 0, 100)), 1500)
    way = rng.randrange(4)
    if way == 0 or not tokens:
        tokens += [begin + at, *tokenizer.encode(rng.choice((" unfinished business", " ", " well")))]
    elif way == 1:
        tokens += [begin + at]
    # A last timestamp of 0 would hold the reference for ever in its place.
    stamps = [t for t in tokens if t >= begin]
    pairs = [i for i in range(1, len(tokens)) if tokens[i - 1] >= begin and tokens[i] >= begin]
    if pairs and stamps and tokens[pairs[-1] - 1] == begin:
        return [begin, *tokenizer.encode(" again")]
    return tokens


class FakeSpeechModel:
    """Answers every decoding at random, and notes what it was asked."""

    def __init__(self, rng, tokenizer):
        self.rng, self.tokenizer, self.calls, self.alignments = rng, tokenizer, [], []
        self.dims = types.SimpleNamespace(n_mels=80, n_audio_ctx=1500, n_text_ctx=448)
        self.device, self.is_multilingual, self.num_languages = torch.device("cpu"), True, 99

    def decode(self, _mel, options):
        tokens, good = random_decoding(self.rng, self.tokenizer), self.rng.random() < 0.7
        answer = {"tokens": tokens, "avg_logprob": -0.3 if good else self.rng.choice((-1.0, -1.2, -0.9)),
                  "no_speech_prob": 0.1 if good else self.rng.choice((0.6, 0.9)), "compression_ratio": 1.2 if good else self.rng.choice((2.4, 3.0))}
        self.calls.append({"prompt": list(options.prompt or [])[-223:], "temperature": float(options.temperature), **answer})
        return DecodingResult(audio_features=None, language="en", text="", temperature=options.temperature, **answer)

    def align(self, _model, tokenizer, tokens, _mel, num_frames, **_):
        alignment = random_alignment(self.rng, tokenizer, tokens, num_frames)
        self.alignments.append({"frames": num_frames, "words": as_rows(alignment)})
        return alignment


def run(rng, index):
    tokenizer = get_tokenizer(True, language="en", task="transcribe")
    model, content_frames = FakeSpeechModel(rng, tokenizer), rng.choice((1, 700, 3000, 3001, 9500, 20000))
    options = {"clip_timestamps": rng.choice(("0", "0", "", "0", "5,20.5,70", "12.345,33.3,1,2.005")), "word_timestamps": index % 2 == 1,
               "condition_on_previous_text": rng.random() < 0.8, "carry_initial_prompt": rng.random() < 0.5,
               "initial_prompt": rng.choice((None, "Bill Gates, TED2010", "long " * 200)), "no_speech_threshold": rng.choice((0.6, 0.6, None)),
               "logprob_threshold": rng.choice((-1.0, -1.0, None)), "compression_ratio_threshold": rng.choice((2.4, 2.4, None)),
               "temperature": tuple(np.arange(0.0, 1.0 + 1e-6, rng.choice((0.2, 0.3))).tolist()) if rng.random() < 0.8 else (0.0,),
               "hallucination_silence_threshold": rng.choice((None, 0.5, 2.0)) if index % 2 == 1 else None}
    # The reference never leaves a clip that lies beyond the audio.
    if options["clip_timestamps"][:1] not in ("0", "") and content_frames < 9500:
        options["clip_timestamps"] = "0"
    transcription.log_mel_spectrogram = lambda *_, **__: torch.zeros(80, content_frames + 3000)
    timing.find_alignment = model.align
    result = transcription.transcribe(model, None, language="en", fp16=False, **options)
    initial = tokenizer.encode(" " + options["initial_prompt"].strip()) if options["initial_prompt"] else []
    used = sorted({t for c in model.calls for t in c["tokens"] if t < tokenizer.eot})
    return {**options, "initial_prompt": initial, "content_frames": content_frames, "end_of_text": tokenizer.eot, "timestamp_begin": tokenizer.timestamp_begin,
            "bytes": with_bytes(tokenizer, used), "calls": model.calls, "alignments": model.alignments, "segments": plain(result["segments"]), "text": result["text"]}


def runs():
    rng, original = random.Random(7), timing.find_alignment
    rows = [run(rng, i) for i in range(48)]
    timing.find_alignment = original
    return rows


def main():
    assert whisper.__version__ == "20250625", whisper.__version__
    assert math.isclose(utils.compression_ratio("a"), 1 / 9)
    for name, rows in (("writers", writers), ("ratios", ratios), ("split", splits), ("warping", warping), ("alignment", alignments),
                       ("words", words_of_segments), ("runs", runs)):
        write(name + ".jsonl", rows())


if __name__ == "__main__":
    main()
