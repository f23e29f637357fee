#!/usr/bin/env python3
"""Writes the seeds of the fuzzers of files of other programs: tests/fuzz/ggml_file_fuzz/, gguf_file_fuzz/, npz_file_fuzz/, marian_yaml_fuzz/.

    tools/make_foreign_seeds.py

Small files with every type of value and of tensor that the readers know (src/foreign/ggml_file.h, gguf_file.h, npz_file.h, marian_yaml.h).
"""
import io
import struct
import zipfile
from pathlib import Path

FUZZ = Path(__file__).resolve().parent.parent / "tests/fuzz"
BLOCK_BYTES = {2: 18, 3: 20, 6: 22, 7: 24, 8: 34}  # of 32 weights, by ggml's type
K_BLOCK_BYTES = {10: 84, 11: 110, 12: 144, 13: 176, 14: 210}  # of 256


def data_of(kind, count):
    size = count * {0: 4, 1: 2, 30: 2}[kind] if kind in (0, 1, 30) else count // 32 * BLOCK_BYTES[kind] if kind in BLOCK_BYTES else count // 256 * K_BLOCK_BYTES[kind]
    return bytes(i % 120 for i in range(size))


def ggml():
    out = struct.pack("<I11i", 0x67676D6C, 300, 10, 32, 2, 1, 20, 32, 4, 3, 2, 1)
    out += struct.pack("<2i6f", 2, 3, *range(6))
    out += struct.pack("<i", 2) + struct.pack("<I", 1) + b"a" + struct.pack("<I", 2) + b"bc"
    for kind in (0, 1, *BLOCK_BYTES, *K_BLOCK_BYTES):
        name, row = f"tensor.{kind}".encode(), 256 if kind in K_BLOCK_BYTES else 32
        out += struct.pack("<3i2i", 2, len(name), kind, row, 2) + name + data_of(kind, 2 * row)
    return out


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(version):
    scalars = [("u8", 0, "<B", 7), ("i8", 1, "<b", -7), ("u16", 2, "<H", 7), ("i16", 3, "<h", -7), ("u32", 4, "<I", 7), ("i32", 5, "<i", -7),
               ("f32", 6, "<f", 0.5), ("bool", 7, "<?", True), ("u64", 10, "<Q", 7), ("i64", 11, "<q", -7), ("f64", 12, "<d", 0.5)]
    pairs = [text("general.architecture") + struct.pack("<I", 8) + text("t5"), text("general.alignment") + struct.pack("<2I", 4, 32)]
    pairs += [text(name) + struct.pack("<I", kind) + struct.pack(form, value) for name, kind, form, value in scalars]
    pairs += [text(f"list.{name}") + struct.pack("<2IQ", 9, kind, 2) + 2 * struct.pack(form, value) for name, kind, form, value in scalars]
    pairs.append(text("tokenizer.ggml.tokens") + struct.pack("<2IQ", 9, 8, 2) + text("a") + text(""))
    tensors, data = [], b""
    for kind in (0, 1, 30, *BLOCK_BYTES, *K_BLOCK_BYTES):
        row = 256 if kind in K_BLOCK_BYTES else 32
        tensors.append(text(f"tensor.{kind}") + struct.pack("<I2QIQ", 2, row, 2, kind, len(data)))
        data += data_of(kind, 2 * row)
        data += bytes(-len(data) % 32)
    head = b"GGUF" + struct.pack("<I2Q", version, len(tensors), len(pairs)) + b"".join(pairs + tensors)
    return head + bytes(-len(head) % 32) + data


OPTIONS = """type: transformer
enc-depth: 1
dec-depth: 2
transformer-heads: 2
transformer-preprocess: ""
transformer-postprocess: dan
transformer-ffn-activation: relu
transformer-tied-layers: [1, 1]
dim-vocabs:
  - 4
  - 4
"""
YAML = OPTIONS + """</s>: 0
"<unk>": 1
"\\x01\\u2581\\"": 2
'it''s': 3
? a long one
: 4
none:
  []
below:
  text # a comment
list: [a, "b, c", 'd']
"""


def npy(descr, shape, data, version=1, fortran=False):
    sides = "".join(f"{side}, " for side in shape)
    header = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({sides}), }}\n".encode()
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + header + data


def npz(force_zip64):
    arrays = {"a": npy("<f4", (2, 3), bytes(24)), "b": npy("<f2", (1, 4), bytes(8), 2), "c": npy("|u1", (), b"x", 3),
              "special:model.yml": npy("<i1", (len(OPTIONS) + 1,), OPTIONS.encode() + b"\0")}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(name + ".npy"), "w", force_zip64=force_zip64) as entry:
                entry.write(array)
    return out.getvalue()


def main():
    seeds = {"ggml_file_fuzz/all_types": ggml(), "gguf_file_fuzz/version2": gguf(2), "gguf_file_fuzz/version3": gguf(3),
             "npz_file_fuzz/marian": npz(False), "npz_file_fuzz/numpy": npz(True), "marian_yaml_fuzz/all_forms": YAML.encode()}
    for name, seed in seeds.items():
        (FUZZ / name).parent.mkdir(parents=True, exist_ok=True)
        (FUZZ / name).write_bytes(seed)


if __name__ == "__main__":
    main()
