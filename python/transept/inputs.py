"""Prompts, in vLLM's forms."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional, TypedDict, Union

import numpy as np
import numpy.typing as npt

from . import _core
from ._checks import BYTES, finite, ids_of, json_of, shown, text_argument, whole
from .errors import InvalidArgumentError, UnsupportedError


class EncodedInput:
    """An encoder's input that is encoded once and pinned, for several requests: LLM.encode gives it.

    The engine may evict it when it needs the memory; the next request then encodes it again.
    """

    def __init__(self, core: _core.Encoded) -> None:
        self._core = core

    @property
    def num_positions(self) -> int:
        """Rows of the encoder's output."""
        return self._core.num_positions


Ids = Union[Sequence[int], npt.NDArray[np.int32]]
# (samples, hertz), samples of 16 kHz, or a file.
Audio = Union[tuple[npt.NDArray[np.floating[Any]], Union[int, float]], npt.NDArray[np.floating[Any]], str, "os.PathLike[str]"]


class MultiModalDataDict(TypedDict, total=False):
    audio: Union[Audio, Sequence[Audio]]


class TextPrompt(TypedDict, total=False):
    prompt: str
    multi_modal_data: MultiModalDataDict


class TokensPrompt(TypedDict, total=False):
    prompt_token_ids: Ids
    multi_modal_data: MultiModalDataDict


SingletonPrompt = Union[str, Ids, EncodedInput, TextPrompt, TokensPrompt]


class ExplicitEncoderDecoderPrompt(TypedDict, total=False):
    encoder_prompt: SingletonPrompt
    decoder_prompt: Optional[Union[str, Ids, TextPrompt, TokensPrompt]]


PromptType = Union[SingletonPrompt, ExplicitEncoderDecoderPrompt]

_REFUSED_KEYS = frozenset({"cache_salt", "mm_processor_kwargs", "multi_modal_uuids", "prompt_embeds"})
_TOKENS = ("prompt_token_ids", "prompt_tokens")
_FORMS = "a text, a list of token ids, a dict of vLLM's form, an EncodedInput"


class Parts(NamedTuple):
    """A prompt as the engine takes it. `fields`: members of the request's JSON, for what has no other way."""

    encoder: Any
    decoder: Any
    fields: dict[str, Any]


def is_one_prompt(prompts: Any, name: str = "prompts") -> bool:
    """Whether this is one prompt rather than a sequence of them. Raises TypeError for what is neither."""
    if isinstance(prompts, (str, dict, EncodedInput)):
        return True
    if isinstance(prompts, np.ndarray) and prompts.ndim > 0:
        return prompts.ndim == 1
    is_sequence = hasattr(prompts, "__len__") and hasattr(prompts, "__getitem__")
    if not is_sequence or isinstance(prompts, (np.ndarray, *BYTES)):
        raise TypeError(f"{name} must be one of {_FORMS}, or a list of them, not {shown(prompts)}")
    return len(prompts) > 0 and isinstance(prompts[0], (int, np.integer))


def parts_of(prompt: Any) -> Parts:
    """Takes a prompt apart. Raises TypeError, InvalidArgumentError (a form that is none) and UnsupportedError."""
    if isinstance(prompt, str):
        return Parts(text_argument("prompt", prompt), None, {})
    if not isinstance(prompt, dict):
        return Parts(_singleton(prompt, "prompt"), None, {})
    if "encoder_prompt" not in prompt and "decoder_prompt" not in prompt:
        return _dictionary(prompt)
    _check_keys(prompt, ("encoder_prompt", "decoder_prompt"))
    if prompt.get("encoder_prompt") is None:
        raise InvalidArgumentError("encoder_prompt: there is none", "encoder_prompt")
    encoder = _encoder_of(prompt["encoder_prompt"])
    if encoder.decoder:
        raise InvalidArgumentError("encoder_prompt: text beside multi_modal_data belongs to decoder_prompt", "encoder_prompt")
    decoder = prompt.get("decoder_prompt")
    return Parts(encoder.encoder, None if decoder is None else decoder_of(decoder), encoder.fields)


def _encoder_of(prompt: Any) -> Parts:
    if isinstance(prompt, dict) and ("encoder_prompt" in prompt or "decoder_prompt" in prompt):
        raise InvalidArgumentError("encoder_prompt must be one prompt, and not have a decoder_prompt of its own", "encoder_prompt")
    return parts_of(prompt)


