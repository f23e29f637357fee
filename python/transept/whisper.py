"""WhisperModel: speech to text, in faster-whisper's names. Also for Moonshine."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np

from . import _core
from ._audio import AudioInput, audio_errors, audio_of, decode_audio, subject_of
from ._checks import finite, folder_of, of_kind, shown, text_argument, whole
from ._foreign import check_foreign, refuse_unless
from ._model import MOST_THREADS, EngineModel, Tokenizer, check_device, types_of
from ._own_names import own_names
from ._progress import tqdm_class
from .errors import InvalidArgumentError, UnsupportedError
from .whisper_options import (
    checked_options,
    clips_of,
    engine_options,
    fallback_of,
    suppressed,
    temperatures_of,
    text_of,
)
from .whisper_types import Segment, TranscriptionInfo, TranscriptionOptions, Word

__all__ = [
    "BatchedInferencePipeline",
    "Segment",
    "TranscriptionInfo",
    "TranscriptionOptions",
    "WhisperModel",
    "Word",
    "available_models",
    "decode_audio",
    "format_timestamp",
]

_SIZES = (
    ("tiny.en", "tiny", "base.en", "base", "small.en", "small", "medium.en", "medium")
    + ("large-v1", "large-v2", "large-v3", "large", "distil-large-v2", "distil-medium.en")
    + ("distil-small.en", "distil-large-v3", "distil-large-v3.5", "large-v3-turbo", "turbo")
)
_TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
# What the engine's fields are called here.
_OWN_NAMES = {
    "download_dir": "download_root",
    "dtype": "compute_type",
    "hf_token": "use_auth_token",
    "logprob_threshold": "log_prob_threshold",
    "quantization": "compute_type",
    "temperature_increment_on_fallback": "temperature",
    "threads": "cpu_threads",
}
_PREPENDED = "\"'“¿([{-"
_APPENDED = "\"'.。,，!！?？:：”)]}、"


def available_models() -> list[str]:
    """Sizes that are names of models of the hub."""
    return list(_SIZES)


def format_timestamp(seconds: float, always_include_hours: bool = False, decimal_marker: str = ".") -> str:
    """"00:01.500", and hours where there are any."""
    if finite("seconds", seconds) < 0:
        raise InvalidArgumentError(f"seconds must be a number from 0 on, not {shown(seconds)}", "seconds")
    milliseconds = round(seconds * 1000.0)
    minutes, milliseconds = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    whole, milliseconds = divmod(milliseconds, 1000)
    hour_text = f"{hours:02d}:" if always_include_hours or hours > 0 else ""
    return f"{hour_text}{minutes:02d}:{whole:02d}{decimal_marker}{milliseconds:03d}"


class WhisperModel:
    """A speech model. Any number of threads may transcribe with it; their windows share the engine's batch."""

    def __init__(
        self,
        model_size_or_path: Union[str, "os.PathLike[str]"],
        device: str = "auto",
        device_index: Union[int, list[int]] = 0,
        compute_type: str = "default",
        cpu_threads: int = 0,
        num_workers: int = 1,
        download_root: Optional[str] = None,
        local_files_only: bool = False,
        files: None = None,
        revision: Optional[str] = None,
        use_auth_token: Union[str, bool, None] = None,
        **engine_options: Any,
    ) -> None:
        """`model_size_or_path`: a folder in Hugging Face's layout, a size, or ORG/NAME of the hub.

        `engine_options`: those of EngineArgs, such as max_num_seqs. `num_workers` and `device_index` mean nothing here.
        """
        check_device("WhisperModel", device)
        refuse_unless("WhisperModel", "files", files, None)
        harmless = frozenset({"inter_threads", "max_queued_batches", "flash_attention"})
        check_foreign("WhisperModel", {k: v for k, v in engine_options.items() if k not in _ENGINE_OPTIONS}, harmless, {})
        options = {name: value for name, value in engine_options.items() if name in _ENGINE_OPTIONS}
        options.update(types_of("WhisperModel", compute_type))
        options["threads"] = whole("cpu_threads", cpu_threads, 0, MOST_THREADS)
        options.update(revision=revision, download_dir=folder_of("download_root", download_root), local_files_only=local_files_only)
        if isinstance(use_auth_token, str):
            options["hf_token"] = use_auth_token
        self._model = EngineModel(model_size_or_path, options, argument="model_size_or_path", names=_OWN_NAMES)
        if not self._model.info["takes_audio"]:
            self._model.core.stop()
            kind = self._model.info["model_type"]
            raise UnsupportedError(f"{model_size_or_path}: a {kind} model takes no audio", "model_size_or_path")

    @property
    def is_multilingual(self) -> bool:
        return bool(self._model.info["languages"])

    @property
    def supported_languages(self) -> list[str]:
        """Codes of languages."""
        languages: list[str] = self._model.info["languages"]
        return list(languages) if languages else ["en"]

    @property
    def hf_tokenizer(self) -> Tokenizer:
        return Tokenizer(self._model)

    def get_tokenizer(self) -> Tokenizer:
        return Tokenizer(self._model)

    @property
    def info(self) -> dict[str, Any]:
        """What the model is: family, sizes, limits, types, threads, KV blocks."""
        return dict(self._model.info)

    def shutdown(self) -> None:
        """Ends the engine after its step, and frees its memory."""
        self._model.core.stop()

    def transcribe(
        self,
        audio: AudioInput,
        language: Optional[str] = None,
        task: str = "transcribe",
        log_progress: bool = False,
        beam_size: int = 5,
        best_of: int = 5,
        patience: float = 1,
        length_penalty: float = 1,
        repetition_penalty: float = 1,
        no_repeat_ngram_size: int = 0,
        temperature: Union[float, Sequence[float]] = _TEMPERATURES,
        compression_ratio_threshold: Optional[float] = 2.4,
        log_prob_threshold: Optional[float] = -1.0,
        no_speech_threshold: Optional[float] = 0.6,
        condition_on_previous_text: bool = True,
        prompt_reset_on_temperature: float = 0.5,
        initial_prompt: Optional[str] = None,
        prefix: Optional[str] = None,
        suppress_blank: bool = True,
        suppress_tokens: Optional[Sequence[int]] = (-1,),
        without_timestamps: bool = False,
        max_initial_timestamp: float = 1.0,
        word_timestamps: bool = False,
        prepend_punctuations: str = _PREPENDED,
        append_punctuations: str = _APPENDED,
        multilingual: bool = False,
        vad_filter: bool = False,
        vad_parameters: None = None,
        max_new_tokens: None = None,
        chunk_length: None = None,
        clip_timestamps: Union[str, Sequence[float]] = "0",
        hallucination_silence_threshold: Optional[float] = None,
        hotwords: Optional[str] = None,
        language_detection_threshold: Optional[float] = 0.5,
        language_detection_segments: int = 1,
    ) -> tuple[Iterator[Segment], TranscriptionInfo]:
        """Transcribes audio of any length: a path, a binary file, bytes, or samples at 16 kHz, which are not copied.

        Returns once the language is known. The segments come as they are decided; decoding waits for their reader.
        docs/transcribe.md says what the options do, docs/python.md what differs from faster-whisper. `vad_filter` leaves
        pauses of over 2 s out. Ctrl-C in the reader ends it within a step.
        """
        call = _Call("WhisperModel.transcribe", {k: v for k, v in locals().items() if k not in ("self", "audio")})
        mode = "sequential" if self._model.info["has_speech_tokens"] else "auto"
        return call.run(self, audio, {**call.fallbacks(), "mode": mode, "vad_filter": call.given["vad_filter"]})

    def detect_language(
        self,
        audio: Optional[AudioInput] = None,
        features: None = None,
        vad_filter: bool = False,
        vad_parameters: None = None,
        language_detection_segments: int = 1,
        language_detection_threshold: float = 0.5,
    ) -> tuple[str, float, list[tuple[str, float]]]:
        """The language of the first 30 s, its probability, and the probabilities of all languages."""
        callee = "WhisperModel.detect_language"
        refuse_unless(callee, "features", features, None, "give audio")
        refuse_unless(callee, "vad_parameters", vad_parameters, None)
        refuse_unless(callee, "language_detection_segments", language_detection_segments, 1)
        if audio is None:
            raise TypeError("detect_language() needs audio")
        if not self.is_multilingual:
            return "en", 1.0, [("en", 1.0)]
        options = engine_options({"vad_filter": of_kind("switch", "vad_filter", vad_filter), "reference": "faster-whisper"})
        with audio_errors("audio", subject_of("audio", audio)), own_names(_OWN_NAMES):
            job = self._model.core.transcribe(audio_of("audio", audio), "", "", options)
            guesses = job.languages()
        job.cancel()
        return (*guesses[0], guesses) if guesses else ("", 0.0, [])


