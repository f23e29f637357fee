"""A Whisper that understands nothing: random weights in the published layout, with characters for a vocabulary, all the
special tokens, two languages and windows of 30 s; and sound for it. Standard library only, the same bytes every time.

What it says is nonsense, but it says it at once, with times: enough for tests of everything around a model."""
import array
import json
import math
import random
import struct
import sys
import wave

LAYERS, WIDTH, HEADS, FFN, MELS, POSITIONS, MAX_TOKENS = 2, 16, 2, 32, 80, 1500, 40
NUM_BYTES, NUM_TIMESTAMPS = 256, 1501
SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>", "<|transcribe|>",
           "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]
ID = {name: NUM_BYTES + i for i, name in enumerate(SPECIAL)}
VOCABULARY = NUM_BYTES + len(SPECIAL) + NUM_TIMESTAMPS


def byte_characters():
    """The characters that stand for bytes in byte-level BPE, as GPT-2 has them."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


def tensors(rng):
    """name -> (shape, values)"""
    found = {}

    def put(name, *shape, scale=None):
        values = [1.0] * shape[0] if scale is None else [rng.gauss(0, scale) for _ in range(math.prod(shape))]
        found[f"model.{name}"] = (shape, values)

    def norm(name):
        put(f"{name}.weight", WIDTH)
        put(f"{name}.bias", WIDTH, scale=0.1)

    def attention(name):
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            put(f"{name}.{part}.weight", WIDTH, WIDTH, scale=0.4)
            if part != "k_proj":
                put(f"{name}.{part}.bias", WIDTH, scale=0.1)

    put("encoder.conv1.weight", WIDTH, MELS, 3, scale=0.1)
    put("encoder.conv1.bias", WIDTH, scale=0.1)
    put("encoder.conv2.weight", WIDTH, WIDTH, 3, scale=0.2)
    put("encoder.conv2.bias", WIDTH, scale=0.1)
    put("encoder.embed_positions.weight", POSITIONS, WIDTH, scale=0.3)
    put("decoder.embed_tokens.weight", VOCABULARY, WIDTH, scale=0.5)
    put("decoder.embed_positions.weight", MAX_TOKENS, WIDTH, scale=0.5)
    for side in ("encoder", "decoder"):
        for layer in range(LAYERS):
            at = f"{side}.layers.{layer}"
            attention(f"{at}.self_attn")
            norm(f"{at}.self_attn_layer_norm")
            if side == "decoder":
                attention(f"{at}.encoder_attn")
                norm(f"{at}.encoder_attn_layer_norm")
            put(f"{at}.fc1.weight", FFN, WIDTH, scale=0.3)
            put(f"{at}.fc1.bias", FFN, scale=0.1)
            put(f"{at}.fc2.weight", WIDTH, FFN, scale=0.3)
            put(f"{at}.fc2.bias", WIDTH, scale=0.1)
            norm(f"{at}.final_layer_norm")
        norm(f"{side}.layer_norm")
    return found


def write_safetensors(path, found):
    header, blobs, at = {}, [], 0
    for name, (shape, values) in found.items():
        blob = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def make_model(folder, alignment_heads=True):
    """The folder as Hugging Face has it."""
    folder.mkdir(parents=True, exist_ok=True)
    put = lambda name, content: (folder / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    end, start = ID["<|endoftext|>"], ID["<|startoftranscript|>"]
    put("config.json", {
        "architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "is_encoder_decoder": True,
        "vocab_size": VOCABULARY, "d_model": WIDTH, "encoder_layers": LAYERS, "decoder_layers": LAYERS,
        "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS, "encoder_ffn_dim": FFN,
        "decoder_ffn_dim": FFN, "num_mel_bins": MELS, "max_source_positions": POSITIONS,
        "max_target_positions": MAX_TOKENS, "bos_token_id": end, "eos_token_id": end, "pad_token_id": end,
        "decoder_start_token_id": start, "activation_function": "gelu", "scale_embedding": False,
        "tie_word_embeddings": True})
    generation = {
        "decoder_start_token_id": start, "bos_token_id": end, "eos_token_id": end, "pad_token_id": end,
        "is_multilingual": True, "lang_to_id": {name: ID[name] for name in ("<|en|>", "<|de|>")},
        "task_to_id": {"transcribe": ID["<|transcribe|>"], "translate": ID["<|translate|>"]},
        "no_timestamps_token_id": ID["<|notimestamps|>"], "prev_sot_token_id": ID["<|startofprev|>"],
        "max_initial_timestamp_index": 50, "max_length": MAX_TOKENS, "begin_suppress_tokens": [end],
        # Only letters and the space may be said: lines of text that a test can read.
        "suppress_tokens": [i for i, b in enumerate(byte_characters()) if not (97 <= b < 123 or b == 32)],
    }
    if alignment_heads:
        generation["alignment_heads"] = [[1, 0], [1, 1]]
    put("generation_config.json", generation)
    put("vocab.json", {c: i for i, c in enumerate(byte_characters().values())})
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    put("added_tokens.json", {name: i for name, i in ID.items()})
    put("tokenizer_config.json", {"tokenizer_class": "WhisperTokenizer", "add_prefix_space": False})
    put("preprocessor_config.json", {
        "chunk_length": 30, "feature_extractor_type": "WhisperFeatureExtractor", "feature_size": MELS,
        "hop_length": 160, "n_fft": 400, "n_samples": 480000, "nb_max_frames": 3000, "sampling_rate": 16000})
    write_safetensors(folder / "model.safetensors", tensors(random.Random(14)))
    return folder


def write_tone(path, seconds, hertz=220, rate=16000):
    """A wav with one note, 16 bit mono."""
    wave_length = rate / hertz
    write_wav(path, (int(8000 * math.sin(2 * math.pi * i / wave_length)) for i in range(int(seconds * rate))), rate)


def write_syllables(path, seconds, hertz=220, rate=16000):
    """A wav of notes with pauses between, each of another pitch, 16 bit mono: sound that a detector of voice takes for speech, as it does not
    take one note that lasts."""
    syllable, sounding = int(0.35 * rate), int(0.25 * rate)

    def sample(i):
        pitch = hertz * (1 + i // syllable % 5 / 4)
        return int(8000 * math.sin(2 * math.pi * pitch * (i % syllable) / rate)) if i % syllable < sounding else 0
    write_wav(path, (sample(i) for i in range(int(seconds * rate))), rate)


def write_wav(path, values, rate):
    samples = array.array("h", values)
    if sys.byteorder == "big":
        samples.byteswap()
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
