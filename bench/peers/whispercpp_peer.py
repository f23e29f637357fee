"""whisper.cpp as a peer (run.py), in pywhispercpp's package: one window, or one clip, at a time.

Greedy windows go through its C functions, as the package's whisper_decode takes no more than one token and gives no logits. More
beams are only in whisper_full, which encodes for itself. bench/requirements-whispercpp.txt says how to build it for the machine.
"""
import ctypes
import importlib.metadata
import os
from pathlib import Path

import _pywhispercpp as binding
import numpy as np
import soundfile

import checkpoints
import whispercpp_folders
from shapes import WHISPER_END, WHISPER_MELS, WHISPER_POSITIONS, WHISPER_PROMPT

SAMPLING_RATE = 16000
USES_GPU = os.environ.get("TRANSEPT_PEER_DEVICE", "cpu") != "cpu"  # the first that it is built for: tools/gpu_parts.py
NAMES = {"int8": "q8_0", "q5_1": "q5_1", "float16": "f16", "float32": "f32"}


def version():
    features = [part.split(" = ")[0].split(":")[-1].strip() for part in binding.whisper_print_system_info().split("|") if part.strip().endswith("= 1")]
    where = " on its GPU" if USES_GPU else ""
    return f"whisper.cpp {library().whisper_version().decode()}{where}, pywhispercpp {importlib.metadata.version('pywhispercpp')} ({' '.join(features)})"


def dtype(options):
    return f"{NAMES[options.dtype]}, flash attention {options.flash_attention}"


def prepare(work, shape, options):
    if whispercpp_folders.refusal(work, shape):
        raise SystemExit(whispercpp_folders.refusal(work, shape))
    hf = options.model or checkpoints.make(work["shape"], options.cache, options.tiny)
    folder = hf.parent if options.model is None else options.cache
    name = "whispercpp" if options.model is None else f"{hf.name}-whispercpp"
    return whispercpp_folders.convert(hf, folder / f"{name}-{options.dtype}.bin", options.dtype)


def load(path, work, shape, options):
    if work["task"] == "transcribe":
        return Clip(path, work, options)
    return GreedyWindow(path, options) if work["beam"] == 1 else BeamWindow(path, work, options)


def mel(seed):
    return np.random.default_rng(seed).uniform(-1, 1, (WHISPER_MELS, 2 * WHISPER_POSITIONS)).astype(np.float32)


def succeed(code, what):
    if code != 0:
        raise RuntimeError(f"whisper.cpp: {what} gave {code}")


# ---- its C functions

class ContextParams(ctypes.Structure):
    """struct whisper_context_params."""
    _fields_ = [("use_gpu", ctypes.c_bool), ("flash_attn", ctypes.c_bool), ("gpu_device", ctypes.c_int), ("dtw_token_timestamps", ctypes.c_bool),
                ("dtw_aheads_preset", ctypes.c_int), ("dtw_n_top", ctypes.c_int), ("dtw_n_heads", ctypes.c_size_t),
                ("dtw_heads", ctypes.c_void_p), ("dtw_mem_size", ctypes.c_size_t)]


