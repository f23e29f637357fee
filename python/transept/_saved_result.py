"""Results outside the engine's memory: what a pickle or a deep copy of an output has in the place of _core.Result."""

from __future__ import annotations

import copyreg
from dataclasses import dataclass
from typing import Any, Callable, Optional, TypeVar, Union

import numpy as np
import numpy.typing as npt

from . import _core

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class SavedResult:
    """Has the attributes of _core.Result."""

    answers: list[tuple[int, str, list[int], float, float, Optional[str]]]
    json_text: str
    text: str
    is_finished: bool
    score: float
    encoder_ids: list[int]
    decoder_ids: list[int]
    seconds: tuple[float, float, float, float]
    encoder_output: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.answers)

    def output(self, index: int) -> tuple[int, str, list[int], float, float, Optional[str]]:
        return self.answers[index]

    def outputs(self, kind: Callable[..., _T]) -> list[_T]:
        return [kind(*answer, self) for answer in self.answers]

    def token_ids_array(self, index: int) -> npt.NDArray[np.int32]:
        ids = np.array(self.answers[index][2], np.int32)
        ids.flags.writeable = False
        return ids

    def json(self) -> str:
        return self.json_text


AnyResult = Union[_core.Result, SavedResult]


def _reduce(result: _core.Result) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    answers = [result.output(i) for i in range(len(result))]
    about = (result.text, result.is_finished, result.score, result.encoder_ids, result.decoder_ids, result.seconds)
    return SavedResult, (answers, result.json(), *about, np.array(result.encoder_output))


copyreg.pickle(_core.Result, _reduce)  # copy.deepcopy looks there, too
