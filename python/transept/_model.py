"""A loaded model, which the faces share: loading, ends at exit, the tokenizer."""

from __future__ import annotations

import atexit
import json
import os
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np

from . import _core
from ._checks import flag, ids_of, object_json, of_kind, path_of, shown, text_argument, tokens_of, whole
from ._own_names import own_names
from ._progress import download_bar
from .errors import InvalidArgumentError, TranseptError, UnsupportedError

MOST_THREADS = 1024  # of an engine, and engines of a model
_LOG_LEVELS = {"error": 0, "warning": 1, "info": 2}
# Of the engine's options: what their values must be.
_KINDS = {
    **dict.fromkeys(("attention_backend", "cpu_affinity", "dtype", "encode_slice", "hf_token", "isa", "kv_cache_dtype"), "text"),
    **dict.fromkeys(("preemption_mode", "quantization", "revision"), "text"),
    **dict.fromkeys(("block_size", "kv_cache_memory", "max_model_len", "max_num_batched_tokens", "max_num_encoder_tokens"), "whole"),
    **dict.fromkeys(("max_num_seqs", "replicas", "seed", "threads"), "whole"),
    **dict.fromkeys(("local_files_only", "mllama_strict_mask", "share_identical_inputs"), "switch"),
    "watermark": "number",
}
_PATHS = frozenset({"header_font", "shortlist"})
_open: weakref.WeakSet[EngineModel] = weakref.WeakSet()


def set_log_level(level: str) -> None:
    """Log lines up to `level` ("error", "warning", "info") go to standard error. By default: "warning"."""
    if text_argument("level", level) not in _LOG_LEVELS:
        raise InvalidArgumentError(f"level must be one of {', '.join(_LOG_LEVELS)}, not {shown(level)}", "level")
    _core.set_log_level(_LOG_LEVELS[level])


class EngineModel:
    """A model with its engine's threads. Any thread may use it."""

    def __init__(
        self,
        model: Union[str, os.PathLike[str]],
        options: dict[str, Any],
        max_queued_requests: int = 0,
        argument: str = "model",
        names: Mapping[str, str] = {},
    ) -> None:
        """`argument`: what the caller's face calls `model`. `names`: what it calls the engine's options."""
        given = {name: value for name, value in options.items() if value is not None}
        for name, value in given.items():
            if name in _KINDS:
                given[name] = of_kind(_KINDS[name], names.get(name, name), value)
            elif name in _PATHS:
                given[name] = path_of(names.get(name, name), value)
        path = path_of(argument, model)
        queued = whole("max_queued_requests", max_queued_requests, 0)
        bar = download_bar()
        try:
            with own_names(names):
                self.core: _core.Model = _core.load(path, object_json(given), 0, queued, bar)
        finally:
            if bar is not None:
                bar.close()
        self.info: dict[str, Any] = json.loads(self.core.info())
        self._vocabularies: dict[bool, Vocabulary] = {}
        _open.add(self)

    def stats(self) -> dict[str, Any]:
        stats: dict[str, Any] = json.loads(self.core.stats())
        return stats

    def vocabulary(self, decoder_side: bool) -> Vocabulary:
        if decoder_side not in self._vocabularies:
            self._vocabularies[decoder_side] = Vocabulary(self, decoder_side)
        return self._vocabularies[decoder_side]


@atexit.register
def _stop_all() -> None:
    """Engines end before the interpreter does."""
    for model in list(_open):
        try:
            model.core.stop()
        except TranseptError:  # a fork's child has nothing to stop
            pass


class Vocabulary:
    """Tokens by their spelling, of one side of a model."""

    def __init__(self, model: EngineModel, decoder_side: bool) -> None:
        self.tokens: list[str] = []
        try:
            while True:
                self.tokens.append(model.core.token_spelling(len(self.tokens), decoder_side))
        except InvalidArgumentError:  # past the last id
            pass
        self._ids = {token: token_id for token_id, token in reversed(list(enumerate(self.tokens))) if token}

    def get(self, token: str) -> Optional[int]:
        return self._ids.get(token)

    def ids(self, name: str, tokens: Sequence[str]) -> list[int]:
        """Of the argument `name`. Unknown tokens are <unk>'s. Raises InvalidArgumentError if the vocabulary has none."""
        found = [self._ids.get(token) for token in tokens]
        if None not in found:
            return [token_id for token_id in found if token_id is not None]
        unknown = self._ids.get("<unk>", self._ids.get("[UNK]"))
        if unknown is None:
            missing = next(token for token in tokens if token not in self._ids)
            raise InvalidArgumentError(f"{name}: the vocabulary has no token {missing!r}, and none for unknown ones", name)
        return [unknown if token_id is None else token_id for token_id in found]


