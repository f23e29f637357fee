"""Bars of tqdm, which is no dependency."""

from __future__ import annotations

import importlib
from typing import Any, Callable, Optional


def tqdm_class() -> Optional[Callable[..., Any]]:
    """None: it is not installed."""
    try:
        found: Callable[..., Any] = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return None
    return found
