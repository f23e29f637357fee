#!/usr/bin/env python3
"""Makes src/encoder_cache/testdata/ec_frames.txt and the seeds of the fuzzer, tests/fuzz/ec_frame_fuzz/: frames by the
tables of docs/formats/ec_wire.md, with the standard library and no code of the program. An example of an encoder, too.

    python3 src/encoder_cache/testdata/make_ec_frames.py

A line: the name of the frame, "secret" or "-", what comes of it ("taken", or the fault and words of the error with _ for
spaces), its bytes in hexadecimal (-: none). ec_frame_test.cc has the values of those that are taken.
"""
import hashlib
import hmac
import struct
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
VECTORS = Path(__file__).resolve().parent / "ec_frames.txt"
SEEDS = ROOT / "tests" / "fuzz" / "ec_frame_fuzz"
SECRET = b"a secret of tests"
INCARNATION, SEQUENCE = 0x0123456789ABCDEF, 7
DIGEST, MODEL = bytes(range(32)), bytes(range(255, 223, -1))
ALLOCATION, INJECTION, METADATA, CACHE = range(4)
QUERY, CANCEL = 1, 2
VERDICTS = ["allocated", "hit", "wait", "never", "incompatible", "busy", "gone"]


def table_of_crc32c():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = table_of_crc32c()


def crc32c(content):
    crc = 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def string(text):
    content = text.encode() if isinstance(text, str) else text
    return struct.pack("<H", len(content)) + content


def key(request_id="req-1", input_id=2, attempt=1):
    return string(request_id) + struct.pack("<II", input_id, attempt)


def meta(name=None, num_positions=1500, width=384, dtype=1, place=(0, 1500, 0, 0, 0), time_left=30_000_000):
    return ((name or key()) + DIGEST + MODEL + struct.pack("<iiB", num_positions, width, dtype) + struct.pack("<5i", *place)
            + struct.pack("<Q", time_left))


def allocation(verdict, reservation=0, address=""):
    return key() + struct.pack("<BQ", verdict, reservation) + string(address)


def chunk_head(size, offset=16, total=1000, reservation=0xFEEDFACECAFEBEEF, kind=1, name=None):
    return (name or key()) + struct.pack("<QBQQI", reservation, kind, offset, total, size)


def frame(channel, body, kind=0, secret=None, chunk=b"", behind=b"", magic=b"TEPD", version=1, size=None, crc=None, code=None):
    """body: all fields, of a chunk without its bytes; those, and what is behind, follow."""
    whole = body + chunk + behind
    head = magic + struct.pack("<HBBIIQQ", version, channel, kind, len(whole) if size is None else size,
                               crc32c(whole) if crc is None else crc, INCARNATION, SEQUENCE)
    if code is None:
        code = hmac.digest(secret, head + body + behind, hashlib.sha256)[:16] if secret else bytes(16)
    return head + code + whole


def taken():
    """(name, secret or None, bytes)"""
    for secret in (None, SECRET):
        suffix = "_secret" if secret else ""
        yield "meta" + suffix, secret, frame(METADATA, meta(), secret=secret)
        yield "meta_splice" + suffix, secret, frame(METADATA, meta(None, 324, 2048, 2, (5, 324, 1, 36, 36), 1), secret=secret)
        yield "query" + suffix, secret, frame(METADATA, key(), QUERY, secret)
        yield "cancel_of_sender" + suffix, secret, frame(METADATA, key(), CANCEL, secret)
        yield "cancel_of_receiver" + suffix, secret, frame(ALLOCATION, key(), CANCEL, secret)
        address = "tcp://[fd00::1]:19536"
        yield "allocated" + suffix, secret, frame(ALLOCATION, allocation(0, 0xFEEDFACECAFEBEEF, address), secret=secret)
        yield "chunk" + suffix, secret, frame(CACHE, chunk_head(8), secret=secret, chunk=b"\x00\x01\x02\x03\xfc\xfd\xfe\xff")
        yield "chunk_behind" + suffix, secret, frame(CACHE, chunk_head(4), secret=secret, chunk=b"rows", behind=b"new")
        yield "meta_behind" + suffix, secret, frame(METADATA, meta() + b"new", secret=secret)
    for number, verdict in enumerate(VERDICTS):
        yield "injection_" + verdict, None, frame(INJECTION, key() + bytes([number]))
        if number:
            yield "allocation_" + verdict, None, frame(ALLOCATION, allocation(number))
    largest = key("A" * 63 + "._:-" + "z" * 61, 0xFFFFFFFF, 0xFFFFFFFF)
    year = 366 * 24 * 3600 * 10**6
    yield "meta_largest", None, frame(METADATA, meta(largest, 2**31 - 1, 2**30, 1, (1, 2**31 - 2, 2**31 - 1, 1, 1), year))
    yield "meta_smallest", None, frame(METADATA, meta(key("x", 0, 0), 1, 1, 2, (0, 0, 0, 0, 0), 0))
    yield "chunk_of_one_byte", None, frame(CACHE, chunk_head(1, 2**64 - 2, 2**64 - 1, 1), chunk=b"\x80")


