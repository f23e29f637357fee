"""Parameters of a request, in vLLM's names. What is None comes from the model's generation_config.json."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Optional, Union

import numpy as np

from ._checks import finite, json_of, shown, whole
from ._foreign import check_foreign
from .errors import InvalidArgumentError, UnsupportedError


class RequestOutputKind(enum.Enum):
    """What AsyncLLM.generate yields."""

    CUMULATIVE = 0  # all text so far, each time
    DELTA = 1  # what is new
    FINAL_ONLY = 2  # once


# Of vLLM's fields: what changes no result, and what does; the latter with their defaults.
_HARMLESS = frozenset({"detokenize", "skip_clone", "output_text_buffer_length", "stream_interval"})
_REFUSED: dict[str, Any] = {
    "allowed_logprobs": None,
    "extra_args": None,
    "flat_logprobs": False,
    "logits_processors": None,
    "logprob_token_ids": None,
    "prompt_logprob_start": None,
    "prompt_logprob_token_ids": None,
    "repetition_detection": None,
    "skip_reading_prefix_cache": None,
    "spaces_between_special_tokens": True,
    "structured_outputs": None,
    "guided_decoding": None,
    "thinking_token_budget": None,
    "trace_decode_token_ids": None,
}


@dataclass
class SamplingParams:
    """A request's parameters. docs/api.md says what each does, its range and its default.

    Raises TypeError for an unknown name. Values are checked when a request is made of them, when numbers that are not
    finite are an InvalidArgumentError, too.
    """

    n: Optional[int] = None
    best_of: Optional[int] = None
    presence_penalty: Optional[float] = None
    frequency_penalty: Optional[float] = None
    repetition_penalty: Optional[float] = None
    temperature: Optional[float] = None
    top_p: Optional[float] = None
    top_k: Optional[int] = None
    min_p: Optional[float] = None
    seed: Optional[int] = None
    stop: Optional[Union[str, Sequence[str]]] = None
    stop_token_ids: Optional[Sequence[int]] = None
    ignore_eos: Optional[bool] = None
    max_tokens: Optional[int] = None
    min_tokens: Optional[int] = None
    logprobs: Optional[int] = None
    prompt_logprobs: Optional[int] = None
    skip_special_tokens: Optional[bool] = None
    include_stop_str_in_output: Optional[bool] = None
    truncate_prompt_tokens: Optional[int] = None
    output_kind: RequestOutputKind = RequestOutputKind.CUMULATIVE
    logit_bias: Optional[dict[int, float]] = None
    allowed_token_ids: Optional[Sequence[int]] = None
    bad_words: Optional[Sequence[str]] = None
    # Of vLLM's beam search before it had a class of its own, and of Hugging Face.
    use_beam_search: Optional[bool] = None
    num_beams: Optional[int] = None
    length_penalty: Optional[float] = None
    early_stopping: Optional[Union[bool, str]] = None
    no_repeat_ngram_size: Optional[int] = None
    encoder_no_repeat_ngram_size: Optional[int] = None
    forced_bos_token_id: Optional[int] = None
    forced_eos_token_id: Optional[Union[int, Sequence[int]]] = None
    suppress_tokens: Optional[Sequence[int]] = None
    begin_suppress_tokens: Optional[Sequence[int]] = None
    bad_words_ids: Optional[Sequence[Sequence[int]]] = None
    # Transept's.
    add_special_tokens: Optional[bool] = None
    source_lang: Optional[str] = None
    target_lang: Optional[str] = None
    return_alignments: Optional[bool] = None
    language: Optional[str] = None
    task: Optional[str] = None
    timestamps: Optional[bool] = None

    @classmethod
    def from_optional(cls, **values: Any) -> SamplingParams:
        """vLLM's other constructor: here the same."""
        return cls(**values)

    def clone(self) -> SamplingParams:
        return SamplingParams(**{field.name: getattr(self, field.name) for field in fields(self)})

    def to_json(self) -> str:
        """The fields of docs/api.md as one object."""
        members = [  # whole numbers on a short way: a request often comes with parameters of its own
            f'{_name_json(name)}: {value}' if type(value) is int and value.bit_length() < 64 else f'{_name_json(name)}: {_field_json(name, value)}'
            for name, value in self.__dict__.items()
            if value is not None and name != "output_kind"
        ]
        return "{" + ", ".join(members) + "}"