_ENGINE_OPTIONS = frozenset(
    {"attention_backend", "block_size", "cpu_affinity", "encode_slice", "isa", "kv_cache_dtype", "kv_cache_memory"}
    | {"max_num_batched_tokens", "max_num_encoder_tokens", "max_num_seqs", "preemption_mode", "quantization", "replicas"}
    | {"seed", "share_identical_inputs", "watermark"}
)


class BatchedInferencePipeline:
    """Transcribes with several windows of a file at once, cut at pauses."""

    def __init__(self, model: WhisperModel) -> None:
        if not isinstance(model, WhisperModel):
            raise TypeError(f"model must be a WhisperModel, not {shown(model)}")
        self.model = model

    def transcribe(
        self,
        audio: AudioInput,
        language: Optional[str] = None,
        task: str = "transcribe",
        log_progress: bool = False,
        beam_size: int = 5,
        best_of: int = 5,
        patience: float = 1,
        length_penalty: float = 1,
        repetition_penalty: float = 1,
        no_repeat_ngram_size: int = 0,
        temperature: Union[float, Sequence[float]] = _TEMPERATURES,
        compression_ratio_threshold: Optional[float] = 2.4,
        log_prob_threshold: Optional[float] = -1.0,
        no_speech_threshold: Optional[float] = 0.6,
        condition_on_previous_text: bool = True,
        prompt_reset_on_temperature: float = 0.5,
        initial_prompt: Optional[str] = None,
        prefix: Optional[str] = None,
        suppress_blank: bool = True,
        suppress_tokens: Optional[Sequence[int]] = (-1,),
        without_timestamps: bool = True,
        max_initial_timestamp: float = 1.0,
        word_timestamps: bool = False,
        prepend_punctuations: str = _PREPENDED,
        append_punctuations: str = _APPENDED,
        multilingual: bool = False,
        vad_filter: bool = True,
        vad_parameters: None = None,
        max_new_tokens: None = None,
        chunk_length: None = None,
        clip_timestamps: Optional[Sequence[Mapping[str, float]]] = None,
        hallucination_silence_threshold: Optional[float] = None,
        batch_size: int = 8,
        hotwords: Optional[str] = None,
        language_detection_threshold: Optional[float] = 0.5,
        language_detection_segments: int = 1,
    ) -> tuple[Iterator[Segment], TranscriptionInfo]:
        """As WhisperModel.transcribe; `batch_size` windows run at once. As in faster-whisper, only the first
        temperature is used, nothing is decoded again, and windows have no text before them but initial_prompt."""
        call = _Call("BatchedInferencePipeline.transcribe", {k: v for k, v in locals().items() if k not in ("self", "audio")})
        if clip_timestamps is None:
            refuse_unless(call.callee, "vad_filter", call.given["vad_filter"], True, "take WhisperModel.transcribe")
        first = {"temperature": call.temperatures[0], "temperature_increment_on_fallback": None}
        thresholds = ("compression_ratio_threshold", "logprob_threshold", "no_speech_threshold")
        unused = {**dict.fromkeys(thresholds), "hallucination_silence_threshold": None, "condition_on_previous_text": False}
        more = {"mode": "batched", "batch_size": batch_size}
        return call.run(self.model, audio, {**first, **unused, **more})