def decoder_of(prompt: Any) -> Any:
    """A decoder's prompt: text or ids."""
    if isinstance(prompt, dict):
        if "multi_modal_data" in prompt:
            raise InvalidArgumentError("decoder_prompt: media belong to the encoder_prompt", "decoder_prompt")
        return _text_or_ids(prompt)
    if isinstance(prompt, EncodedInput):
        raise InvalidArgumentError("decoder_prompt: an encoded input belongs to the encoder_prompt", "decoder_prompt")
    return _singleton(prompt, "decoder_prompt")


def _singleton(prompt: Any, name: str) -> Any:
    if isinstance(prompt, str):
        return text_argument(name, prompt)
    if isinstance(prompt, EncodedInput):
        return prompt._core
    if isinstance(prompt, np.ndarray):
        if prompt.ndim != 1 or not np.issubdtype(prompt.dtype, np.integer):
            raise TypeError(f"{name}: ids are an array of integers of one dimension")
        return ids_array(prompt)
    if isinstance(prompt, Sequence) and not isinstance(prompt, BYTES):
        return ids_of(name, prompt)
    hint = "; decode() makes text of bytes" if isinstance(prompt, (bytes, bytearray)) else ""
    raise TypeError(f"{name} must be one of {_FORMS}, not {shown(prompt)}{hint}")


def ids_array(ids: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """Without a copy if they are contiguous int32."""
    narrow = np.ascontiguousarray(ids, dtype=np.int32)
    if narrow is not ids and ids.size and (ids.max() > 0x7FFFFFFF or ids.min() < -0x80000000):
        raise InvalidArgumentError("an id is outside the vocabulary", "prompt_token_ids")
    return narrow


def _check_keys(prompt: dict[str, Any], known: tuple[str, ...]) -> None:
    for key in prompt:
        if key in _REFUSED_KEYS:
            raise UnsupportedError(f"{key} of a prompt is not supported", key)
        if key not in known:
            raise InvalidArgumentError(f"a prompt has no {key!r}; it has {', '.join(known)}", str(key))


def _text_or_ids(prompt: dict[str, Any]) -> Any:
    _check_keys(prompt, ("prompt", *_TOKENS, "multi_modal_data"))
    given = [key for key in ("prompt", *_TOKENS) if prompt.get(key) is not None]
    if len(given) > 1 and "prompt" in given:  # vLLM's: ids win, text is for people
        given.remove("prompt")
    if given and given[0] in _TOKENS and isinstance(prompt[given[0]], str):
        raise TypeError(f"{given[0]} must be a list of token ids, not {shown(prompt[given[0]])}")
    return _singleton(prompt[given[0]], given[0]) if given else None


def _dictionary(prompt: dict[str, Any]) -> Parts:
    """Text or ids; beside media they are the decoder's."""
    text_or_ids = _text_or_ids(prompt)
    media = prompt.get("multi_modal_data")
    if media is None:
        if text_or_ids is None:
            raise InvalidArgumentError("a prompt has one of prompt, prompt_token_ids, multi_modal_data", "prompt")
        return Parts(text_or_ids, None, {})
    if not isinstance(media, dict):
        raise TypeError(f"multi_modal_data must be a dict, such as {{\"audio\": (samples, hertz)}}, not {shown(media)}")
    audio = media.get("audio")
    if isinstance(audio, list) and len(audio) == 1:
        audio = audio[0]
    samples = _samples_of(audio)
    if samples is not None and len(media) == 1:
        return Parts(samples, text_or_ids, {})
    if isinstance(audio, os.PathLike):
        media = {**media, "audio": os.fspath(audio)}
    try:
        json_of("multi_modal_data", media)
    except TypeError:
        raise TypeError(f"multi_modal_data: audio is (samples, hertz), samples or a path, not {type(audio).__name__}") from None
    return Parts(None, text_or_ids, {"prompt": {"multi_modal_data": media}})


def _samples_of(audio: Any) -> Optional[tuple[npt.NDArray[np.float32], int]]:
    """(samples, hertz), without a copy if they are contiguous float32."""
    rate: Union[int, float] = 16000
    if isinstance(audio, tuple) and len(audio) == 2:
        audio, rate = audio
    if not isinstance(audio, np.ndarray):
        return None
    if audio.ndim != 1 or not np.issubdtype(audio.dtype, np.floating):
        raise TypeError("audio: samples are an array of floats of one dimension, full scale 1")
    hertz = finite("sampling_rate", rate)
    if not hertz.is_integer():
        raise InvalidArgumentError(f"audio: a rate is whole hertz, not {rate}", "sampling_rate")
    return np.ascontiguousarray(audio, dtype=np.float32), whole("sampling_rate", int(hertz), 1)
