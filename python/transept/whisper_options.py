"""faster-whisper's arguments of transcribe() as the engine's options; what is not supported is refused by name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional, Union

from ._checks import BYTES, finite, ids_of, object_json, of_kind, shown, text_argument
from ._foreign import refuse_unless
from .errors import InvalidArgumentError, UnsupportedError

# Arguments that would change the text, with the one value that changes nothing.
_REFUSED: dict[str, Any] = {
    "repetition_penalty": 1,
    "no_repeat_ngram_size": 0,
    "prompt_reset_on_temperature": 0.5,
    "suppress_blank": True,
    "max_initial_timestamp": 1.0,
    "multilingual": False,
    "vad_parameters": None,
    "max_new_tokens": None,
    "chunk_length": None,
    "language_detection_segments": 1,
}
_HINTS = {
    "multilingual": "give language, or transcribe parts by clip_timestamps",
    "vad_parameters": "take vad_filter alone: the voice detector is another (docs/python.md)",
}


_KINDS = {
    **dict.fromkeys(("batch_size", "beam_size", "best_of"), "whole"),
    **dict.fromkeys(("compression_ratio_threshold", "hallucination_silence_threshold", "log_prob_threshold"), "number"),
    **dict.fromkeys(("no_speech_threshold", "patience"), "number"),
    **dict.fromkeys(("append_punctuations", "hotwords", "prefix", "prepend_punctuations"), "text"),
    **dict.fromkeys(("condition_on_previous_text", "vad_filter", "without_timestamps", "word_timestamps"), "switch"),
}


def checked_options(callee: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, numbers for flags as flags. Raises TypeError for other types, and UnsupportedError for arguments
    that would change the text, and are not there."""
    given = {name: of_kind(_KINDS[name], name, value) if name in _KINDS else value for name, value in arguments.items()}
    for name, accepted in _REFUSED.items():
        if name in given:
            refuse_unless(callee, name, given[name], accepted, _HINTS.get(name, ""))
    if given["length_penalty"] != 1:
        hint = "LLM.generate has it for one window"
        refuse_unless(callee, "length_penalty", given["length_penalty"], 1, hint)
    return given


def temperatures_of(temperature: Union[float, Sequence[float]]) -> list[float]:
    given = list(temperature) if isinstance(temperature, (list, tuple)) else [temperature]
    if not given:
        raise InvalidArgumentError("temperature: the list is empty", "temperature")
    return [finite("temperature", value) for value in given]


def fallback_of(callee: str, temperatures: Sequence[float]) -> dict[str, Optional[float]]:
    """The first temperature, and the step to the next ones up to 1: the only ladder that there is."""
    first = temperatures[0]
    if len(temperatures) == 1:
        return {"temperature": first, "temperature_increment_on_fallback": None}
    step = temperatures[1] - first
    count = 1 + math.floor((1 - first + 1e-6) / step) if step > 0 else 0
    ladder = [first + i * step for i in range(count)]
    if len(ladder) == len(temperatures) and all(abs(a - b) < 1e-6 for a, b in zip(ladder, temperatures)):
        return {"temperature": first, "temperature_increment_on_fallback": round(step, 9)}
    raise UnsupportedError(
        f"{callee}: temperature={list(temperatures)!r} is not supported; one number, or equal steps up to 1", "temperature"
    )


def clips_of(clip_timestamps: Union[str, Sequence[float], Sequence[Mapping[str, float]], None]) -> str:
    """"start,end,start,..." of faster-whisper's forms."""
    if clip_timestamps is None:
        return "0"
    if isinstance(clip_timestamps, str):
        return clip_timestamps or "0"
    if isinstance(clip_timestamps, BYTES) or not isinstance(clip_timestamps, Iterable):
        what = "must be a str or a list of seconds, or of dicts with start and end"
        raise TypeError(f"clip_timestamps {what}, not {shown(clip_timestamps)}")
    times: list[float] = []
    for clip in clip_timestamps:
        if isinstance(clip, Mapping) and not {"start", "end"} <= clip.keys():
            raise InvalidArgumentError(f"clip_timestamps: a clip has start and end, not {shown(clip)}", "clip_timestamps")
        times += [clip["start"], clip["end"]] if isinstance(clip, Mapping) else [clip]
    return ",".join(repr(finite("clip_timestamps", time)) for time in times) or "0"


def text_of(callee: str, name: str, value: Any) -> Optional[str]:
    """A prompt as text. Ids are refused."""
    if value is None:
        return None
    if isinstance(value, (str, *BYTES, Mapping)) or not isinstance(value, Iterable):
        return text_argument(name, value)
    raise UnsupportedError(f"{callee}: {name} is text here; ids are not supported", name)


def suppressed(tokens: Optional[Sequence[int]]) -> list[int]:
    return ids_of("suppress_tokens", tokens) if tokens else []


def engine_options(values: Mapping[str, Any]) -> str:
    """JSON of transept_transcribe_options: without what is absent, thresholds excepted, which None turns off."""
    thresholds = ("compression_ratio_threshold", "logprob_threshold", "no_speech_threshold", "temperature_increment_on_fallback")
    return object_json({name: value for name, value in values.items() if value is not None or name in thresholds})
