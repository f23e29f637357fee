"""Errors of the engine in the words of a face: its fields by the names of the caller's arguments."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping

from .errors import TranseptError


@contextlib.contextmanager
def own_names(names: Mapping[str, str]) -> Iterator[None]:
    """Raises the block's errors with the face's names. `names`: the argument of each field that has another name here."""
    try:
        yield
    except TranseptError as error:
        field = error.field
        known = re.match(r"\w*", field)
        head = known[0] if known else ""
        # A field's name that is a word of English is replaced where the error is about it.
        said = {name: own for name, own in names.items() if "_" in name or name == head}
        message = str(error)
        if said:
            message = re.sub(rf"\b({'|'.join(said)})\b", lambda match: said[match[1]], message)
        if head in names:
            field = names[head] + field[len(head) :]
        own = names.get(head, head)
        if own and not re.search(rf"\b{own}\b", message):  # of a value alone, such as a text of numbers
            message = f"{field}: {message}"
        if (message, field) == (str(error), error.field):
            raise
        raise type(error)(message, field) from None
