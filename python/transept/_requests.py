"""Requests of one call: many in flight, results in order."""

from __future__ import annotations

import collections
import time
from collections.abc import Iterable, Iterator

from . import _core
from ._model import EngineModel
from .errors import ResourceExhaustedError
from .inputs import Parts
from .sampling_params import SamplingParams

_MAX_IN_FLIGHT = 256  # of one call, half of the queue
_FULL_QUEUE_SECONDS = 0.005


def run_in_order(
    model: EngineModel, requests: Iterable[tuple[Parts, str]], flags: int, timeout: float = 0.0
) -> Iterator[_core.Result]:
    """Whole results, in order. `requests`: prompts and the JSON of their fields. Leaving it aborts what is in flight."""
    pending: collections.deque[_core.Stream] = collections.deque()
    try:
        for part, fields in requests:
            if len(pending) >= _MAX_IN_FLIGHT:
                yield _oldest(pending)
            while True:
                try:
                    pending.append(model.core.submit(part.encoder, part.decoder, fields, flags, timeout))
                    break
                except ResourceExhaustedError:  # others fill the queue
                    if pending:
                        yield _oldest(pending)
                    else:
                        time.sleep(_FULL_QUEUE_SECONDS)
        while pending:
            yield _oldest(pending)
    finally:
        pending.clear()  # aborts


def submit_patiently(
    model: EngineModel, part: Parts, fields: str, flags: int, timeout: float = 0.0
) -> _core.Stream:
    """Waits while the queue is full."""
    while True:
        try:
            return model.core.submit(part.encoder, part.decoder, fields, flags, timeout)
        except ResourceExhaustedError:
            time.sleep(_FULL_QUEUE_SECONDS)


def answer_patiently(model: EngineModel, encoder: str, params: SamplingParams, timeout: float) -> _core.Result:
    """The whole answer of one request. Waits while the queue is full."""
    while True:
        try:
            return model.core.answer(encoder, params, timeout)
        except ResourceExhaustedError:
            time.sleep(_FULL_QUEUE_SECONDS)


def _oldest(pending: collections.deque[_core.Stream]) -> _core.Result:
    """The oldest request's result, when it is there."""
    result = whole(pending[0])
    pending.popleft()
    return result


def whole(stream: _core.Stream) -> _core.Result:
    """Waits for the result of a request that is not streamed."""
    result = stream.next()
    assert result is not None, "without a timeout a result comes"
    return result
