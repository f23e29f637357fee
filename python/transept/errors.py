"""The exceptions of Transept. All are TranseptError; most are also the built-in exception that fits."""

from __future__ import annotations

import typing

__all__ = [
    "CancelledError",
    "DataLossError",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "ForkedError",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "OutOfMemoryError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "TranseptError",
    "UnavailableError",
    "UnsupportedError",
]


class TranseptError(Exception):
    """A call that failed.

    `field` is the argument, option or field that the error is about; "" if there is none.
    `code` is the name of transept.h's code, such as "invalid_argument".
    """

    code: str = "unknown"

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class InvalidArgumentError(TranseptError, ValueError):
    """An argument, option or field; also audio and files that cannot be read."""

    code = "invalid_argument"


class OutOfRangeError(TranseptError, ValueError):
    """An input that is longer than the model's positions."""

    code = "out_of_range"


class UnsupportedError(TranseptError, NotImplementedError):
    """Known, and not supported: a model, a feature, an argument of another library."""

    code = "unimplemented"


class NotFoundError(TranseptError, FileNotFoundError):
    """A file or folder, or FFmpeg's libraries."""

    code = "not_found"


class ResourceExhaustedError(TranseptError):
    """The queue is full, or audio needs more memory than there is."""

    code = "resource_exhausted"


class UnavailableError(TranseptError):
    """The model was stopped, or drains."""

    code = "unavailable"


class DeadlineExceededError(TranseptError, TimeoutError):
    """The request was not finished in its time."""

    code = "deadline_exceeded"


class CancelledError(TranseptError):
    """The call was ended from outside."""

    code = "cancelled"


class DataLossError(TranseptError, OSError):
    """A file that cannot be read to its end."""

    code = "data_loss"


class InternalError(TranseptError, RuntimeError):
    """A fault of Transept."""

    code = "internal"


class OutOfMemoryError(TranseptError, MemoryError):
    """There is not enough memory."""

    code = "out_of_memory"


class ForkedError(TranseptError, RuntimeError):
    """The object is older than a fork of this process, which has none of its threads. Load models after the fork."""

    code = "forked"


class FailedPreconditionError(TranseptError, RuntimeError):
    """A call at the wrong time, or of what the model does not have."""

    code = "failed_precondition"


class PermissionDeniedError(TranseptError, PermissionError):
    """A file that may not be read."""

    code = "permission_denied"


_CLASSES: typing.Final[dict[str, type[TranseptError]]] = {
    kind.code: kind
    for kind in (
        InvalidArgumentError,
        OutOfRangeError,
        UnsupportedError,
        NotFoundError,
        ResourceExhaustedError,
        UnavailableError,
        DeadlineExceededError,
        CancelledError,
        DataLossError,
        InternalError,
        OutOfMemoryError,
        ForkedError,
        FailedPreconditionError,
        PermissionDeniedError,
    )
}


def of_code(code: str, message: str, field: str) -> TranseptError:
    """The exception of a code of transept.h. The extension module calls it."""
    return _CLASSES.get(code, TranseptError)(message, field)
