"""AsyncLLM: requests of an event loop, streamed. vLLM's interface over Transept's engine."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import Any, Optional, Union

from . import _core
from ._checks import BYTES, seconds, shown, text_argument
from ._foreign import refuse_unless
from ._model import EngineModel, Tokenizer
from .engine_args import EngineArgs, engine_args
from .errors import InvalidArgumentError, UnavailableError
from .inputs import PromptType, parts_of
from .llm import fields_json
from .outputs import CompletionOutput, RequestOutput, SampleLogprobs
from .sampling_params import RequestOutputKind, SamplingParams, params_json


# A loop starts all of its requests at once, and vLLM's queue has no end. LLM waits for room in a short one instead.
_MOST_QUEUED = 2**31 - 1


class _LoopBell:
    """Wakes an event loop's tasks when their streams have news. One descriptor a loop, no thread.

    Used on its loop's thread alone.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.notifier = _core.Notifier()
        self._loop = loop
        self._events: dict[int, asyncio.Event] = {}
        self._keys = itertools.count()

    def add(self) -> tuple[int, asyncio.Event]:
        if not self._events:
            self._loop.add_reader(self.notifier.fileno(), self._ring)
        key, event = next(self._keys), asyncio.Event()
        self._events[key] = event
        return key, event

    def remove(self, key: int) -> None:
        self._events.pop(key, None)
        if not self._events and not self._loop.is_closed():
            self._loop.remove_reader(self.notifier.fileno())

    def _ring(self) -> None:
        for key in self.notifier.take():
            event = self._events.get(key)
            if event is not None:
                event.set()


class AsyncLLM:
    """A model that answers prompts of event loops. Several loops, and threads of LLM's kind, may share it.

    `model`: a folder, ORG/NAME of the hub, or EngineArgs, which have the other arguments. Loading blocks.
    """

    def __init__(self, model: Union[str, os.PathLike[str], EngineArgs], **engine_arguments: Any) -> None:
        if isinstance(model, EngineArgs) and engine_arguments:
            raise TypeError(f"AsyncLLM() got EngineArgs, and {', '.join(engine_arguments)} beside them; put them there")
        args = model if isinstance(model, EngineArgs) else engine_args("AsyncLLM", model, engine_arguments)
        self._model: EngineModel = args.load(max_queued_by_default=_MOST_QUEUED)
        self._bells: dict[asyncio.AbstractEventLoop, _LoopBell] = {}
        self._running: dict[str, _core.Stream] = {}
        self._is_stopped = False

    @classmethod
    def from_engine_args(cls, engine_args: EngineArgs, **ignored: Any) -> AsyncLLM:
        """vLLM's constructor; start_engine_loop, usage_context, stat_loggers and the like mean nothing here."""
        known = {"start_engine_loop", "usage_context", "stat_loggers", "enable_log_requests", "disable_log_stats"}
        for name in ignored:
            if name not in known:
                raise TypeError(f"from_engine_args() got an unexpected keyword argument {name!r}")
        return cls(engine_args)

    async def generate(
        self,
        prompt: PromptType,
        sampling_params: Optional[SamplingParams] = None,
        request_id: Optional[str] = None,
        *,
        lora_request: None = None,
        tokenization_kwargs: None = None,
        trace_headers: Optional[Mapping[str, str]] = None,
        priority: Optional[int] = 0,
        timeout: float = 0.0,
    ) -> AsyncIterator[RequestOutput]:
        """Yields the answer as it comes: all of it each time, what is new, or the end (sampling_params.output_kind).

        A consumer that is slow gets more at once. Leaving the loop, or cancelling the task, aborts the request.
        `trace_headers` mean nothing here; the three beside them are vLLM's, and refused unless they have its default.
        """
        refuse_unless("AsyncLLM.generate", "lora_request", lora_request, None)
        refuse_unless("AsyncLLM.generate", "tokenization_kwargs", tokenization_kwargs, None)
        refuse_unless("AsyncLLM.generate", "priority", priority or 0, 0)
        params = SamplingParams() if sampling_params is None else sampling_params
        text = params_json(params)
        if not isinstance(params.output_kind, RequestOutputKind):
            raise TypeError(f"output_kind must be a RequestOutputKind, not {shown(params.output_kind)}")
        timeout = seconds("timeout", timeout)
        part = parts_of(prompt)
        name = str(id(part)) if request_id is None else text_argument("request_id", request_id)
        if name in self._running:
            raise InvalidArgumentError(f"request_id must be of no running request, as {shown(name)} is", "request_id")
        bell = self._bell()
        key, event = bell.add()
        flags = 0 if params.output_kind is RequestOutputKind.FINAL_ONLY else _core.STREAM
        pieces = _Pieces(name, params)
        try:
            stream = self._model.core.submit(
                part.encoder, part.decoder, fields_json(text, part.fields), flags, timeout, bell.notifier, key
            )
            self._running[name] = stream
            while not stream.has_ended:
                result = stream.next(0.0)
                if result is None:
                    await event.wait()
                    event.clear()
                    continue
                yield pieces.output_of(result)
                if not stream.has_ended:  # a consumer that is slower than the engine lets the loop's other tasks go on
                    await asyncio.sleep(0)
        finally:
            bell.remove(key)
            running = self._running.pop(name, None)
            if running is not None and not running.has_ended:
                running.abort()

    async def abort(self, request_id: Union[str, Iterable[str]]) -> None:
        """Ends a request, or each of several: its last output has the finish_reason "abort". Unknown names are ignored."""
        for name in _names_of(request_id):
            stream = self._running.get(name)
            if stream is not None:
                stream.abort()

    async def get_tokenizer(self) -> Tokenizer:
        return Tokenizer(self._model)

    async def check_health(self) -> None:
        """Raises UnavailableError once the engine was stopped."""
        if self._is_stopped:
            raise UnavailableError("the engine was shut down")

    @property
    def is_running(self) -> bool:
        return not self._is_stopped

    @property
    def info(self) -> dict[str, Any]:
        """What the model is: family, sizes, limits, types, threads, KV blocks."""
        return dict(self._model.info)

    def stats(self) -> dict[str, Any]:
        """Counters since loading, and the state after the engine's last step."""
        return self._model.stats()

    def shutdown(self) -> None:
        """Ends the engine after its step, and frees its memory. Running requests raise UnavailableError."""
        self._is_stopped = True
        self._model.core.stop()

    def __enter__(self) -> AsyncLLM:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.shutdown()

    def _bell(self) -> _LoopBell:
        loop = asyncio.get_running_loop()
        if loop not in self._bells:
            self._bells = {known: bell for known, bell in self._bells.items() if not known.is_closed()}
            self._bells[loop] = _LoopBell(loop)
        return self._bells[loop]


