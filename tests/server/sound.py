"""Audio for uploads: tones, made once, small for their length (8 bits, 8 kHz)."""
import functools
import math
import struct

RATE = 8000


@functools.cache
def tones(seconds):
    """A WAV file of so many seconds, which is another one for every length."""
    count = int(seconds * RATE)
    second = [bytes(128 + round(50 * math.sin(0.1 * (tone + 1) * i)) for i in range(RATE)) for tone in range(7)]
    data = b"".join(second[(i + count) % 7] for i in range(math.ceil(seconds)))[:count]
    header = struct.pack("<IHHIIHH", 16, 1, 1, RATE, RATE, 1, 8)
    return b"RIFF" + struct.pack("<I", 36 + count) + b"WAVEfmt " + header + b"data" + struct.pack("<I", count) + data