# What the engine's fields are called by the tokenizer.
_OWN_NAMES = {"ids": "token_ids"}


class Tokenizer:
    """The model's tokenizer. Any thread may use it."""

    def __init__(self, model: EngineModel) -> None:
        self._model = model

    def encode(
        self,
        text: str,
        add_special_tokens: bool = True,
        *,
        source_lang: str = "",
        target_lang: str = "",
        decoder_side: bool = False,
    ) -> list[int]:
        side, adds = flag("decoder_side", decoder_side), flag("add_special_tokens", add_special_tokens)
        source, target = text_argument("source_lang", source_lang), text_argument("target_lang", target_lang)
        with own_names(_OWN_NAMES):
            return self._model.core.tokenize(text_argument("text", text), side, adds, source, target)

    def decode(self, token_ids: Union[int, Sequence[int]], skip_special_tokens: bool = False) -> str:
        given = [token_ids] if isinstance(token_ids, (int, np.integer)) else token_ids
        ids, skips = ids_of("token_ids", given), flag("skip_special_tokens", skip_special_tokens)
        with own_names(_OWN_NAMES):
            return self._model.core.detokenize(ids, skips)

    def convert_ids_to_tokens(self, token_ids: Sequence[int], *, decoder_side: bool = True) -> list[str]:
        ids, side = ids_of("token_ids", token_ids), flag("decoder_side", decoder_side)
        with own_names(_OWN_NAMES):
            return [self._model.core.token_spelling(token_id, side) for token_id in ids]

    def convert_tokens_to_ids(self, tokens: Sequence[str], *, decoder_side: bool = True) -> list[int]:
        return self._model.vocabulary(flag("decoder_side", decoder_side)).ids("tokens", tokens_of("tokens", tokens))

    def tokenize(
        self, text: str, add_special_tokens: bool = False, *, source_lang: str = "", target_lang: str = ""
    ) -> list[str]:
        """The spellings of encode()'s ids."""
        ids = self.encode(text, add_special_tokens, source_lang=source_lang, target_lang=target_lang)
        return self.convert_ids_to_tokens(ids, decoder_side=False)

    def __call__(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return self.encode(text, add_special_tokens)

    @property
    def eos_token_id(self) -> Optional[int]:
        ends: list[int] = self._model.info["eos_token_ids"]
        return ends[0] if ends else None

    @property
    def vocab_size(self) -> int:
        size: int = self._model.info["vocab_size"]
        return size

    def __len__(self) -> int:
        return self.vocab_size


_FLOATS = ("float32", "float16", "bfloat16")
_COMPUTE_TYPES: dict[str, dict[str, str]] = {  # as --compute_type of the command line
    "default": {},
    "auto": {"quantization": "auto"},
    **{name: {"dtype": name} for name in _FLOATS},
    "int8": {"quantization": "int8"},
    **{f"int8_{name}": {"dtype": name, "quantization": "int8"} for name in _FLOATS},
}


def types_of(callee: str, compute_type: str) -> dict[str, str]:
    """CTranslate2's compute types as dtype and quantization."""
    known = _COMPUTE_TYPES.get(text_argument("compute_type", compute_type).lower())
    if known is not None:
        return known
    why = f"one of {', '.join(_COMPUTE_TYPES)}"
    if compute_type.lower() == "int16":
        why = "there are no products in 16-bit integers; float16 is as small"
    raise UnsupportedError(f"{callee}: compute_type={compute_type!r} is not supported: {why}", "compute_type")


def check_device(callee: str, device: Optional[str]) -> None:
    if device not in (None, "auto", "cpu"):
        raise UnsupportedError(f"{callee}: device={device!r} is not supported; models run on processors", "device")
