"""Files that do harm to who unpickles or believes them: (name, bytes of pytorch_model.bin, what the error must say)."""
import io
import os
import pickle
import struct
import zipfile

import torch


class Runs:
    """Unpickled, it runs a command."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def archive(pickled, storages=(), method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        file.writestr("m/data.pkl", pickled)
        for name, data in storages:
            file.writestr(f"m/data/{name}", data)
    return out.getvalue()


def saved(value, is_zip=True):
    out = io.BytesIO()
    torch.save(value, out, _use_new_zipfile_serialization=is_zip)
    return out.getvalue()


def changed(content, old, new):
    assert content.count(old) >= 1, old
    return content.replace(old, new, 1)


def binint(value):
    return b"J" + struct.pack("<i", value)


def files(marker):
    run = Runs(f"touch {marker}")
    tensor = {"w": torch.arange(6.0).reshape(2, 3)}
    good, old = saved(tensor), saved(tensor, is_zip=False)
    size = len(good)
    shape = b"K\x02K\x03\x86"
    yield "os.system in a zip archive", saved({"w": run}), "GLOBAL at byte "
    yield "os.system in the legacy form", saved({"w": run}, is_zip=False), "GLOBAL at byte "
    yield "os.system as a pickle alone", pickle.dumps(run, 2), "is a pickle of protocol 2 that torch.save did not write"
    yield "os.system behind a tensor", saved({**tensor, "x": run}), "system\" is not a name that weights need"
    yield "eval by INST", archive(b"\x80\x02(Vprint(1)\ni__builtin__\neval\n."), "UNICODE at byte 3"
    yield "a protocol of later pickles", archive(pickle.dumps({"w": 1}, 4)), "torch.save with pickle_protocol=4"
    yield "deep tuples", archive(b"\x80\x02)" + b"\x85" * 30_000_000 + b"."), "TUPLE1 at byte 66: nested deeper than 64"
    yield "deep marks", archive(b"\x80\x02" + b"(" * 30_000_000 + b"."), "MARK at byte 66: nested deeper than 64"
    yield "a wide stack", archive(b"\x80\x02" + b"N" * 60_000_000 + b"."), "NONE at byte 1000002: more than the 1000000"
    yield "many lists", archive(b"\x80\x02" + b"]" * 60_000_000 + b"."), "EMPTY_LIST at byte 1000002: more than the 1000000"
    yield "a billion laughs", archive(b"\x80\x02Nq\x00" + b"h\x00h\x00\x86q\x00" * 1000 + b"."), "nested deeper than 64"
    yield "a memo far away", archive(b"\x80\x02Nr\xff\xff\xff\xff."), "LONG_BINPUT at byte 3: memo 4294967295"
    yield "a string without an end", archive(b"\x80\x02X\xff\xff\xff\x7f."), "BINUNICODE at byte 2: a string of 2147483647"
    yield "over 64 MiB", archive(b"\x80\x02N" + b"q\x00" * (33 << 20) + b"."), "over the 67108864 bytes allowed"
    yield "a negative stride", archive(changed(zipfile.ZipFile(io.BytesIO(good)).read("archive/data.pkl"), b"K\x03K\x01\x86", binint(-3) + b"K\x01\x86"),
                                       [("0", bytes(24))]), "strides are not all 0 or more"
    yield "a tensor beyond its storage", archive(changed(zipfile.ZipFile(io.BytesIO(good)).read("archive/data.pkl"), shape, b"K\x02K\x04\x86"),
                                                 [("0", bytes(24))]), "ends after the 6 elements of its storage"
    yield "a storage that lies", archive(zipfile.ZipFile(io.BytesIO(good)).read("archive/data.pkl"), [("0", bytes(20))]), "has 20 bytes, not 6 elements"
    yield "a storage that is missing", archive(zipfile.ZipFile(io.BytesIO(good)).read("archive/data.pkl")), "storage \"0\" is missing"
    yield "a legacy storage beyond the file", changed(old, struct.pack("<q", 6), struct.pack("<q", 1 << 60)), "end after the file"
    yield "compressed entries", archive(zipfile.ZipFile(io.BytesIO(good)).read("archive/data.pkl"), [("0", bytes(24))], zipfile.ZIP_DEFLATED), "is compressed"
    central = good.index(b"PK\x01\x02")
    yield "sizes that lie", good[:central] + changed(good[central:], struct.pack("<I", 24) * 2, struct.pack("<I", size * 2) * 2), "lie outside the file"
    first = struct.unpack("<I", good[central + 42:central + 46])[0]
    second = good.index(b"PK\x01\x02", central + 4)
    yield "overlapping entries", good[:second + 42] + struct.pack("<I", first) + good[second + 46:], "its header and the directory disagree"
    yield "a name twice", duplicate(good), "stands twice"
    yield "half a file", good[:size // 2], "cut off?"
    yield "half a legacy file", old[:-10], "cut off?"


def duplicate(good):
    out = io.BytesIO()
    data = zipfile.ZipFile(io.BytesIO(good)).read("archive/data.pkl")
    with zipfile.ZipFile(out, "w") as file:
        for _ in range(2):
            file.writestr("m/data.pkl", data)
    return out.getvalue()