# Options that the engine has by the same names.
_SAME = (
    ("beam_size", "best_of", "condition_on_previous_text", "prefix", "without_timestamps", "word_timestamps")
    + ("prepend_punctuations", "append_punctuations", "hallucination_silence_threshold", "hotwords")
    + ("compression_ratio_threshold", "no_speech_threshold")
)


_NO_CLIP = engine_options({"clip_timestamps": "0,0"})


class _Call:
    """One transcription's arguments, checked."""

    def __init__(self, callee: str, given: dict[str, Any]) -> None:
        given = checked_options(callee, given)
        self.callee = callee
        self.given = given
        self.temperatures = temperatures_of(given["temperature"])
        self.language = "" if given["language"] is None else text_argument("language", given["language"])
        self.task = text_argument("task", given["task"])
        self.initial_prompt = text_of(callee, "initial_prompt", given["initial_prompt"])

    def fallbacks(self) -> dict[str, Optional[float]]:
        return fallback_of(self.callee, self.temperatures)

    def run(self, model: WhisperModel, audio: Any, more: dict[str, Any]) -> tuple[Iterator[Segment], TranscriptionInfo]:
        options = {name: self.given[name] for name in _SAME}
        has_beams = self.given["beam_size"] != 1  # a greedy search has no patience
        options["patience"] = self.given["patience"] if has_beams and self.given["patience"] != 1 else None
        options["logprob_threshold"] = self.given["log_prob_threshold"]
        options["suppress_tokens"] = suppressed(self.given["suppress_tokens"])
        options["clip_timestamps"] = clips_of(self.given["clip_timestamps"])
        options["initial_prompt"] = self.initial_prompt
        if not self.given["word_timestamps"]:
            options["hallucination_silence_threshold"] = None
        options["reference"] = "faster-whisper"
        options.update(more)
        core = model._model.core
        subject = subject_of("audio", audio)
        with audio_errors("audio", subject), own_names(_OWN_NAMES):
            language = self._language(model)
            job = core.transcribe(audio_of("audio", audio), language, self.task, engine_options(options))
            return self._segments(job, subject), self._info(model, job, language)

    def _language(self, model: WhisperModel) -> str:
        """The code of the language that was given, as the engine settles on it. "": it is detected, or English alone."""
        if not model.is_multilingual:
            return ""
        if not self.language or self.language in model.supported_languages:
            return self.language
        # A name, or capitals: the engine has the table, and tells the code at the end of audio. No clip ends at once.
        job = model._model.core.transcribe(np.zeros(1, np.float32), self.language, self.task, _NO_CLIP)
        while job.next() is not None:
            pass
        return job.language() or ""

    def _info(self, model: WhisperModel, job: _core.Transcription, language: str) -> TranscriptionInfo:
        duration = job.duration() or 0.0
        guesses = job.languages() if not language and model.is_multilingual else None
        best = (guesses[0] if guesses else ("", 0.0)) if guesses is not None else (language or "en", 1.0)
        given = {name: self.given[name] for name in TranscriptionOptions.__dataclass_fields__ if name in self.given}
        options = TranscriptionOptions(**{**given, "temperatures": self.temperatures})
        return TranscriptionInfo(*best, duration, duration, guesses, options)

    def _segments(self, job: _core.Transcription, subject: str) -> Iterator[Segment]:
        bar = _bar(job, self.given["log_progress"])
        has_words = self.given["word_timestamps"]
        number = 0
        try:
            while True:
                with audio_errors("audio", subject), own_names(_OWN_NAMES):
                    item = job.next()
                if bar is not None:
                    bar.update(job.done_seconds - bar.n)
                if item is None:
                    return
                _, seek, start, end, text, tokens, logprob, ratio, no_speech, words, temperature = item
                if start == end or not text.strip():
                    continue
                number += 1
                own = [Word(*word) for word in words] if has_words else None
                yield Segment(number, seek, start, end, text, tokens, logprob, ratio, no_speech, own, temperature)
        finally:
            job.cancel()
            if bar is not None:
                bar.close()


def _bar(job: _core.Transcription, log_progress: bool) -> Any:
    """A bar of tqdm over seconds of audio, where it is installed."""
    if not log_progress:
        return None
    tqdm = tqdm_class()
    return tqdm and tqdm(total=math.ceil(job.duration() or 0), unit="seconds", position=0)
