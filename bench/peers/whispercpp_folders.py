"""whisper.cpp's file of the same numbers as a Hugging Face Whisper folder: float32, float16, int8 (its q8_0) or q5_1.

Magic, sizes, mel filters, words, then tensor after tensor, all little-endian. Only what packs numbers needs numpy and safetensors.
"""
import json
import math
import os
import re
import struct

from shapes import WHISPER_END

MAGIC = 0x67676D6C
MEL_BINS = 201  # of a Fourier transform of 400 samples at 16 kHz
BIN_HZ = 40.0
FLOAT32, FLOAT16, Q5_1, Q8_0 = 0, 1, 7, 8  # types of tensors
# What the header says of the whole file; from 1000 on it also has the version of the quantization, which is 2.
FILE_TYPES = {"float32": 0, "float16": 1, "int8": 2 * 1000 + 7, "q5_1": 2 * 1000 + 9}
BLOCK_TYPES = {"int8": Q8_0, "q5_1": Q5_1}
BLOCK = 32  # numbers that share a scale
BLANK = 220  # the space, which the engine looks for by its word

# Names of a layer's parts and of what stands outside of layers.
PARTS = {
    "self_attn.q_proj": "attn.query", "self_attn.k_proj": "attn.key", "self_attn.v_proj": "attn.value", "self_attn.out_proj": "attn.out",
    "self_attn_layer_norm": "attn_ln", "encoder_attn.q_proj": "cross_attn.query", "encoder_attn.k_proj": "cross_attn.key",
    "encoder_attn.v_proj": "cross_attn.value", "encoder_attn.out_proj": "cross_attn.out", "encoder_attn_layer_norm": "cross_attn_ln",
    "fc1": "mlp.0", "fc2": "mlp.2", "final_layer_norm": "mlp_ln",
}
OUTSIDE = {
    "encoder.conv1": "encoder.conv1", "encoder.conv2": "encoder.conv2", "encoder.layer_norm": "encoder.ln_post", "decoder.layer_norm": "decoder.ln",
    "decoder.embed_tokens": "decoder.token_embedding",
}
POSITIONS = {f"{side}.embed_positions.weight": f"{side}.positional_embedding" for side in ("encoder", "decoder")}


def refusal(work, shape):
    """Why whisper.cpp cannot run a workload; None where it can."""
    if shape["family"] != "whisper":
        return "whispercpp: it runs Whisper and nothing else"
    if work["batch"] > 1:
        return f"whispercpp: it runs one window at a time and cannot batch {work['batch']}"
    return None


# ---- layout

def tensor_name(name):
    """Its name there; None for what it has no place for: the vocabulary matrix is the embedding."""
    name = name.removeprefix("model.")
    if name == "proj_out.weight":
        return None
    if name in POSITIONS:
        return POSITIONS[name]
    stem, kind = name.rsplit(".", 1)
    layer = re.fullmatch(r"(encoder|decoder)\.layers\.(\d+)\.(.+)", stem)
    if layer and layer[3] in PARTS:
        return f"{layer[1]}.blocks.{layer[2]}.{PARTS[layer[3]]}.{kind}"
    if stem in OUTSIDE:
        return f"{OUTSIDE[stem]}.{kind}"
    raise ValueError(f"whisper.cpp has no place for {name}")


def tensor_shape(name, shape):
    """The biases of convolutions are columns."""
    return (*shape, 1) if re.fullmatch(r"encoder\.conv\d\.bias", name) else tuple(shape)


def tensor_type(name, shape, dtype):
    """Matrices are in the file's type, convolutions at most in 16 bits; vectors and positions are always float32."""
    if dtype == "float32" or len(shape) < 2 or shape[-1] == 1 or name.endswith("positional_embedding"):
        return FLOAT32
    return BLOCK_TYPES.get(dtype, FLOAT16) if len(shape) == 2 else FLOAT16


def tensor_header(name, shape, kind):
    """The fastest dimension comes first."""
    spelled = name.encode()
    return struct.pack(f"<3i{len(shape)}i", len(shape), len(spelled), kind, *reversed(shape)) + spelled


def header(config, dtype):
    return struct.pack("<12i", MAGIC, config["vocab_size"], config["max_source_positions"], config["d_model"],
                       config["encoder_attention_heads"], config["encoder_layers"], config["max_target_positions"], config["d_model"],
                       config["decoder_attention_heads"], config["decoder_layers"], config["num_mel_bins"], FILE_TYPES[dtype])


# ---- mel filters

def hertz(mel):
    """Slaney's scale: even up to 1000 Hz, then 27 mels to a factor of 6.4."""
    return mel * 200 / 3 if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27)


def mel_filters(bands):
    """Rows of triangles of area 1, up to 8000 Hz."""
    top = 15 + 27 * math.log(8) / math.log(6.4)
    edges = [hertz(top * i / (bands + 1)) for i in range(bands + 2)]
    rows = []
    for low, middle, high in zip(edges, edges[1:], edges[2:]):
        triangle = [min((hz - low) / (middle - low), (high - hz) / (high - middle)) for hz in (BIN_HZ * i for i in range(MEL_BINS))]
        rows.append([max(0.0, height) * 2 / (high - low) for height in triangle])
    return rows


