"""Audio as the speech faces take it, and the engine's errors about it."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from typing import Any, BinaryIO, Union

import numpy as np
import numpy.typing as npt

from . import _core
from ._checks import path_of, whole
from ._foreign import refuse_unless
from .errors import DataLossError, InvalidArgumentError, NotFoundError, PermissionDeniedError, UnsupportedError

AudioInput = Union[str, "os.PathLike[str]", BinaryIO, bytes, npt.NDArray[np.floating[Any]]]

_HERTZ = (1000, 768_000)  # the engine's
_OF_INPUT = (DataLossError, InvalidArgumentError, NotFoundError, PermissionDeniedError, UnsupportedError)
_SAMPLES = "samples"  # the engine's name of an array


def decode_audio(
    input_file: Union[str, "os.PathLike[str]", BinaryIO, bytes], sampling_rate: int = 16000, split_stereo: bool = False
) -> npt.NDArray[np.float32]:
    """The samples of a file, mono, full scale 1."""
    refuse_unless("decode_audio", "split_stereo", split_stereo, False)
    hertz = whole("sampling_rate", sampling_rate, *_HERTZ)
    with audio_errors("input_file", subject_of("input_file", input_file)):
        return _core.decode_audio(audio_of("input_file", input_file), hertz)


def audio_of(name: str, audio: Any) -> Union[str, bytes, npt.NDArray[np.float32]]:
    """As the engine reads the argument `name`; contiguous float32 is not copied."""
    if isinstance(audio, np.ndarray):
        if audio.ndim != 1 or not np.issubdtype(audio.dtype, np.floating):
            raise TypeError(f"{name}: samples are an array of floats of one dimension, full scale 1, 16 kHz")
        return np.ascontiguousarray(audio, dtype=np.float32)
    if isinstance(audio, (str, os.PathLike)):
        return path_of(name, audio)
    if isinstance(audio, (bytes, bytearray, memoryview)):
        return bytes(audio)
    if isinstance(audio, io.IOBase) or hasattr(audio, "read"):
        content = audio.read()
        if isinstance(content, bytes):
            return content
    raise TypeError(f"{name} is a path, a binary file, bytes or an array of samples, not {type(audio).__name__}")


def subject_of(name: str, audio: Any) -> str:
    """What messages about the argument `name` begin with: the path, where it is one."""
    return os.fspath(audio) or name if isinstance(audio, (str, os.PathLike)) else name


@contextlib.contextmanager
def audio_errors(name: str, subject: str) -> Iterator[None]:
    """Raises what the block says of the argument `name` with its subject, and its name as the field.

    The engine reads audio of every face: what it says of the sound has no field, or that of samples, and no subject.
    """
    try:
        yield
    except _OF_INPUT as error:
        head, _, position = error.field.partition("[")
        if head not in ("", _SAMPLES):
            raise
        words = str(error)
        for said in (subject, error.field):  # of a file that cannot be opened; where own_names is within
            words = words[len(said) + 2 :] if words.startswith(f"{said}: ") else words
        place = f"[{position}" if position else ""
        raise type(error)(f"{subject}{place}: {words}", name) from None
