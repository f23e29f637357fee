#!/usr/bin/env python3
"""Writes src/media/testdata: a synthetic sound in every container and coding that src/media reads, and what the ffmpeg
program makes of each; and with them the seeds of the fuzzer tests/fuzz/audio_reader_fuzz/.

    tools/make_audio_fixtures.py     # needs the programs ffmpeg and ffprobe (Debian 12: 5.1); tests do not

expected.jsonl has a file a line: {"file", "codec", "sampling_rate", "num_channels", "num_samples": after ffmpeg -f s16le -ac 1 -ar 16000,
"stride", "samples": every stride-th of them, "tolerance": by which another build of FFmpeg may differ, in 16-bit steps}.
"""
import array
import audioop
import json
import math
import pathlib
import struct
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "src" / "media" / "testdata"
SEEDS = ROOT / "tests" / "fuzz" / "audio_reader_fuzz"
STRIDE = 37
EXACT_FLAGS = ["-map_metadata", "-1", "-fflags", "+bitexact", "-flags", "+bitexact"]


def sound(seconds, rate, channel=0):
    """A chirp, a tone and noise, in [-0.8, 0.8]; another one for every channel."""
    state, out = 12345 + channel, []
    for i in range(round(seconds * rate)):
        t = i / rate
        state = (1103515245 * state + 12345) % 2**31
        noise = state / 2**30 - 1
        out.append(0.4 * math.sin(2 * math.pi * (200 + 900 * channel + 2000 * t) * t)
                   + 0.3 * math.sin(2 * math.pi * (700 + 100 * channel) * t) + 0.1 * noise)
    return out


def interleaved(seconds, rate, channels):
    return [x for frame in zip(*(sound(seconds, rate, c) for c in range(channels))) for x in frame]


def integers(values, bits):
    return [max(-2 ** (bits - 1), min(2 ** (bits - 1) - 1, round(v * 2 ** (bits - 1)))) for v in values]


