"""Bars: tqdm's, which is no dependency, and one of a line where it is missing."""

from __future__ import annotations

import importlib
import os
import sys
import time
from typing import Any, Callable, Optional

_BETWEEN_DRAWS = 0.1  # seconds


def tqdm_class() -> Optional[Callable[..., Any]]:
    """None: it is not installed."""
    try:
        found: Callable[..., Any] = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return None
    return found


def download_bar() -> Optional[DownloadBar]:
    """None: standard error is no terminal, or HF_HUB_DISABLE_PROGRESS_BARS is set, as huggingface_hub reads it."""
    is_off = os.environ.get("HF_HUB_DISABLE_PROGRESS_BARS", "").upper() in ("1", "ON", "YES", "TRUE")
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    return DownloadBar() if is_terminal and not is_off else None


class DownloadBar:
    """How much of a model has come, on standard error. One thread."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._begin, self._first, self._drawn = time.monotonic(), 0, 0.0
        self._width = 0

    def __call__(self, name: str, done: int, total: int) -> None:
        if self._bar is None and not self._width:
            self._begin, self._first = time.monotonic(), done
            tqdm = tqdm_class()
            if tqdm is not None:
                self._bar = tqdm(desc=name, initial=done, unit="B", unit_scale=True, unit_divisor=1024, leave=False)
        if self._bar is not None:
            self._bar.total = total
            self._bar.update(done - self._bar.n)
            return
        now = time.monotonic()
        if now - self._drawn < _BETWEEN_DRAWS and done < total:
            return
        self._drawn = now
        rate = (done - self._first) / max(now - self._begin, 1e-3)
        share = 100 * done / total if total > 0 else 0
        self._draw(f"{name}  {share:.0f} %  {done / 1e6:.1f} of {total / 1e6:.1f} MB, {rate / 1e6:.1f} MB/s")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._width:
            self._draw("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _draw(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)