def _names_of(request_id: Any) -> list[str]:
    if isinstance(request_id, str):
        return [request_id]
    if isinstance(request_id, (Mapping, *BYTES)) or not isinstance(request_id, Iterable):
        raise TypeError(f"request_id must be a str or an iterable of them, not {shown(request_id)}")
    names = list(request_id)
    for position, name in enumerate(names):
        if not isinstance(name, str):
            raise TypeError(f"request_id[{position}] must be a str, not {shown(name)}")
    return names


class _Pieces:
    """Puts the pieces of a stream together, unless they are wanted as they are."""

    def __init__(self, request_id: str, params: SamplingParams) -> None:
        self._request_id = request_id
        self._joins = params.output_kind is RequestOutputKind.CUMULATIVE
        self._has_logprobs = params.logprobs is not None
        self._texts: dict[int, str] = {}
        self._ids: dict[int, list[int]] = {}
        self._logprobs: dict[int, SampleLogprobs] = {}

    def output_of(self, result: _core.Result) -> RequestOutput:
        output = RequestOutput(self._request_id, result)
        if not self._joins:
            return output
        return RequestOutput(self._request_id, result, [self._joined(piece) for piece in output.outputs])

    def _joined(self, piece: CompletionOutput) -> CompletionOutput:
        index = piece.index
        self._texts[index] = self._texts.get(index, "") + piece.text
        self._ids.setdefault(index, []).extend(piece.token_ids)
        if self._has_logprobs:
            self._logprobs.setdefault(index, []).extend(piece.logprobs or [])
        return CompletionOutput(
            index,
            self._texts[index],
            list(self._ids[index]),
            piece.cumulative_logprob,
            float("nan") if piece.beam_score is None else piece.beam_score,
            piece.finish_reason,
            piece._result,
            list(self._logprobs[index]) if self._has_logprobs else None,
        )