def library():
    """The library that the package has loaded: its file's name differs from wheel to wheel."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").split()
    found = ctypes.CDLL(next(path for path in maps if Path(path).name.startswith("libwhisper")))
    pointer, integer = ctypes.c_void_p, ctypes.c_int
    signatures = {"whisper_version": (ctypes.c_char_p, []), "whisper_context_default_params": (ContextParams, []),
                  "whisper_init_from_file_with_params": (pointer, [ctypes.c_char_p, ContextParams]),
                  "whisper_set_mel": (integer, [pointer, pointer, integer, integer]), "whisper_encode": (integer, [pointer, integer, integer]),
                  "whisper_decode": (integer, [pointer, pointer, integer, integer, integer]),
                  "whisper_get_logits": (ctypes.POINTER(ctypes.c_float), [pointer]), "whisper_n_vocab": (integer, [pointer])}
    for name, (result, arguments) in signatures.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found


class GreedyWindow:
    def __init__(self, path, options):
        self.library, self.threads = library(), options.threads
        params = self.library.whisper_context_default_params()
        params.use_gpu, params.flash_attn = USES_GPU, options.flash_attention == "on"
        self.context = self.library.whisper_init_from_file_with_params(str(path).encode(), params)
        if not self.context:
            raise RuntimeError(f"whisper.cpp cannot read {path.name}")
        self.vocab = self.library.whisper_n_vocab(self.context)

    def encode(self, batch, seed):
        values = mel(seed)
        succeed(self.library.whisper_set_mel(self.context, values.ctypes.data, values.shape[1], values.shape[0]), "whisper_set_mel")
        succeed(self.library.whisper_encode(self.context, 0, self.threads), "whisper_encode")

    def step(self, tokens, past):
        """The best token of text after these: the last row of logits."""
        array = (ctypes.c_int * len(tokens))(*tokens)
        succeed(self.library.whisper_decode(self.context, array, len(tokens), past, self.threads), "whisper_decode")
        logits = np.ctypeslib.as_array(self.library.whisper_get_logits(self.context), (len(tokens), self.vocab))
        return int(logits[-1, :WHISPER_END].argmax())

    def tokens(self, count):
        found = [self.step(WHISPER_PROMPT, 0)]
        while len(found) < count:
            found.append(self.step(found[-1:], len(WHISPER_PROMPT) + len(found) - 1))
        return found

    def decode(self, encoded, batch, num_tokens, beams):
        return [len(self.tokens(num_tokens))]


# ---- whisper_full

class Full:
    def __init__(self, path, work, options):
        beams, self.threads = work["beam"], options.threads
        params = binding.whisper_context_default_params()
        params.use_gpu, params.flash_attn = USES_GPU, options.flash_attention == "on"
        self.context = binding.whisper_init_from_file_with_params(str(path), params)
        strategies = binding.whisper_sampling_strategy
        self.params = binding.whisper_full_default_params(strategies.WHISPER_SAMPLING_GREEDY if beams == 1 else strategies.WHISPER_SAMPLING_BEAM_SEARCH)
        self.params.greedy, self.params.beam_search = {"best_of": 1}, {"beam_size": beams, "patience": -1.0}
        self.set(n_threads=self.threads, language="en", temperature=0.0, temperature_inc=0.0, print_progress=False)

    def set(self, **values):
        for name, value in values.items():
            setattr(self.params, name, value)

    def run(self, samples):
        succeed(binding.whisper_full(self.context, self.params, samples, samples.size), "whisper_full")
        return range(binding.whisper_full_n_segments(self.context))


class BeamWindow(Full):
    encodes_in_decode = True

    def __init__(self, path, work, options):
        super().__init__(path, work, options)
        self.set(no_timestamps=True, single_segment=True)

    def encode(self, batch, seed):
        values = mel(seed)
        succeed(binding.whisper_set_mel(self.context, values, values.shape[1], values.shape[0]), "whisper_set_mel")
        succeed(binding.whisper_encode(self.context, 0, self.threads), "whisper_encode")

    def decode(self, encoded, batch, num_tokens, beams):
        """Of the spectrogram that encode() left: no samples are given."""
        self.set(max_tokens=num_tokens - 1)  # it ends with the token behind those
        segments = self.run(np.zeros(0, np.float32))
        return [sum(binding.whisper_full_n_tokens(self.context, i) for i in segments)]


class Clip(Full):
    def transcribe(self, audio):
        samples, rate = soundfile.read(audio, dtype="float32", always_2d=True)
        if rate != SAMPLING_RATE:
            raise SystemExit(f"whispercpp: it wants {SAMPLING_RATE} samples a second, not {rate}")
        segments = self.run(np.ascontiguousarray(samples.mean(axis=1)))
        return "".join(binding.whisper_full_get_segment_text(self.context, i).decode(errors="replace") for i in segments).strip()