def refused():
    """(name, the receiver's secret or None, fault, words of the error, bytes)"""
    a_meta, a_chunk = frame(METADATA, meta()), frame(CACHE, chunk_head(4), chunk=b"rows")
    yield "empty", None, "cut", "byte 0: head", b""
    yield "head_cut", None, "cut", "byte 47: head", a_meta[:47]
    yield "body_cut", None, "cut", f"byte {len(a_meta) - 1}: body", a_meta[:-1]
    yield "two_frames", None, "size", f"byte {len(a_meta)}: body: is followed by 1 bytes", a_meta + b"T"
    yield "magic", None, "magic", "byte 0: magic", frame(METADATA, meta(), magic=b"TEPd")
    yield "version_0", None, "version", "byte 4: version 0; this instance speaks version 1", frame(METADATA, meta(), version=0)
    yield "version_2", None, "version", "byte 4: version 2; this instance speaks version 1", frame(METADATA, b"", version=2)
    yield "version_258", None, "version", "byte 4: version 258;", frame(METADATA, meta(), version=258)
    for channel, kind, words in ((4, 0, "byte 6: channel: 4"), (255, 0, "byte 6: channel: 255"), (2, 3, "byte 7: kind"),
                                 (0, 1, "byte 7: kind"), (1, 1, "byte 7: kind"), (3, 1, "byte 7: kind"), (1, 2, "byte 7: kind"),
                                 (3, 2, "byte 7: kind"), (0, 3, "byte 7: kind"), (3, 255, "byte 7: kind")):
        yield f"channel_{channel}_kind_{kind}", None, "channel", words, frame(channel, key(), kind)
    for channel, size in ((0, 65537), (1, 65537), (2, 65537), (3, 2**20 + 257), (2, 2**32 - 1), (3, 2**32 - 1)):
        yield f"size_{channel}_{size}", None, "size", f"byte 8: body size: {size} bytes", frame(channel, b"", size=size)
    yield "checksum", None, "checksum", "byte 12: checksum", frame(METADATA, meta(), crc=crc32c(meta()) ^ 1)
    yield "checksum_of_chunk", SECRET, "checksum", "byte 12: checksum", frame(
        CACHE, chunk_head(4), secret=SECRET, chunk=b"rows")[:-1] + b"S"
    yield "no_code", SECRET, "code", "byte 32: code: the sender has no secret", a_meta
    yield "no_code_of_chunk", SECRET, "code", "byte 32: code: the sender has no secret", a_chunk
    yield "code_without_a_secret", None, "code", "byte 32: code: the sender has a secret", frame(METADATA, meta(), secret=SECRET)
    yield "other_secret", SECRET, "code", "byte 32: code: is not", frame(METADATA, meta(), secret=b"another secret of tests")
    yield "forged", SECRET, "code", "byte 32: code: is not", frame(METADATA, meta(), code=b"\x01" * 16)
    yield "code_of_whole_chunk", SECRET, "code", "byte 32: code: is not", frame(CACHE, chunk_head(4) + b"rows", secret=SECRET)
    yield "unframed_chunk", SECRET, "code", "byte 32: code: is not", frame(CACHE, b"\xff", code=b"\x01" * 16)
    yield from refused_fields()


