"""Writes pytorch_model.bin without torch: a checkpoint in safetensors as the zip archive that torch.save makes of it."""
import json
import struct
import zipfile

STORAGES = {"F32": "FloatStorage", "F16": "HalfStorage", "BF16": "BFloat16Storage", "I64": "LongStorage"}


def text(value):
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def counts(values):
    return b"(" + b"".join(b"J" + struct.pack("<i", value) for value in values) + b"t"


def strides(shape):
    out, step = [], 1
    for size in reversed(shape):
        out.insert(0, step)
        step *= size
    return out


def tensor(key, dtype, shape, size):
    storage = b"(" + text("storage") + f"ctorch\n{STORAGES[dtype]}\n".encode() + text(key) + text("cpu") + b"J" + struct.pack("<i", size) + b"tQ"
    return (b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00" + counts(shape) + counts(strides(shape)) +
            b"\x89ccollections\nOrderedDict\n)RtR")


def write(safetensors, out):
    content = safetensors.read_bytes()
    begin = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:begin])
    header.pop("__metadata__", None)
    pickled = b"\x80\x02}("
    with zipfile.ZipFile(out, "w") as archive:
        for i, (name, entry) in enumerate(header.items()):
            first, last = entry["data_offsets"]
            data = content[begin + first:begin + last]
            size = 1
            for dim in entry["shape"]:
                size *= dim
            pickled += text(name) + tensor(str(i), entry["dtype"], entry["shape"], size)
            archive.writestr(f"model/data/{i}", data)
        archive.writestr("model/data.pkl", pickled + b"u.")
        archive.writestr("model/byteorder", "little")
