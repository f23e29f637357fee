"""Inference of encoder/decoder transformers: BART, T5, Whisper and their families.

    transept.LLM             texts, ids and audio in, texts out: vLLM's interface
    transept.AsyncLLM        the same for an event loop, streamed
    transept.WhisperModel    speech to text: faster-whisper's interface
    transept.Translator      tokens in, tokens out: CTranslate2's interface

docs/python.md says what differs from each.
"""

from ._core import version as _version
from ._model import Tokenizer, set_log_level
from .async_llm import AsyncLLM
from .engine_args import AsyncEngineArgs, EngineArgs
from .errors import (
    CancelledError,
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    ForkedError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OutOfMemoryError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
    TranseptError,
    UnavailableError,
    UnsupportedError,
)
from .inputs import EncodedInput, ExplicitEncoderDecoderPrompt, PromptType, TextPrompt, TokensPrompt
from .llm import LLM
from .outputs import (
    BeamSearchOutput,
    BeamSearchSequence,
    CompletionOutput,
    Logprob,
    RequestMetrics,
    RequestOutput,
    ScoreOutput,
)
from .sampling_params import BeamSearchParams, RequestOutputKind, SamplingParams
from .translator import (
    AsyncTranslationResult,
    GenerationStepResult,
    ScoringResult,
    TranslationResult,
    Translator,
)
from .whisper import (
    BatchedInferencePipeline,
    Segment,
    TranscriptionInfo,
    TranscriptionOptions,
    WhisperModel,
    Word,
    available_models,
    decode_audio,
    format_timestamp,
)

__version__ = _version()

__all__ = [
    "LLM",
    "AsyncEngineArgs",
    "AsyncLLM",
    "AsyncTranslationResult",
    "BatchedInferencePipeline",
    "BeamSearchOutput",
    "BeamSearchParams",
    "BeamSearchSequence",
    "CancelledError",
    "CompletionOutput",
    "DataLossError",
    "DeadlineExceededError",
    "EncodedInput",
    "EngineArgs",
    "ExplicitEncoderDecoderPrompt",
    "FailedPreconditionError",
    "ForkedError",
    "GenerationStepResult",
    "InternalError",
    "InvalidArgumentError",
    "Logprob",
    "NotFoundError",
    "OutOfMemoryError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "PromptType",
    "RequestMetrics",
    "RequestOutput",
    "RequestOutputKind",
    "ResourceExhaustedError",
    "SamplingParams",
    "ScoreOutput",
    "ScoringResult",
    "Segment",
    "TextPrompt",
    "Tokenizer",
    "TokensPrompt",
    "TranscriptionInfo",
    "TranscriptionOptions",
    "TranseptError",
    "TranslationResult",
    "Translator",
    "UnavailableError",
    "UnsupportedError",
    "WhisperModel",
    "Word",
    "__version__",
    "available_models",
    "decode_audio",
    "format_timestamp",
    "set_log_level",
]