def packed_filters(bands):
    rows = mel_filters(bands)
    return struct.pack("<2i", bands, MEL_BINS) + b"".join(struct.pack(f"<{MEL_BINS}f", *row) for row in rows)


# ---- words

def has_tokenizer(hf):
    return (hf / "tokenizer.json").exists()


def byte_of_letter():
    """Byte-level BPE writes a byte that can be printed as itself, the others as letters from 256 on."""
    printed = [byte for byte in range(256) if 33 <= byte <= 126 or 161 <= byte <= 172 or 174 <= byte <= 255]
    others = [byte for byte in range(256) if byte not in printed]
    return {**{chr(byte): byte for byte in printed}, **{chr(256 + i): byte for i, byte in enumerate(others)}}


def words(hf):
    """Bytes of the text tokens, by id; the engine names the others itself. Random checkpoints get made-up words."""
    if not has_tokenizer(hf):
        return [b" " if i == BLANK else f"tok{i}".encode() for i in range(WHISPER_END)]
    vocabulary = json.loads((hf / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    letters, by_id = byte_of_letter(), {index: word for word, index in vocabulary.items()}
    return [bytes(letters[letter] for letter in by_id[i]) for i in range(WHISPER_END)]


def packed_words(found):
    return struct.pack("<i", len(found)) + b"".join(struct.pack("<i", len(word)) + word for word in found)


# ---- numbers

def blocks_of(values, kind):
    """[blocks, 32] float32. Rows are whole blocks."""
    if values.shape[-1] % BLOCK:
        raise ValueError(f"{kind} wants rows of whole blocks of {BLOCK}, not of {values.shape[-1]}")
    return values.astype("float32").reshape(-1, BLOCK)


def q5_1(values):
    """Scale and minimum of a block in 16 bits, the fifth bits of its 32 codes, then their other four: code j beside code j + 16."""
    import numpy as np
    blocks = blocks_of(values, "q5_1")
    least = blocks.min(axis=1, keepdims=True)
    scale = (blocks.max(axis=1, keepdims=True) - least) / np.float32(31)
    inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale != 0)
    codes = np.minimum(31, ((blocks - least) * inverse + np.float32(0.5)).astype(np.uint8))
    half = BLOCK // 2
    packed = np.empty(len(blocks), dtype=[("scale", "<f2"), ("least", "<f2"), ("fifth", "u1", 4), ("low", "u1", half)])
    packed["scale"], packed["least"] = scale[:, 0], least[:, 0]
    packed["fifth"] = np.packbits(codes >> 4, axis=1, bitorder="little")
    packed["low"] = (codes[:, :half] & 15) | ((codes[:, half:] & 15) << 4)
    return packed.tobytes()


def q8_0(values):
    """The scale of a block in 16 bits, then its numbers of 8, rounded half away from zero."""
    import numpy as np
    blocks = blocks_of(values, "q8_0")
    scale = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale != 0)
    scaled = (blocks * inverse).astype(np.float64)  # in which adding a half is exact
    packed = np.empty(len(blocks), dtype=[("scale", "<f2"), ("numbers", "i1", BLOCK)])
    packed["scale"] = scale[:, 0]
    packed["numbers"] = np.trunc(scaled + np.copysign(0.5, scaled))
    return packed.tobytes()


def packed_tensor(values, kind):
    if kind in (Q5_1, Q8_0):
        return (q5_1 if kind == Q5_1 else q8_0)(values)
    return values.astype("<f2" if kind == FLOAT16 else "<f4").tobytes()


# ---- the file

def write(file, hf, dtype):
    """Of a random checkpoint the end has no weights: its logit is 0, never among the best, and lengths are those asked for.
    The engine's beams know no other way; other peers suppress the token."""
    from safetensors.numpy import load_file
    config = json.loads((hf / "config.json").read_text())
    file.write(header(config, dtype) + packed_filters(config["num_mel_bins"]) + packed_words(words(hf)))
    for hf_name, values in load_file(hf / "model.safetensors").items():
        name = tensor_name(hf_name)
        if name is None:
            continue
        if name == "decoder.token_embedding.weight" and not has_tokenizer(hf):
            values[WHISPER_END] = 0
        shape = tensor_shape(name, values.shape)
        kind = tensor_type(name, shape, dtype)
        file.write(tensor_header(name, shape, kind) + packed_tensor(values, kind))


def convert(hf, path, dtype):
    """`path`, made once."""
    if dtype not in FILE_TYPES:
        raise ValueError(f"whisper.cpp's files are {', '.join(FILE_TYPES)}, not {dtype}")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(path.name + ".part")
        with open(unfinished, "wb") as file:
            write(file, hf, dtype)
        os.rename(unfinished, path)
    return path
