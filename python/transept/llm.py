"""LLM: texts, ids and audio in, texts out, many at once. vLLM's interface over Transept's engine."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Callable, Optional, Union

from . import _core
from ._checks import seconds, shown, text_argument
from ._foreign import refuse_unless
from ._model import EngineModel, Tokenizer
from ._progress import tqdm_class
from ._requests import answer_patiently, run_in_order
from .engine_args import engine_args
from .errors import InvalidArgumentError
from .inputs import EncodedInput, Ids, Parts, PromptType, decoder_of, is_one_prompt, parts_of
from .outputs import BeamSearchOutput, BeamSearchSequence, RequestOutput, ScoreOutput
from .sampling_params import BeamSearchParams, SamplingParams, params_json, params_of_each


def fields_json(text: str, more: dict[str, Any]) -> str:
    """The request's JSON: its parameters', and what the prompt adds."""
    if not more:
        return text
    return json.dumps({**(json.loads(text) if text else {}), **more})


class LLM:
    """A model that answers prompts. Any number of threads may call it; their requests share the engine's batch.

    `model`: a folder, or ORG/NAME of the hub. Other arguments: EngineArgs.
    """

    def __init__(self, model: Union[str, os.PathLike[str]], **engine_arguments: Any) -> None:
        self._model: EngineModel = engine_args("LLM", model, engine_arguments).load()
        self._counter = itertools.count()

    def generate(
        self,
        prompts: Union[PromptType, Sequence[PromptType]],
        sampling_params: Optional[Union[SamplingParams, Sequence[SamplingParams]]] = None,
        *,
        use_tqdm: Union[bool, Callable[..., Any]] = False,
        lora_request: None = None,
        priority: None = None,
        tokenization_kwargs: None = None,
        encoder_output: bool = False,
        timeout: float = 0.0,
    ) -> list[RequestOutput]:
        """Answers each prompt, in order.

        `sampling_params`: of all prompts, or a list of one for each. `encoder_output`: results have its rows.
        `timeout`: seconds of each request, its wait included; 0: none. Ctrl-C ends the call within a step. Raises the
        first error; the other requests are aborted then. `lora_request`, `priority` and `tokenization_kwargs` are
        vLLM's, and refused unless they are None.
        """
        if lora_request is not None or priority is not None or tokenization_kwargs is not None:
            refuse_unless("LLM.generate", "lora_request", lora_request, None)
            refuse_unless("LLM.generate", "priority", priority, None)
            refuse_unless("LLM.generate", "tokenization_kwargs", tokenization_kwargs, None)
        if timeout != 0:
            timeout = seconds("timeout", timeout)
        if use_tqdm and use_tqdm is not True and not callable(use_tqdm):
            raise TypeError(f"use_tqdm must be True, False or a class such as tqdm, not {shown(use_tqdm)}")
        if isinstance(prompts, str) and type(sampling_params) is SamplingParams and not use_tqdm and not encoder_output:
            # The same in fewer words: what Python does to a request is time that the engine sleeps.
            result = answer_patiently(self._model, text_argument("prompt", prompts), sampling_params, timeout)
            return [RequestOutput(str(next(self._counter)), result)]
        parts = _parts_of_all(prompts)
        texts = params_of_each(sampling_params, len(parts))
        flags = _core.ENCODER_OUTPUT if encoder_output else 0
        requests = [(part, fields_json(own, part.fields)) for part, own in zip(parts, texts)]
        results = run_in_order(self._model, requests, flags, timeout)
        if use_tqdm:
            results = _with_bar(results, len(requests), use_tqdm)
        return [RequestOutput(str(next(self._counter)), result) for result in results]

    def score(
        self,
        prompts: Union[PromptType, Sequence[PromptType]],
        decoder_prompts: Optional[Union[str, Ids, Sequence[Union[str, Ids]]]] = None,
        sampling_params: Optional[Union[SamplingParams, Sequence[SamplingParams]]] = None,
    ) -> list[ScoreOutput]:
        """The log-probability of each decoder prompt, given its encoder prompt. Nothing is generated.

        `decoder_prompts`: one for each prompt; None: prompts are {"encoder_prompt", "decoder_prompt"}. Raises
        InvalidArgumentError for a prompt without one: the decoder's own start has nothing to be scored.
        """
        parts = _parts_of_all(prompts)
        if decoder_prompts is not None:
            given = [decoder_prompts] if is_one_prompt(decoder_prompts, "decoder_prompts") else list(decoder_prompts)
            if len(given) != len(parts):
                what = f"decoder_prompts has {len(given)} items for {len(parts)} prompts"
                raise InvalidArgumentError(what, "decoder_prompts")
            parts = [part._replace(decoder=decoder_of(decoder)) for part, decoder in zip(parts, given)]
        for position, part in enumerate(parts):
            if part.decoder is None:
                what = f"decoder_prompts: there is none for prompts[{position}]: give the text or the ids to score"
                raise InvalidArgumentError(what, "decoder_prompts")
        texts = params_of_each(sampling_params, len(parts))
        requests = [(part, fields_json(own, part.fields)) for part, own in zip(parts, texts)]
        results = run_in_order(self._model, requests, _core.SCORE)
        return [ScoreOutput(str(next(self._counter)), result) for result in results]

    def encode(
        self, prompts: Union[PromptType, Sequence[PromptType]], sampling_params: Optional[SamplingParams] = None
    ) -> list[EncodedInput]:
        """Encodes each prompt once and pins it. A handle is a prompt, or an encoder_prompt, of any later request."""
        parts = _parts_of_all(prompts)
        text = params_json(sampling_params)
        return [
            EncodedInput(self._model.core.encode(part.encoder, fields_json(text, part.fields)))
            for part in parts
        ]

    def beam_search(
        self,
        prompts: Union[PromptType, Sequence[PromptType]],
        params: BeamSearchParams,
        lora_request: None = None,
        use_tqdm: Union[bool, Callable[..., Any]] = False,
    ) -> list[BeamSearchOutput]:
        """The `beam_width` best answers of each prompt. `lora_request` is vLLM's, and refused unless it is None."""
        refuse_unless("LLM.beam_search", "lora_request", lora_request, None)
        if not isinstance(params, BeamSearchParams):
            raise TypeError(f"params must be a BeamSearchParams, not {shown(params)}")
        outputs = self.generate(prompts, params.to_sampling_params(), use_tqdm=use_tqdm)
        return [
            BeamSearchOutput(
                [
                    BeamSearchSequence(answer.token_ids, answer.text, answer.cumulative_logprob, answer.finish_reason)
                    for answer in output.outputs
                ]
            )
            for output in outputs
        ]

    def get_tokenizer(self) -> Tokenizer:
        return Tokenizer(self._model)

    def get_default_sampling_params(self) -> SamplingParams:
        """All None: the model's own."""
        return SamplingParams()

    @property
    def info(self) -> dict[str, Any]:
        """What the model is: family, sizes, limits, types, threads, KV blocks."""
        return dict(self._model.info)

    def stats(self) -> dict[str, Any]:
        """Counters since loading, and the state after the engine's last step."""
        return self._model.stats()

    def shutdown(self) -> None:
        """Ends the engine after its step, and frees its memory. Later calls raise UnavailableError."""
        self._model.core.stop()

    def __enter__(self) -> LLM:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.shutdown()


def _parts_of_all(prompts: Any) -> list[Parts]:
    return [parts_of(prompts)] if is_one_prompt(prompts) else [parts_of(prompt) for prompt in prompts]


def _with_bar(
    results: Iterable[_core.Result], total: int, use_tqdm: Union[bool, Callable[..., Any], None]
) -> Iterator[_core.Result]:
    """A bar of tqdm, where it is installed."""
    if use_tqdm is True:
        use_tqdm = tqdm_class()
        if use_tqdm is None:
            return iter(results)
    assert callable(use_tqdm)
    shown: Iterator[_core.Result] = iter(use_tqdm(results, total=total, desc="Processed prompts"))
    return shown
