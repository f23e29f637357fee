"""Results of requests, with vLLM's names."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from ._saved_result import AnyResult


@dataclass(frozen=True)
class Logprob:
    """A token's log-probability (natural), its rank from 1 on, and its text."""

    logprob: float
    rank: Optional[int] = None
    decoded_token: Optional[str] = None


# Of each token: the best ones and the chosen one, by id.
SampleLogprobs = list[dict[int, Logprob]]
# The first entry is None.
PromptLogprobs = list[Optional[dict[int, Logprob]]]


def read_logprobs(entries: Optional[list[Optional[dict[str, Any]]]]) -> Optional[PromptLogprobs]:
    """From the JSON of docs/api.md."""
    if entries is None:
        return None
    return [None if entry is None else {int(token): Logprob(**e) for token, e in entry.items()} for entry in entries]


def sample_logprobs(entries: Optional[list[Optional[dict[str, Any]]]]) -> Optional[SampleLogprobs]:
    logprobs = read_logprobs(entries)
    return None if logprobs is None else [entry or {} for entry in logprobs]


@dataclass(frozen=True)
class RequestMetrics:
    """Seconds from the request's arrival; None: has not happened."""

    queue_seconds: Optional[float]
    first_token_seconds: Optional[float]
    total_seconds: Optional[float]


class CompletionOutput:
    """One answer of a request. Immutable. Its attributes are also written in src/python/result.cc."""

    def __init__(
        self,
        index: int,
        text: str,
        token_ids: list[int],
        cumulative_logprob: float,
        beam_score: float,
        finish_reason: Optional[str],
        result: AnyResult,
        logprobs: Optional[SampleLogprobs] = None,
    ) -> None:
        self.index = index
        self.text = text
        self.token_ids = token_ids
        self.cumulative_logprob = cumulative_logprob
        self.finish_reason = finish_reason
        self._beam_score = beam_score
        self._result = result
        self._logprobs = logprobs

    def finished(self) -> bool:
        return self.finish_reason is not None

    @property
    def beam_score(self) -> Optional[float]:
        """Ranks the answers of a beam search."""
        return None if self._beam_score != self._beam_score else self._beam_score

    @property
    def token_ids_array(self) -> npt.NDArray[np.int32]:
        """The result's own memory, read-only."""
        return self._result.token_ids_array(self._position())

    @functools.cached_property
    def logprobs(self) -> Optional[SampleLogprobs]:
        return sample_logprobs(self._json.get("logprobs")) if self._logprobs is None else self._logprobs

    @property
    def stop_reason(self) -> Union[int, str, None]:
        reason: Union[int, str, None] = self._json.get("stop_reason")
        return reason

    @property
    def alignments(self) -> Optional[list[Optional[int]]]:
        """With return_alignments: of each token the index of the encoder's token that it attends to most."""
        alignments: Optional[list[Optional[int]]] = self._json.get("alignments")
        return alignments

    def _position(self) -> int:
        return next(i for i in range(len(self._result)) if self._result.output(i)[0] == self.index)

    @functools.cached_property
    def _json(self) -> dict[str, Any]:
        outputs: list[dict[str, Any]] = json.loads(self._result.json())["outputs"]
        return outputs[self._position()]

    def __repr__(self) -> str:
        return (
            f"CompletionOutput(index={self.index}, text={self.text!r}, token_ids={self.token_ids}, "
            f"cumulative_logprob={self.cumulative_logprob}, logprobs={self.logprobs}, "
            f"finish_reason={self.finish_reason!r}, stop_reason={self.stop_reason!r})"
        )


class RequestOutput:
    """The answers of a request. `prompt` is the decoder's, which the answers continue; `encoder_prompt` the encoder's."""

    def __init__(self, request_id: str, result: AnyResult, outputs: Optional[list[CompletionOutput]] = None) -> None:
        self.request_id = request_id
        self._result = result
        self._outputs = outputs

    @property
    def outputs(self) -> list[CompletionOutput]:
        if self._outputs is None:
            self._outputs = self._result.outputs(CompletionOutput)
        return self._outputs

    @property
    def finished(self) -> bool:
        return self._result.is_finished

    @property
    def prompt_token_ids(self) -> list[int]:
        return self._result.decoder_ids

    @property
    def encoder_prompt_token_ids(self) -> list[int]:
        return self._result.encoder_ids

    @property
    def prompt(self) -> Optional[str]:
        prompt: Optional[str] = self._json["prompt"]
        return prompt

    @property
    def encoder_prompt(self) -> Optional[str]:
        prompt: Optional[str] = self._json["encoder_prompt"]
        return prompt

    @functools.cached_property
    def prompt_logprobs(self) -> Optional[PromptLogprobs]:
        return read_logprobs(self._json.get("prompt_logprobs"))

    @property
    def metrics(self) -> RequestMetrics:
        queue, first_token, total, _ = self._result.seconds
        known = [value if value >= 0 else None for value in (queue, first_token, total)]
        return RequestMetrics(*known)

    @property
    def encoder_output(self) -> Optional[npt.NDArray[np.float32]]:
        """[positions, width], the result's own memory; None unless it was asked for."""
        rows = self._result.encoder_output
        return rows if rows.size else None

    @functools.cached_property
    def _json(self) -> dict[str, Any]:
        whole: dict[str, Any] = json.loads(self._result.json())
        return whole

    def __repr__(self) -> str:
        return (
            f"RequestOutput(request_id={self.request_id}, prompt={self.prompt!r}, "
            f"prompt_token_ids={self.prompt_token_ids}, encoder_prompt={self.encoder_prompt!r}, "
            f"encoder_prompt_token_ids={self.encoder_prompt_token_ids}, outputs={self.outputs}, "
            f"finished={self.finished})"
        )


class ScoreOutput:
    """The log-probability of a decoder prompt, given an encoder prompt."""

    def __init__(self, request_id: str, result: AnyResult) -> None:
        self.request_id = request_id
        self.score: float = result.score  # the sum over the prompt's tokens but the first
        self._result = result

    @property
    def prompt_token_ids(self) -> list[int]:
        return self._result.decoder_ids

    @property
    def encoder_prompt_token_ids(self) -> list[int]:
        return self._result.encoder_ids

    @functools.cached_property
    def prompt_logprobs(self) -> PromptLogprobs:
        return read_logprobs(json.loads(self._result.json())["prompt_logprobs"]) or []

    def __repr__(self) -> str:
        return f"ScoreOutput(request_id={self.request_id}, score={self.score}, prompt_token_ids={self.prompt_token_ids})"


@dataclass
class BeamSearchSequence:
    """One answer of a beam search."""

    tokens: list[int]  # generated
    text: Optional[str] = None
    cum_logprob: float = 0.0
    finish_reason: Optional[str] = None


@dataclass
class BeamSearchOutput:
    """The answers of a beam search, best first."""

    sequences: list[BeamSearchSequence] = field(default_factory=list)