_NAMES: Final = frozenset(field.name for field in fields(SamplingParams))
_init = SamplingParams.__init__


def _init_and_judge(self: SamplingParams, *args: Any, **given: Any) -> None:
    """As the dataclass, and says of vLLM's other fields what becomes of them. Sets what is given alone: a request often
    comes with parameters of its own, and the class has the defaults."""
    if not args and _NAMES.issuperset(given):
        self.__dict__ = given
        return
    foreign = {name: given.pop(name) for name in list(given) if name in _HARMLESS or name in _REFUSED}
    check_foreign("SamplingParams", foreign, _HARMLESS, _REFUSED)
    _init(self, *args, **given)


SamplingParams.__init__ = _init_and_judge  # type: ignore[method-assign]


def _name_json(name: str) -> str:
    """A caller may set attributes of any name: the engine warns of those that it does not know."""
    return f'"{name}"' if name in _NAMES else json_of("an attribute's name", name)


def _field_json(name: str, value: Any) -> str:
    if type(value) is float and value - value == 0:
        return repr(value)
    if isinstance(value, int) and value.bit_length() >= 64:
        raise InvalidArgumentError(f"{name} must be a number of 64 bits, not {shown(value)}", name)
    try:
        listed = _listed(value)
    except RecursionError:
        raise InvalidArgumentError(f"{name} holds itself, or is nested too deep: {shown(value)}", name) from None
    return json_of(name, listed)


def _listed(value: Any) -> Any:
    """Lists of tuples, arrays and sets; numbers of numpy, also as keys."""
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, dict):
        return {key.item() if isinstance(key, np.generic) else key: _listed(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_listed(item) for item in value]
    return value


@dataclass
class BeamSearchParams:
    """Parameters of LLM.beam_search, vLLM's."""

    beam_width: int
    max_tokens: Optional[int] = None
    ignore_eos: bool = False
    temperature: float = 0.0
    length_penalty: float = 1.0
    include_stop_str_in_output: bool = False

    def to_sampling_params(self) -> SamplingParams:
        whole("beam_width", self.beam_width, 1)
        if finite("temperature", self.temperature) != 0.0:
            raise UnsupportedError("BeamSearchParams: a beam search has no temperature", "temperature")
        return SamplingParams(
            n=self.beam_width,
            num_beams=self.beam_width,
            max_tokens=self.max_tokens,
            ignore_eos=self.ignore_eos,
            length_penalty=self.length_penalty,
            include_stop_str_in_output=self.include_stop_str_in_output,
        )


def params_json(params: Any) -> str:
    """The JSON of a request's parameters; of None: "". Raises TypeError for what is no SamplingParams."""
    if params is None:
        return ""
    if isinstance(params, SamplingParams):
        return params.to_json()
    raise TypeError(f"sampling_params must be a SamplingParams, not {shown(params)}")


def params_of_each(params: Any, count: int) -> Sequence[str]:
    """Parameters' JSON, one for each request, of one SamplingParams or of a list of as many as there are requests."""
    if params is None or isinstance(params, SamplingParams):
        return [params_json(params)] * count
    if isinstance(params, (str, bytes)) or not isinstance(params, Sequence):
        what = "must be a SamplingParams, or a list with one for each prompt"
        raise TypeError(f"sampling_params {what}, not {shown(params)}")
    if len(params) != count:
        raise InvalidArgumentError(f"sampling_params has {len(params)} items for {count} prompts", "sampling_params")
    for position, own in enumerate(params):
        if own is not None and not isinstance(own, SamplingParams):
            raise TypeError(f"sampling_params[{position}] must be a SamplingParams, not {shown(own)}")
    return [params_json(own) for own in params]
