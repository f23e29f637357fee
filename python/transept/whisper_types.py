"""What WhisperModel gives, with faster-whisper's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Optional, Union


@dataclass
class Word:
    start: float  # seconds from the beginning of the audio
    end: float
    word: str  # with its leading space, where the language writes them
    probability: float

    def _asdict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Segment:
    id: int  # from 1 on
    seek: int  # the frame of 0.01 s at which its window begins
    start: float
    end: float
    text: str
    tokens: list[int]
    avg_logprob: float  # this and the next two: of its window
    compression_ratio: float
    no_speech_prob: float
    words: Optional[list[Word]]  # with word_timestamps
    temperature: Optional[float]

    def _asdict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class TranscriptionOptions:
    """The options as they were given."""

    beam_size: int
    best_of: int
    patience: float
    length_penalty: float
    repetition_penalty: float
    no_repeat_ngram_size: int
    log_prob_threshold: Optional[float]
    no_speech_threshold: Optional[float]
    compression_ratio_threshold: Optional[float]
    condition_on_previous_text: bool
    prompt_reset_on_temperature: float
    temperatures: list[float]
    initial_prompt: Optional[str]
    prefix: Optional[str]
    suppress_blank: bool
    suppress_tokens: Optional[list[int]]
    without_timestamps: bool
    max_initial_timestamp: float
    word_timestamps: bool
    prepend_punctuations: str
    append_punctuations: str
    multilingual: bool
    max_new_tokens: Optional[int]
    clip_timestamps: Union[str, Sequence[float]]
    hallucination_silence_threshold: Optional[float]
    hotwords: Optional[str]


@dataclass
class TranscriptionInfo:
    language: str  # a code; "" if there is no speech
    language_probability: float  # 1 if the language was given
    duration: float  # seconds of audio
    duration_after_vad: float  # the same: silence is skipped, not cut out
    all_language_probs: Optional[list[tuple[str, float]]]  # if the language was detected, most probable first
    transcription_options: TranscriptionOptions
    vad_options: None = None
