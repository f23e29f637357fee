"""decoded.py ours|pyav FILE...: a line for each file, its name and, behind a tab, the number of its samples as 16 bits, mono, at 16 kHz, and
their digest; or "error" and the reason. ours: by libtransept.so (TRANSEPT_LIBRARY). pyav: by PyAV's own decoder and resampler."""
import array
import ctypes
import hashlib
import os
import sys
from pathlib import Path

RATE = 16000


class Audio(ctypes.Structure):
    """transept_audio."""
    _fields_ = [("struct_size", ctypes.c_size_t), ("path", ctypes.c_char_p), ("bytes", ctypes.c_void_p), ("num_bytes", ctypes.c_size_t),
                ("samples", ctypes.c_void_p), ("num_samples", ctypes.c_size_t), ("sampling_rate", ctypes.c_int32)]


def by_ours(path):
    library = ctypes.CDLL(os.environ["TRANSEPT_LIBRARY"])
    audio = Audio(struct_size=ctypes.sizeof(Audio), path=str(path).encode())
    samples, count = ctypes.POINTER(ctypes.c_float)(), ctypes.c_size_t()
    code = library.transept_decode_audio(ctypes.byref(audio), RATE, ctypes.c_double(0), ctypes.byref(samples), ctypes.byref(count), None)
    if code != 0:
        raise ValueError(f"code {code}")
    return array.array("h", (round(samples[i] * 32768) for i in range(count.value))).tobytes()


def by_pyav(path):
    import av

    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
    out = bytearray()
    with av.open(str(path)) as container:
        for frame in [*container.decode(audio=0), None]:
            for piece in resampler.resample(frame):
                out += bytes(piece.planes[0])[:2 * piece.samples]
    return bytes(out)


def main():
    decode = {"ours": by_ours, "pyav": by_pyav}[sys.argv[1]]
    for path in map(Path, sys.argv[2:]):
        try:
            samples = decode(path)
            print(f"{path.name}\t{len(samples) // 2} samples {hashlib.sha256(samples).hexdigest()[:16]}")
        except Exception as error:  # whatever PyAV raises
            print(f"{path.name}\terror: {type(error).__name__}: {' '.join(str(error).split())}")


if __name__ == "__main__":
    main()