def packed(values, kind):
    """Samples as the bytes of a WAV file's data."""
    if kind in ("f32", "f64"):
        return array.array("f" if kind == "f32" else "d", values).tobytes()
    if kind in ("alaw", "mulaw"):
        linear = array.array("h", integers(values, 16)).tobytes()
        return (audioop.lin2alaw if kind == "alaw" else audioop.lin2ulaw)(linear, 2)
    bits = int(kind[1:])
    if kind == "u8":
        return bytes(v + 128 for v in integers(values, 8))
    return b"".join(v.to_bytes(bits // 8, "little", signed=True) for v in integers(values, bits))


def wav(kind, rate, channels, seconds, extensible=False, rf64=False):
    tag = {"f": 3, "alaw": 6, "mulaw": 7}.get(kind if kind in ("alaw", "mulaw") else kind[0], 1)
    bits = 8 if kind in ("alaw", "mulaw") else int(kind[1:])
    data = packed(interleaved(seconds, rate, channels), kind)
    frame = channels * bits // 8
    fmt = struct.pack("<HHIIHH", 0xFFFE if extensible else tag, channels, rate, rate * frame, frame, bits)
    if extensible:
        fmt += struct.pack("<HHI", 22, bits, (1 << channels) - 1) + struct.pack("<H", tag) + bytes.fromhex(
            "000000001000800000aa00389b71")
    if rf64:
        ds64 = struct.pack("<QQQI", 72 + len(data), len(data), len(data) // frame, 0)
        return (b"RF64\xff\xff\xff\xffWAVEds64" + struct.pack("<I", len(ds64)) + ds64 + b"fmt " + struct.pack("<I", len(fmt)) + fmt
                + b"data\xff\xff\xff\xff" + data)
    body = b"WAVEfmt " + struct.pack("<I", len(fmt)) + fmt + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def ffmpeg(*arguments):
    return subprocess.run(["ffmpeg", "-nostdin", "-v", "error", *arguments], check=True, stdout=subprocess.PIPE).stdout


def pcm_files(seconds):
    """{name: content}: what needs no encoder."""
    return {
        "u8.wav": wav("u8", 16000, 1, seconds),
        "s16.wav": wav("s16", 16000, 1, seconds),
        "s24.wav": wav("s24", 16000, 1, seconds),
        "s32.wav": wav("s32", 16000, 1, seconds),
        "f32.wav": wav("f32", 16000, 1, seconds),
        "f64.wav": wav("f64", 16000, 1, seconds),
        "alaw.wav": wav("alaw", 8000, 1, seconds),
        "mulaw.wav": wav("mulaw", 8000, 1, seconds),
        "extensible.wav": wav("s16", 16000, 1, seconds, extensible=True),
        "rf64.wav": wav("s16", 16000, 1, seconds, rf64=True),
        "stereo44.wav": wav("s16", 44100, 2, seconds / 2),
        "surround.wav": wav("s16", 16000, 6, seconds / 4, extensible=True),
        "three_channels.wav": wav("s16", 16000, 3, seconds / 2),
        "rate_96000.wav": wav("s16", 96000, 1, seconds / 5),
    }


def encoded_files(seconds, folder):
    """{name: content}: what ffmpeg makes of a mono and a stereo file."""
    (folder / "mono.wav").write_bytes(wav("s16", 16000, 1, seconds))
    (folder / "stereo.wav").write_bytes(wav("s16", 44100, 2, seconds))
    (folder / "other.wav").write_bytes(wav("u8", 8000, 1, seconds))
    mono, stereo = ["-i", str(folder / "mono.wav")], ["-i", str(folder / "stereo.wav")]
    picture = ["-f", "lavfi", "-i", f"color=c=red:s=16x16:r=10:d={seconds}"]
    recipes = {
        "adpcm_ima.wav": [*mono, "-c:a", "adpcm_ima_wav"],
        "adpcm_ms.wav": [*mono, "-c:a", "adpcm_ms"],
        "mono.flac": [*mono, "-c:a", "flac"],
        "stereo24.flac": [*stereo, "-c:a", "flac", "-sample_fmt", "s32", "-bits_per_raw_sample", "24", "-t", "0.1"],
        "mono.mp3": [*mono, "-c:a", "libmp3lame", "-b:a", "32k"],
        "stereo_vbr.mp3": [*stereo, "-c:a", "libmp3lame", "-q:a", "9"],
        "cover.mp3": [*mono, *picture, "-map", "0:a", "-map", "1:v", "-c:a", "libmp3lame", "-b:a", "32k", "-c:v", "png", "-frames:v", "1",
                      "-disposition:v", "attached_pic"],
        "aac.m4a": [*mono, "-c:a", "aac", "-b:a", "32k"],
        "aac_faststart.m4a": [*stereo, "-c:a", "aac", "-b:a", "48k", "-movflags", "+faststart"],
        "alac.m4a": [*mono, "-c:a", "alac"],
        "adts.aac": [*mono, "-c:a", "aac", "-b:a", "32k"],
        "vorbis.ogg": [*mono, "-c:a", "libvorbis", "-b:a", "32k"],
        "mono.opus": [*mono, "-c:a", "libopus", "-b:a", "16k"],
        "flac.ogg": [*mono, "-c:a", "flac"],
        "opus.webm": [*stereo, "-c:a", "libopus", "-b:a", "24k"],
        "vorbis.mkv": [*stereo, "-c:a", "libvorbis", "-b:a", "48k"],
        "video.mp4": [*picture, *mono, "-i", str(folder / "other.wav"), "-map", "0:v", "-map", "1:a", "-map", "2:a", "-c:v", "mpeg4",
                      "-c:a", "aac", "-b:a", "24k"],
        "mono.aiff": [*mono],
        "mulaw.au": [*mono, "-c:a", "pcm_mulaw"],
        "mono.w64": [*mono, "-c:a", "pcm_s16le"],
        "mono.caf": [*mono, "-c:a", "pcm_s16le"],
    }
    files = {}
    for name, arguments in recipes.items():
        ffmpeg(*arguments, *EXACT_FLAGS, "-y", str(folder / name))
        files[name] = (folder / name).read_bytes()
    ffmpeg(*stereo, "-c:a", "libvorbis", "-serial_offset", "7", *EXACT_FLAGS, "-y", str(folder / "second.ogg"))
    files["chained.ogg"] = files["vorbis.ogg"] + (folder / "second.ogg").read_bytes()
    return files


def tolerance(name, channels, rate):
    """Integers at 16 kHz, mono, are what they are; what is computed may be rounded another way by another build."""
    whole = ("u8.", "s16.", "mono.flac", "flac.ogg", "mono.aiff", "mono.w64", "mono.caf", "extensible", "rf64", "alac", "mulaw.au")
    return 0 if name.startswith(whole) and channels == 1 and rate == 16000 else 2


def expectation(path):
    probed = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "a:0", "-show_entries", "stream=codec_name,sample_rate,channels",
                             "-of", "json", str(path)], check=True, stdout=subprocess.PIPE).stdout
    stream = json.loads(probed)["streams"][0]
    rate, channels = int(stream["sample_rate"]), stream["channels"]
    samples = array.array("h", ffmpeg("-i", str(path), "-map", "0:a:0", "-f", "s16le", "-ac", "1", "-acodec", "pcm_s16le",
                                      "-ar", "16000", "-"))
    return {"file": path.name, "codec": stream["codec_name"], "sampling_rate": rate, "num_channels": channels,
            "num_samples": len(samples), "stride": STRIDE, "samples": samples[::STRIDE].tolist(),
            "tolerance": tolerance(path.name, channels, rate)}


def write_all(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        files = {**pcm_files(0.2), **encoded_files(0.2, scratch)}
        seeds = {**pcm_files(0.02), **encoded_files(0.05, scratch)}
    write_all(FOLDER, files)
    lines = [json.dumps(expectation(FOLDER / name)) for name in files]
    (FOLDER / "expected.jsonl").write_text("\n".join(lines) + "\n")
    seeds["list.m3u8"] = b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nother.wav\n"
    seeds["list.ffconcat"] = b"ffconcat version 1.0\nfile 'other.wav'\n"
    write_all(SEEDS, seeds)


if __name__ == "__main__":
    main()
