"""Checks of arguments. What is wrong is named, with its value and the reason."""

from __future__ import annotations

import json
import math
import operator
import os
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, Optional

import numpy as np

from .errors import InvalidArgumentError

BYTES: Final = (bytes, bytearray, memoryview)
_MOST = 2**31 - 1  # of 32 bits, as the engine's ids are
_MOST_SECONDS = 10**6  # the engine's


def whole(name: str, value: Any, least: int, most: int = _MOST) -> int:
    """A whole number from `least` to `most`."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, not {shown(value)}") from None
    if not least <= number <= most:
        limits = f"from {least} on" if most == _MOST else f"from {least} to {most}"
        raise InvalidArgumentError(f"{name} must be a whole number {limits}, not {shown(value)}", name)
    return number


def finite(name: str, value: Any) -> float:
    """A number that is one."""
    try:
        if isinstance(value, (str, *BYTES)):
            raise TypeError
        number = float(value)
    except OverflowError:  # a whole number beyond the floats
        number = math.inf
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, not {shown(value)}") from None
    if not math.isfinite(number):
        raise InvalidArgumentError(f"{name} must be a finite number, not {shown(value)}", name)
    return number


def seconds(name: str, value: Any) -> float:
    number = finite(name, value)
    if not 0 <= number <= _MOST_SECONDS:
        raise InvalidArgumentError(f"{name} must be seconds from 0 to {_MOST_SECONDS}, not {shown(value)}", name)
    return number


def ids_of(name: str, value: Any) -> list[int]:
    """A sequence's ids. Bytes are none, though Python counts them as numbers."""
    if isinstance(value, (str, *BYTES)):
        raise TypeError(f"{name} must be a list of token ids, not {shown(value)}")
    try:
        if bool in set(map(type, value)):
            raise TypeError
        ids = [operator.index(token_id) for token_id in value]
    except TypeError:
        raise TypeError(f"{name}: ids are whole numbers; {shown(value)} has others") from None
    if ids and not -_MOST <= min(ids) <= max(ids) <= _MOST:
        raise InvalidArgumentError(f"{name}: ids are whole numbers up to {_MOST}; {shown(value)} has others", name)
    return ids


def path_of(name: str, value: Any) -> str:
    """A name or a path, which no NUL may cut."""
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(path, str):
        raise TypeError(f"{name} must be a name or a path, not {shown(value)}")
    if "\0" in path:
        raise InvalidArgumentError(f"{name} must not hold a NUL, as {shown(path)} does", name)
    if not _is_utf8(path):
        raise InvalidArgumentError(f"{name} must be UTF-8, which {shown(path)} is not", name)
    return path


def folder_of(name: str, value: Any) -> Optional[str]:
    """A folder that an argument names, None: the default. An empty name is none, and not the default either."""
    folder = None if value is None else path_of(name, value)
    if folder == "":
        raise InvalidArgumentError(f"{name} must be the name of a folder, not {shown(value)}", name)
    return folder


