"""Arguments of other libraries that mean nothing here: harmless ones are accepted, others are refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .errors import UnsupportedError


def check_foreign(callee: str, given: Mapping[str, Any], harmless: frozenset[str], refused: Mapping[str, Any]) -> None:
    """Judges keyword arguments that a function does not have.

    `harmless` change no result. `refused` would; each has the one value that is accepted, the other library's default.
    Raises UnsupportedError for another value of those, and TypeError for unknown names.
    """
    for name, value in given.items():
        if name in harmless:
            continue
        if name not in refused:
            raise TypeError(f"{callee}() got an unexpected keyword argument {name!r}")
        refuse_unless(callee, name, value, refused[name])


def refuse_unless(callee: str, name: str, value: Any, accepted: Any, hint: str = "") -> None:
    """Raises UnsupportedError unless `value` is the one that changes nothing."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is accepted or (type(value) in (int, float, str, list, tuple) and value == accepted):
        return
    words = f"{callee}: {name}={value!r} is not supported; leave it out"
    raise UnsupportedError(f"{words}, or {hint}" if hint else words, name)
