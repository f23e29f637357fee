#!/usr/bin/env python3
"""Makes tests/models/whisper-transcribes: a tiny Whisper with a tokenizer of its own and windows of 30 s, and what
openai-whisper's transcribe() makes of synthetic audio with it.

    tests/make_transcripts.py            # needs torch, safetensors, tokenizers and openai-whisper==20250625

transcripts.jsonl, a line a case: {"id", "audio": {"seed", "num_samples", "silence": [[begin, end], ..]}, "options",
"result"}. Audio is drawn by a generator that a test can repeat: see synthetic_audio(). Only cases are kept whose result
stays the same, times of words too, when the weights are disturbed: every right float32 engine gives it.

The weights are random; but what the final norm adds to every row gives text, the end token and the timestamps their
share, so that windows hold a few segments and end.
"""
import importlib
import json
import math
import pathlib
import shutil

import numpy as np
import tiktoken
import torch
import whisper
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from whisper.model import ModelDimensions

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE / "models" / "whisper-transcribes"
decoding = importlib.import_module("whisper.decoding")
transcription = importlib.import_module("whisper.transcribe")
timing = importlib.import_module("whisper.timing")
whisper_tokenizer = importlib.import_module("whisper.tokenizer")

TEXT, LANGUAGES, WIDTH, LAYERS, TEXT_POSITIONS = 400, 4, 24, 2, 96
SPECIALS = ["<|endoftext|>", "<|startoftranscript|>", *[f"<|{code}|>" for code in list(whisper_tokenizer.LANGUAGES)[:LANGUAGES]],
            "<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]
TIMESTAMPS = [f"<|{i * 0.02:.2f}|>" for i in range(1501)]
VOCABULARY = TEXT + len(SPECIALS) + len(TIMESTAMPS)
ID = {spelling: TEXT + i for i, spelling in enumerate(SPECIALS + TIMESTAMPS)}
HEADS = {"encoder": 3, "decoder": 4}
ALIGNMENT_HEADS = [[0, 1], [1, 0], [1, 3]]
SEED, DISTURBANCE, NUM_DISTURBED, MOST_WINDOWS = 7, 1e-5, 2, 40
# What the final norm adds to the scores of a kind of token.
SHARES = {"words": 1.5, "text": 0.0, "bytes": -2.0, "end": 2.5, "timestamps": -4.5, "specials": -12.0, "nospeech": 4.0}
TABLE_SCALE, SHARPNESS, SHARES_SCALE = 0.25, 2.6, 20.0


# ------------------------------------------------------------------ audio
def synthetic_audio(seed, num_samples, silence=()):
    """16-bit samples: triangle waves and noise by turns, all by integers. state = state * 1664525 + 1013904223 mod 2^32."""
    out, state = np.zeros(num_samples, dtype=np.int32), seed
    def draw(count):
        nonlocal state
        state = (state * 1664525 + 1013904223) % 2**32
        return (state >> 8) % count
    at = 0
    while at < num_samples:
        length, kind, period, loudness = 800 + draw(6400), draw(4), 20 + draw(180), 500 + draw(8000)
        for i in range(at, min(at + length, num_samples)):
            if kind == 3:
                out[i] = draw(2 * loudness + 1) - loudness
            elif kind > 0:
                phase = (i - at) % period
                out[i] = 4 * loudness * abs(phase - period // 2) // period - loudness
        at += length
    for begin, end in silence:
        out[begin:end] = 0
    return (out / 32768).astype(np.float32)


# ------------------------------------------------------------------ the model
def train_tokenizer():
    """Byte-level BPE without special tokens around the text, the specials behind it, as published Whispers have it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=TEXT, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train([str(HERE / "corpus.txt")], trainer)
    assert tokenizer.get_vocab_size() == TEXT, tokenizer.get_vocab_size()
    tokenizer.add_special_tokens([AddedToken(spelling, special=True, normalized=False) for spelling in SPECIALS + TIMESTAMPS])
    assert all(tokenizer.token_to_id(spelling) == id for spelling, id in ID.items())
    return tokenizer


def reference_tokenizer(tokenizer, language, task):
    """The same tokens as openai-whisper's Tokenizer."""
    letters = pre_tokenizers.ByteLevel.alphabet()
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    byte_of = {chr(b): b for b in kept} | {chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in kept)}
    assert set(byte_of) == set(letters)
    ranks = {bytes(byte_of[c] for c in piece): id for piece, id in tokenizer.get_vocab(with_added_tokens=False).items()}
    pattern = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
    encoding = tiktoken.Encoding("tiny", explicit_n_vocab=VOCABULARY, pat_str=pattern, mergeable_ranks=ranks, special_tokens=ID)
    return whisper_tokenizer.Tokenizer(encoding=encoding, num_languages=LANGUAGES, language=language, task=task)


DIMENSIONS = ModelDimensions(n_mels=80, n_audio_ctx=1500, n_audio_state=WIDTH, n_audio_head=HEADS["encoder"], n_audio_layer=LAYERS,
                             n_vocab=VOCABULARY, n_text_ctx=TEXT_POSITIONS, n_text_state=WIDTH, n_text_head=HEADS["decoder"],
                             n_text_layer=LAYERS)


class Tiny(whisper.Whisper):
    """openai-whisper tells by the vocabulary's size what this one says of itself."""
    is_multilingual = True
    num_languages = LANGUAGES
    num_decoded = 0

    def decode(self, *arguments):
        self.num_decoded += 1
        if self.num_decoded > MOST_WINDOWS:
            raise StopIteration
        return super().decode(*arguments)


def make_weights(tokenizer):
    """Every parameter of the reference by its name there, in the precision that is stored."""
    generator = torch.Generator().manual_seed(SEED)
    state = Tiny(DIMENSIONS).state_dict()
    for name, tensor in state.items():
        if name == "encoder.positional_embedding":
            continue
        values = torch.randn(*tensor.shape, generator=generator)
        if ".ln" in name or "_ln" in name:
            values = (1 + 0.2 * values) if name.endswith("weight") else 0.2 * values
        elif name == "decoder.token_embedding.weight":
            values = TABLE_SCALE * values
        elif "positional" in name:
            values = 0.5 * values
        elif name.endswith("bias"):
            values = 0.2 * values
        else:
            gain = 2.5 if ("query" in name or "key" in name) else 1.8
            values = values * (gain / math.sqrt(math.prod(tensor.shape[1:])))
        state[name] = values
    table = state["decoder.token_embedding.weight"]
    kind = lambda piece: "words" if piece.startswith("\u0120") else "text" if piece.isascii() else "bytes"
    table[:, 0] = SHARES["specials"]
    for piece, id in tokenizer.get_vocab(with_added_tokens=False).items():
        table[id, 0] = SHARES[kind(piece)]
    table[ID["<|endoftext|>"], 0] = SHARES["end"]
    table[ID["<|nospeech|>"], 0] = SHARES["nospeech"]
    table[ID["<|0.00|>"]:, 0] = SHARES["timestamps"]
    table[:, 0] /= SHARES_SCALE
    state["decoder.ln.weight"] *= SHARPNESS
    state["decoder.ln.weight"][0] = 0
    state["decoder.ln.bias"][0] = SHARES_SCALE
    return {name: tensor.to(torch.float16) for name, tensor in state.items()}


def make_reference(state, disturbed=0):
    """openai-whisper's model of the stored weights, in single precision; disturbed: each a little off, by this seed."""
    generator = torch.Generator().manual_seed(disturbed)
    off = lambda tensor: 1 + (DISTURBANCE * torch.randn(*tensor.shape, generator=generator) if disturbed else 0)
    model = Tiny(DIMENSIONS)
    model.load_state_dict({name: tensor.float() * off(tensor) for name, tensor in state.items()})
    heads = torch.zeros(LAYERS, HEADS["decoder"], dtype=torch.bool)
    for layer, head in ALIGNMENT_HEADS:
        heads[layer, head] = True
    model.register_buffer("alignment_heads", heads.to_sparse(), persistent=False)
    return model.eval()


def published_name(name):
    """A parameter of openai-whisper by its name in published checkpoints (transformers)."""
    for ours, theirs in (("token_embedding", "embed_tokens"), ("positional_embedding", "embed_positions.weight"), ("blocks", "layers"),
                         ("attn_ln", "self_attn_layer_norm"), ("cross_self_attn_layer_norm", "encoder_attn_layer_norm"),
                         ("cross_attn", "encoder_attn"), (".attn.", ".self_attn."), ("mlp_ln", "final_layer_norm"), ("mlp.0", "fc1"),
                         ("mlp.2", "fc2"), ("query", "q_proj"), ("key", "k_proj"), ("value", "v_proj"), ("attn.out", "attn.out_proj"),
                         ("ln_post", "layer_norm"), ("decoder.ln.", "decoder.layer_norm.")):
        name = name.replace(ours, theirs)
    return "model." + name


def write_model(tokenizer, state):
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    end, blank = ID["<|endoftext|>"], tokenizer.encode(" ").ids
    config = {"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "is_encoder_decoder": True,
              "vocab_size": VOCABULARY, "d_model": WIDTH, "num_mel_bins": 80, "encoder_layers": LAYERS, "decoder_layers": LAYERS,
              "encoder_attention_heads": HEADS["encoder"], "decoder_attention_heads": HEADS["decoder"], "encoder_ffn_dim": 4 * WIDTH,
              "decoder_ffn_dim": 4 * WIDTH, "max_source_positions": 1500, "max_target_positions": TEXT_POSITIONS, "scale_embedding": False,
              "bos_token_id": end, "eos_token_id": end, "pad_token_id": end, "decoder_start_token_id": end + 1}
    generation = {"decoder_start_token_id": end + 1, "eos_token_id": end, "bos_token_id": end, "pad_token_id": end,
                  "begin_suppress_tokens": [*blank, end], "is_multilingual": True,
                  "suppress_tokens": list(reference_tokenizer(tokenizer, "en", "transcribe").non_speech_tokens),
                  "lang_to_id": {spelling: id for spelling, id in ID.items() if spelling.strip("<|>") in whisper_tokenizer.LANGUAGES},
                  "task_to_id": {task: ID[f"<|{task}|>"] for task in ("transcribe", "translate")},
                  "no_timestamps_token_id": ID["<|notimestamps|>"], "prev_sot_token_id": ID["<|startofprev|>"],
                  "max_initial_timestamp_index": 50, "alignment_heads": ALIGNMENT_HEADS}
    preprocessor = {"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 80, "sampling_rate": 16000, "hop_length": 160,
                    "chunk_length": 30, "n_fft": 400, "n_samples": 480000, "nb_max_frames": 3000}
    for name, value in (("config", config), ("generation_config", generation), ("preprocessor_config", preprocessor)):
        (FOLDER / f"{name}.json").write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    tokenizer.save(str(FOLDER / "tokenizer.json"))
    save_file({published_name(name): tensor.contiguous() for name, tensor in state.items()}, FOLDER / "model.safetensors", metadata={"format": "pt"})
    (FOLDER / "model.safetensors").chmod(0o644)


# ------------------------------------------------------------------ cases
MINUTE = 60 * 16000
WORDS = {"word_timestamps": True}
ONCE = {"language": "en", "temperature": 0.0}
NO_THRESHOLDS = {"no_speech_threshold": None, "logprob_threshold": None, "compression_ratio_threshold": None}
PLAIN = {**ONCE, **NO_THRESHOLDS}
# id, samples, silent stretches, options by their names in transcribe(), a line each.
CASES = [
    ("plain", MINUTE, (), PLAIN),
    ("three minutes", 3 * MINUTE, (), PLAIN),
    ("defaults at one temperature", 2 * MINUTE, (), ONCE),
    ("detected language", MINUTE + 12345, (), {**PLAIN, "language": None}),
    ("detected language of little audio", 54321, (), {**PLAIN, "language": None}),
    ("by name", 20 * 16000, (), {**PLAIN, "language": "Castilian"}),
    ("translated", MINUTE, (), {**PLAIN, "language": "de", "task": "translate"}),
    ("each window alone", MINUTE, (), {**PLAIN, "condition_on_previous_text": False}),
    ("prompt", MINUTE, (), {**PLAIN, "initial_prompt": "The boat, the harbour."}),
    ("long prompt", MINUTE, (), {**PLAIN, "initial_prompt": "The boat left the harbour early in the morning. " * 8}),
    ("carried prompt", 2 * MINUTE, (), {**PLAIN, "initial_prompt": "The boat.", "carry_initial_prompt": True}),
    ("silence is skipped", 2 * MINUTE, ((10 * 16000, 70 * 16000),), {**ONCE, "no_speech_threshold": 0.01, "logprob_threshold": -1.0}),
    ("silence by its probability alone", 2 * MINUTE, ((0, 40 * 16000),), {**PLAIN, "no_speech_threshold": 0.005}),
    ("clips", 2 * MINUTE, (), {**PLAIN, "clip_timestamps": "3.21,17,40,55.5,100"}),
    ("clips that go back", 2 * MINUTE, (), {**PLAIN, "clip_timestamps": "60,80,10,30,65,70"}),
    ("nothing is suppressed", MINUTE, (), {**PLAIN, "suppress_tokens": ""}),
    ("more is suppressed", MINUTE, (), {**PLAIN, "suppress_tokens": "-1,64,65,66,67,68"}),
    ("without timestamps", MINUTE, (), {**PLAIN, "without_timestamps": True}),
    ("prefix", 15 * 16000, (), {**PLAIN, "without_timestamps": True, "prefix": "the harbour"}),
    ("beams", MINUTE, (), {**PLAIN, "beam_size": 5}),
    ("patient beams", MINUTE, (), {**PLAIN, "beam_size": 3, "patience": 2.0}),
    ("penalised beams", MINUTE, (), {**PLAIN, "beam_size": 2, "length_penalty": 0.6}),
    ("words", 2 * MINUTE, (), {**PLAIN, **WORDS}),
    ("words of a language without spaces", MINUTE, (), {**PLAIN, **WORDS, "language": "zh"}),
    ("words beside silence", 2 * MINUTE, ((15 * 16000, 50 * 16000),), {**PLAIN, **WORDS, "hallucination_silence_threshold": 6.0}),
    ("words of clips", 2 * MINUTE, (), {**PLAIN, **WORDS, "clip_timestamps": "5,45,50,110"}),
    ("words of beams", MINUTE, (), {**PLAIN, **WORDS, "beam_size": 4, "initial_prompt": "A boat."}),
    ("a whole window", 480000, (), PLAIN),
    ("a sample more than a window", 480001, (), PLAIN),
    ("a frame more than a window", 480160, (), PLAIN),
    ("a tenth of a second", 1600, (), {**PLAIN, **WORDS}),
    ("a frame", 160, (), PLAIN),
    ("less than a frame", 159, (), PLAIN),
    ("digital silence", 40 * 16000, ((0, 40 * 16000),), PLAIN),
]


def run(model, tokenizer, audio, options):
    of = lambda multilingual, *, num_languages=99, language=None, task=None: reference_tokenizer(tokenizer, code_of(language), task or "transcribe")
    for module in (decoding, transcription, timing):
        if hasattr(module, "get_tokenizer"):
            module.get_tokenizer = of
    model.num_decoded = 0
    result = model.transcribe(audio, fp16=False, **options)
    result["language"] = code_of(result["language"])
    for segment in result["segments"]:
        segment.pop("words", None) if not options.get("word_timestamps") else None
        for key in ("avg_logprob", "compression_ratio", "no_speech_prob"):
            segment[key] = round(float(segment[key]), 6)
        segment["start"], segment["end"] = round(float(segment["start"]), 4), round(float(segment["end"]), 4)
        for word in segment.get("words", []):
            word.update(start=round(float(word["start"]), 4), end=round(float(word["end"]), 4), probability=round(float(word["probability"]), 6))
    return result


def code_of(language):
    language = (language or "en").lower()
    return whisper_tokenizer.TO_LANGUAGE_CODE.get(language, language)


def decisions(result):
    """What must not change: all but the probabilities."""
    words = lambda segment: [(word["word"], word["start"], word["end"]) for word in segment.get("words", [])]
    return result["language"], [(s["seek"], s["start"], s["end"], s["tokens"], words(s)) for s in result["segments"]]


def make_case(tokenizer, model, disturbed, number, id, num_samples, silence, options):
    for seed in range(1000 * number + 1, 1000 * number + 21):
        audio = synthetic_audio(seed, num_samples, silence)
        try:
            result = run(model, tokenizer, audio, options)
        except StopIteration:  # where the last timestamp is 0.00 the reference begins the same window for ever
            continue
        if not result["segments"] and num_samples > 16000 and not silence == ((0, num_samples),):
            continue
        if all(decisions(run(other, tokenizer, audio, options)) == decisions(result) for other in disturbed):
            shape = {"seed": seed, "num_samples": num_samples, "silence": silence}
            return {"id": id, "audio": shape, "options": options, "result": result}
    raise AssertionError(f"{id}: every audio is decided by too little")


def main():
    torch.set_num_threads(1)
    tokenizer = train_tokenizer()
    state = make_weights(tokenizer)
    write_model(tokenizer, state)
    model, disturbed = make_reference(state), [make_reference(state, i + 1) for i in range(NUM_DISTURBED)]
    with open(FOLDER / "transcripts.jsonl", "w", encoding="utf-8") as file:
        for number, case in enumerate(CASES):
            row = make_case(tokenizer, model, disturbed, number, *case)
            segments = row["result"]["segments"]
            print(f"{row['id']}: {len(segments)} segments of {len({s['seek'] for s in segments})} windows, audio {row['audio']['seed']}", flush=True)
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