def text_argument(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {shown(value)}")
    if not _is_utf8(value):
        raise _surrogate_error(name, value)
    return value


def flag(name: str, value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise TypeError(f"{name} must be True or False, not {shown(value)}")


def switch(name: str, value: Any) -> bool:
    """A flag where programs give numbers, too: 0 and 1."""
    if isinstance(value, (int, np.integer)) and value in (0, 1):
        return bool(value)
    return flag(name, value)


# What a value must be, and the types of it. Ranges, and floats that are not whole, are the engine's to judge.
_NUMBERS = (int, float, np.integer, np.floating)
_KINDS: Final[dict[str, tuple[str, tuple[type, ...]]]] = {
    "whole": ("a whole number", _NUMBERS),
    "number": ("a number", _NUMBERS),
    "text": ("a str", (str,)),
}


def of_kind(kind: str, name: str, value: Any) -> Any:
    """The value, which has one of the types of `kind`: "whole", "number", "text", or "switch". None is the default."""
    if value is None:
        return None
    if kind == "switch":
        return switch(name, value)
    words, types = _KINDS[kind]
    if not isinstance(value, types) or isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be {words}, not {shown(value)}")
    return value


def json_of(name: str, value: Any) -> str:
    """JSON of an argument's value."""
    try:
        return _encode(value)
    except (RecursionError, TypeError, ValueError) as error:
        raise _json_error(name, value, error) from None


def object_json(members: Mapping[str, Any]) -> str:
    """JSON of an object whose members are arguments: an error names the one."""
    try:
        return _encode(members)
    except (RecursionError, TypeError, ValueError) as error:
        for name, value in members.items():
            json_of(name, value)
        raise _json_error("an argument", members, error) from None


def shown(value: Any) -> str:
    """A value for a message: short, and with its type where that says more."""
    if isinstance(value, int) and value.bit_length() > 10_000:  # Python writes no more digits
        return f"a number of {value.bit_length()} bits"
    if value is None or isinstance(value, (bool, int, float)):
        return _repr.repr(value)
    return f"the {type(value).__name__} {_repr.repr(value)}"


_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = 60


def _python_scalar(value: Any) -> Any:
    """Numbers and flags of numpy."""
    if isinstance(value, np.generic) and isinstance(value.item(), (bool, int, float, str)):
        return value.item()
    raise TypeError


_json = json.JSONEncoder(allow_nan=False, default=_python_scalar).encode
_texts = json.JSONEncoder(ensure_ascii=False, default=_python_scalar).encode


def _encode(value: Any) -> str:
    text = _json(value)
    if "\\ud" in text and not _is_utf8(_texts(value)):
        raise UnicodeError
    return text


def _is_utf8(text: str) -> bool:
    if text.isascii():  # most are, and need no copy
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _surrogate_error(name: str, value: Any) -> InvalidArgumentError:
    return InvalidArgumentError(f"{name} must be text of Unicode; {shown(value)} has half of a surrogate pair", name)


def _json_error(name: str, value: Any, error: Exception) -> Exception:
    if isinstance(error, UnicodeError):
        return _surrogate_error(name, value)
    if isinstance(error, RecursionError) or str(error).startswith("Circular"):
        return InvalidArgumentError(f"{name} holds itself, or is nested too deep: {shown(value)}", name)
    if isinstance(error, TypeError):
        return TypeError(f"{name} must be text, numbers, true or false, or lists and dicts of these, not {shown(value)}")
    if isinstance(value, float) or str(error).startswith("Out of range float"):
        what = "be a finite number" if isinstance(value, float) else "hold finite numbers alone"
        return InvalidArgumentError(f"{name} must {what}, not {shown(value)}", name)
    return InvalidArgumentError(f"{name}: {error}", name)


def tokens_of(name: str, value: Any) -> Sequence[str]:
    """A list of tokens by their spelling, not a text that is to be cut into them."""
    if isinstance(value, (str, *BYTES)) or not hasattr(value, "__len__"):
        raise TypeError(f"{name} must be a list of tokens, such as [\"▁Hello\", \"</s>\"], not {shown(value)}")
    for position, token in enumerate(value):
        if not isinstance(token, str):
            raise TypeError(f"{name}[{position}]: a token is a str, not {shown(token)}")
    tokens: Sequence[str] = value
    return tokens


def lists_of_tokens(name: str, value: Any) -> list[Sequence[str]]:
    """A batch: a list of lists of tokens."""
    return [tokens_of(f"{name}[{i}]", tokens) for i, tokens in enumerate(_batch_of(name, value))]


def lists_of_tokens_or_none(name: str, value: Any) -> list[Optional[Sequence[str]]]:
    """The same where an item may be absent."""
    batch = enumerate(_batch_of(name, value))
    return [None if tokens is None else tokens_of(f"{name}[{i}]", tokens) for i, tokens in batch]


def _batch_of(name: str, value: Any) -> Any:
    if isinstance(value, (str, *BYTES)) or not hasattr(value, "__len__"):
        raise TypeError(f"{name} must be a list of lists of tokens, not {shown(value)}")
    return value