def refused_fields():
    def of(name, words, channel, body, **more):
        return name, None, "field", words, frame(channel, body, **more)

    yield of("no_body", "byte 48: request_id: is cut off", METADATA, b"")
    for name, request_id, words in (("empty", "", "is empty"), ("long", "r" * 129, "has 129 bytes"), ("space", "a b", '"a b" has characters'),
                                    ("zero", b"a\0", '"a\\x00" has'), ("high", "\u00e4", '"\u00e4" has')):
        yield of("request_id_" + name, f"byte 48: request_id: {words}", METADATA, meta(key(request_id)))
    for name, at, changes in (("num_positions", 127, {"num_positions": 0}), ("num_positions", 127, {"num_positions": -1}),
                              ("width", 131, {"width": 0}), ("width", 131, {"width": -1}), ("dtype", 135, {"dtype": 0}),
                              ("dtype", 135, {"dtype": 3}), ("offset", 136, {"place": (-1, 0, 0, 0, 0)}),
                              ("length", 140, {"place": (0, -1, 0, 0, 0)}), ("length", 140, {"place": (0, 1501, 0, 0, 0)}),
                              ("length", 140, {"place": (2**31 - 1, 1, 0, 0, 0)}), ("grid", 144, {"place": (0, 0, -1, 1, 1)}),
                              ("grid", 144, {"place": (0, 0, 2**31 - 1, 2**31 - 1, 2**31 - 1)}),
                              ("num_positions", 127, {"num_positions": 2**31 - 1, "width": 2**31 - 1}),
                              ("time_left", 156, {"time_left": 2**64 - 1}), ("time_left", 156, {"time_left": 2**63 // 1000 + 1}),
                              ("time_left", 156, {"time_left": 2**64 // 1000 + 1}),  # in nanoseconds a small number, modulo 2^64
                              ("time_left", 156, {"time_left": 366 * 24 * 3600 * 10**6 + 1})):
        value = next(iter(changes.values()))
        suffix = "_".join(map(str, value)) if isinstance(value, tuple) else str(value)
        yield of(f"{name}_{suffix}", f"byte {at}: {name}: ", METADATA, meta(**changes))
    yield of("verdict_7", "byte 63: verdict: 7", INJECTION, key() + b"\x07")
    yield of("verdict_255", "byte 63: verdict: 255", ALLOCATION, allocation(255))
    yield of("allocated_without_reservation", "byte 64: reservation: is 0", ALLOCATION, allocation(0, 0, "a:1"))
    yield of("allocated_without_address", "byte 72: bulk_address: is empty", ALLOCATION, allocation(0, 1))
    yield of("hit_with_reservation", "byte 64: reservation: is not 0", ALLOCATION, allocation(1, 1))
    yield of("hit_with_address", "byte 72: bulk_address: is not empty", ALLOCATION, allocation(1, 0, "a:1"))
    yield of("address_long", "byte 72: bulk_address: has 257 bytes", ALLOCATION, allocation(0, 1, "a" * 257))
    yield of("address_space", "byte 72: bulk_address: \"", ALLOCATION, allocation(0, 1, "a :1"))
    yield of("address_high", "byte 72: bulk_address: \"", ALLOCATION, allocation(0, 1, b"a\x7f"))
    for name, words, changes in (("reservation", "byte 63: reservation: is 0", {"reservation": 0}),
                                 ("payload_2", "byte 71: payload_kind: 2, cross K and V, is not supported", {"kind": 2}),
                                 ("payload_0", "byte 71: payload_kind: 0 is unknown", {"kind": 0}),
                                 ("payload_3", "byte 71: payload_kind: 3 is unknown", {"kind": 3}),
                                 ("end", "byte 72: offset: 997, and 4 bytes", {"offset": 997}),
                                 ("overflow", "byte 72: offset: 18446744073709551615", {"offset": 2**64 - 1, "total": 2**64 - 1}),
                                 ("total", "byte 72: offset: 16, and 4 bytes", {"total": 0})):
        yield of("chunk_" + name, words, CACHE, chunk_head(4, **changes), chunk=b"rows")
    yield of("chunk_empty", "byte 88: bytes: is empty", CACHE, chunk_head(0))
    yield of("chunk_cut", "byte 88: bytes: is cut off", CACHE, chunk_head(5), chunk=b"rows")
    yield of("chunk_of_4_gb", "byte 88: bytes: is cut off", CACHE, chunk_head(2**32 - 1), chunk=b"rows")


def lines():
    for name, secret, content in taken():
        yield f"{name} {'secret' if secret else '-'} taken {content.hex()}"
    for name, secret, fault, words, content in refused():
        yield f"{name} {'secret' if secret else '-'} {fault}:{words.replace(' ', '_')} {content.hex() or '-'}"


def files():
    """path -> bytes: all that this makes. A seed begins with the byte that says how the fuzzer uses the rest."""
    made = {VECTORS: "".join(line + "\n" for line in lines()).encode()}
    for name, secret, content in taken():
        made[SEEDS / name] = bytes([2 if secret else 0]) + content
    made[SEEDS / "two_frames"] = b"\x08" + frame(METADATA, meta()) + frame(CACHE, chunk_head(4), chunk=b"rows")
    return made


def main():
    SEEDS.mkdir(parents=True, exist_ok=True)
    for path, content in files().items():
        path.write_bytes(content)


if __name__ == "__main__":
    main()
