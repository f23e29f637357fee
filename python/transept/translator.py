"""Translator: tokens in, tokens out, in CTranslate2's names."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Generic, Optional, TypeVar, Union

from . import _core
from ._checks import BYTES, finite, lists_of_tokens, lists_of_tokens_or_none, object_json, shown, tokens_of, whole
from ._foreign import refuse_unless
from ._model import MOST_THREADS, EngineModel, Tokenizer, check_device, types_of
from ._own_names import own_names
from ._requests import run_in_order, submit_patiently
from .errors import InvalidArgumentError, OutOfRangeError, UnsupportedError
from .inputs import Parts

Tokens = Sequence[str]
# What the engine's fields are called here.
_OWN_NAMES = {
    "bad_words_ids": "suppress_sequences",
    "decoder_prompt": "target_prefix",
    "dtype": "compute_type",
    "encoder_prompt": "source",
    "max_tokens": "max_decoding_length",
    "min_tokens": "min_decoding_length",
    "n": "num_hypotheses",
    "num_beams": "beam_size",
    "prompt": "source",
    "quantization": "compute_type",
    "replicas": "inter_threads",
    "suppress_tokens": "disable_unk",
    "temperature": "sampling_temperature",
    "threads": "intra_threads",
    "top_k": "sampling_topk",
    "top_p": "sampling_topp",
}


@dataclass
class TranslationResult:
    """The answers to one source, best first, as tokens; the target prefix is part of them, the end is not."""

    hypotheses: list[list[str]]
    scores: list[float] = field(default_factory=list)  # with return_scores
    attention: list[list[list[float]]] = field(default_factory=list)  # never
    logits: list[list[Any]] = field(default_factory=list)  # never

    def __len__(self) -> int:
        return len(self.hypotheses)


@dataclass
class ScoringResult:
    """A target's tokens, its end included, and the log-probability of each."""

    tokens: list[str]
    log_probs: list[float]


@dataclass
class GenerationStepResult:
    """A token as it was generated."""

    step: int
    batch_id: int
    token_id: int
    hypothesis_id: int
    token: str
    log_prob: Optional[float]  # with return_log_prob
    is_last: bool
    logits: None = None


R = TypeVar("R")
# A request's prompt and fields, or its result where the engine has nothing to do: an empty source.
_Asked = Union[tuple[Parts, str], R]


def _results(model: EngineModel, asked: list[_Asked[R]], flags: int, read: Callable[[_core.Result], R]) -> list[R]:
    """What comes of each, in order."""
    results = run_in_order(model, [one for one in asked if isinstance(one, tuple)], flags)
    return [read(next(results)) if isinstance(one, tuple) else one for one in asked]


class _AsyncResult(Generic[R]):
    """A result that is being made, or one that needs no engine."""

    def __init__(self, model: EngineModel, asked: _Asked[R], flags: int, read: Callable[[_core.Result], R]) -> None:
        self._read = read
        self._core_result: Optional[_core.Result] = None
        self._ready: Optional[R] = None
        self._stream: Optional[_core.Stream] = None
        if isinstance(asked, tuple):
            part, fields = asked
            self._stream = submit_patiently(model, part, fields, flags)
        else:
            self._ready = asked

    def done(self) -> bool:
        """Whether result() would not wait."""
        if self._core_result is None and self._stream is not None:
            with own_names(_OWN_NAMES):
                self._core_result = self._stream.next(0.0)
        return self._ready is not None or self._core_result is not None

    def result(self) -> R:
        """Waits. Raises the error of the request."""
        if self._ready is not None:
            return self._ready
        if self._core_result is None:
            assert self._stream is not None
            with own_names(_OWN_NAMES):
                self._core_result = self._stream.next()
        assert self._core_result is not None, "without a timeout a result comes"
        return self._read(self._core_result)


class AsyncTranslationResult(_AsyncResult[TranslationResult]):
    """A translation that is being made."""


class AsyncScoringResult(_AsyncResult[ScoringResult]):
    """A score that is being computed."""


class Translator:
    """A model that translates tokens. Any number of threads may use it; their requests share the engine's batch.

    `model_path`: a folder in Hugging Face's layout (not a converted one), or ORG/NAME of the hub. `inter_threads` engines share the weights; each has
    `intra_threads` threads (0: the processors, divided).
    """

    def __init__(
        self,
        model_path: Union[str, "os.PathLike[str]"],
        device: str = "auto",
        *,
        device_index: Union[int, list[int]] = 0,
        compute_type: str = "default",
        inter_threads: int = 1,
        intra_threads: int = 0,
        max_queued_batches: int = 0,
        flash_attention: bool = False,
        tensor_parallel: bool = False,
        files: None = None,
    ) -> None:
        check_device("Translator", device)
        refuse_unless("Translator", "files", files, None)
        refuse_unless("Translator", "tensor_parallel", tensor_parallel, False)
        options: dict[str, Any] = dict(types_of("Translator", compute_type))
        options["replicas"] = whole("inter_threads", inter_threads, 1, MOST_THREADS)
        options["threads"] = whole("intra_threads", intra_threads, 0, MOST_THREADS)
        self._model = EngineModel(model_path, options, argument="model_path", names=_OWN_NAMES)
        self._compute_type = compute_type
        self._replicas = inter_threads

    # ---- Translating

    def translate_batch(
        self,
        source: Sequence[Tokens],
        target_prefix: Optional[Sequence[Optional[Tokens]]] = None,
        *,
        max_batch_size: int = 0,
        batch_type: str = "examples",
        asynchronous: bool = False,
        beam_size: int = 2,
        patience: float = 1,
        num_hypotheses: int = 1,
        length_penalty: float = 1,
        coverage_penalty: float = 0,
        repetition_penalty: float = 1,
        no_repeat_ngram_size: int = 0,
        disable_unk: bool = False,
        suppress_sequences: Optional[Sequence[Tokens]] = None,
        end_token: None = None,
        return_end_token: bool = False,
        prefix_bias_beta: float = 0,
        max_input_length: int = 1024,
        max_decoding_length: int = 256,
        min_decoding_length: int = 1,
        use_vmap: bool = False,
        return_scores: bool = False,
        return_logits_vocab: bool = False,
        return_attention: bool = False,
        return_alternatives: bool = False,
        min_alternative_expansion_prob: float = 0,
        sampling_topk: int = 1,
        sampling_topp: float = 1,
        sampling_temperature: float = 1,
        replace_unknowns: bool = False,
        callback: None = None,
    ) -> Any:
        """Translates a batch of tokens: list[TranslationResult], in order; list[AsyncTranslationResult] if `asynchronous`.

        Sources are encoded as they are: their special tokens are the caller's. docs/python.md says what each argument
        does here; `max_batch_size` and `batch_type` mean nothing, since requests are batched as they come.
        """
        given = dict(locals())
        search = _Search(self, given)
        sources = lists_of_tokens("source", source)
        prefixes: list[Optional[Tokens]] = [None] * len(sources)
        if target_prefix is not None:
            prefixes = lists_of_tokens_or_none("target_prefix", target_prefix)
        if len(prefixes) != len(sources):
            raise InvalidArgumentError(f"{len(sources)} sources and {len(prefixes)} prefixes", "target_prefix")
        requests = [search.request(tokens, prefix) for tokens, prefix in zip(sources, prefixes)]
        with own_names(_OWN_NAMES):
            if asynchronous:
                return [AsyncTranslationResult(self._model, asked, 0, search.result) for asked in requests]
            return _results(self._model, requests, 0, search.result)

    def translate_iterable(
        self,
        source: Iterable[Tokens],
        target_prefix: Optional[Iterable[Optional[Tokens]]] = None,
        max_batch_size: int = 32,
        batch_type: str = "examples",
        **kwargs: Any,
    ) -> Iterator[TranslationResult]:
        """Translates a stream of tokens, in order, in memory that does not grow with it. Other arguments:
        translate_batch's."""
        refuse_unless("translate_iterable", "asynchronous", kwargs.pop("asynchronous", False), False)
        _check_stream("source", source)
        _check_stream("target_prefix", target_prefix)
        ahead_most = max(32, whole("max_batch_size", max_batch_size, 0))
        pairs = zip(source, itertools.repeat(None) if target_prefix is None else target_prefix)
        ahead: list[AsyncTranslationResult] = []
        for tokens, prefix in pairs:
            ahead += self.translate_batch([tokens], [prefix], asynchronous=True, **kwargs)
            if len(ahead) >= ahead_most:
                yield ahead.pop(0).result()
        for pending in ahead:
            yield pending.result()

    def generate_tokens(
        self,
        source: Tokens,
        target_prefix: Optional[Tokens] = None,
        *,
        max_decoding_length: int = 256,
        min_decoding_length: int = 1,
        sampling_topk: int = 1,
        sampling_topp: float = 1,
        sampling_temperature: float = 1,
        return_log_prob: bool = False,
        return_logits_vocab: bool = False,
        repetition_penalty: float = 1,
        no_repeat_ngram_size: int = 0,
        disable_unk: bool = False,
        suppress_sequences: Optional[Sequence[Tokens]] = None,
        end_token: None = None,
        max_input_length: int = 1024,
        use_vmap: bool = False,
    ) -> Iterator[GenerationStepResult]:
        """Yields tokens as they are generated, by the greedy search or by sampling: the prefix's first, as certain ones."""
        search = _Search(self, {**_DEFAULTS, **locals(), "beam_size": 1})
        prefix = None if target_prefix is None else tokens_of("target_prefix", target_prefix)
        tokens = tokens_of("source", source)
        asked = search.request(tokens, prefix, {"logprobs": 0} if return_log_prob else {})
        if len(tokens) == 0:
            return
        stream: Optional[_core.Stream] = None
        if isinstance(asked, tuple):
            part, fields = asked
            with own_names(_OWN_NAMES):
                stream = submit_patiently(self._model, part, fields, _core.STREAM)
        spell = self._model.vocabulary(True).tokens
        given = search.prefix_ids(prefix)
        certain = 0.0 if return_log_prob else None
        for step, token_id in enumerate(given):
            is_last = stream is None and step == len(given) - 1
            yield GenerationStepResult(step, 0, token_id, 0, spell[token_id], certain, is_last)
        step = len(given)
        while stream is not None and not stream.has_ended:
            with own_names(_OWN_NAMES):
                piece = stream.next()
            if piece is None or len(piece) == 0:
                continue
            _, _, ids, _, _, reason = piece.output(0)
            entries = json.loads(piece.json())["outputs"][0]["logprobs"] if return_log_prob else None
            for i, token_id in enumerate(ids):
                log_prob = None if entries is None else entries[i][str(token_id)]["logprob"]
                is_last = reason is not None and i == len(ids) - 1
                yield GenerationStepResult(step, 0, token_id, 0, spell[token_id], log_prob, is_last)
                step += 1

    # ---- Scoring

    def score_batch(
        self,
        source: Sequence[Tokens],
        target: Sequence[Tokens],
        *,
        max_batch_size: int = 0,
        batch_type: str = "examples",
        max_input_length: int = 1024,
        offset: int = 0,
        asynchronous: bool = False,
    ) -> Any:
        """The log-probabilities of each target's tokens and its end: list[ScoringResult], or list[AsyncScoringResult]."""
        sources, targets = lists_of_tokens("source", source), lists_of_tokens("target", target)
        if len(sources) != len(targets):
            raise InvalidArgumentError(f"{len(sources)} sources and {len(targets)} targets", "target")
        most = whole("max_input_length", max_input_length, 0)
        _check_batch(max_batch_size, batch_type)
        refuse_unless("score_batch", "offset", offset, 0, "take the rest of log_probs")
        end, vocabulary = self._end(), self._model.vocabulary(True)
        requests: list[_Asked[ScoringResult]] = []
        for tokens, wanted in zip(sources, targets):
            ids = _cut([*vocabulary.ids("target", wanted), end], most, end)
            encoder = self._source_ids(tokens, most)
            if encoder:
                requests.append((Parts(encoder, self._with_start(ids), {}), json.dumps({"prompt_logprobs": 0})))
            else:
                requests.append(ScoringResult([vocabulary.tokens[token_id] for token_id in ids], [0.0] * len(ids)))
        with own_names({**_OWN_NAMES, "decoder_prompt": "target"}):
            if asynchronous:
                return [AsyncScoringResult(self._model, asked, _core.SCORE, self._scoring) for asked in requests]
            return _results(self._model, requests, _core.SCORE, self._scoring)

    def score_iterable(
        self,
        source: Iterable[Tokens],
        target: Iterable[Tokens],
        max_batch_size: int = 64,
        batch_type: str = "examples",
        **kwargs: Any,
    ) -> Iterator[ScoringResult]:
        """score_batch() of a stream."""
        _check_stream("source", source)
        _check_stream("target", target)
        for tokens, wanted in zip(source, target):
            yield from self.score_batch([tokens], [wanted], **kwargs)

    def _scoring(self, result: _core.Result) -> ScoringResult:
        ids = result.decoder_ids[1:]
        entries = json.loads(result.json())["prompt_logprobs"][1:]
        spell = self._model.vocabulary(True).tokens
        return ScoringResult(
            [spell[token_id] for token_id in ids],
            [entry[str(token_id)]["logprob"] for entry, token_id in zip(entries, ids)],
        )

    # ---- What it is

    def get_tokenizer(self) -> Tokenizer:
        return Tokenizer(self._model)

    @property
    def device(self) -> str:
        return "cpu"

    @property
    def device_index(self) -> list[int]:
        return [0]

    @property
    def compute_type(self) -> str:
        return self._compute_type

    @property
    def num_translators(self) -> int:
        return self._replicas

    @property
    def num_active_batches(self) -> int:
        """Requests that run or wait."""
        stats = self._model.stats()
        active: int = stats["num_running"] + stats["num_waiting"] + stats["num_swapped"] + stats["num_queued"]
        return active

    @property
    def num_queued_batches(self) -> int:
        queued: int = self._model.stats()["num_queued"]
        return queued

    @property
    def tensor_parallel(self) -> bool:
        return False

    def shutdown(self) -> None:
        """Ends the engine after its step, and frees its memory."""
        self._model.core.stop()

    # ---- Requests

    def _source_ids(self, tokens: Tokens, max_input_length: int) -> list[int]:
        vocabulary, ends = self._model.vocabulary(False), self._model.info["eos_token_ids"]
        end = vocabulary.get(self._model.vocabulary(True).tokens[ends[0]]) if ends else None
        ids = _cut(vocabulary.ids("source", tokens), max_input_length, end)
        most: int = self._model.info["max_encoder_len"]
        if len(ids) > most:  # the engine's words are of another way to cut
            what = f"source has {len(ids)} tokens, more than the {most} positions of the encoder"
            raise OutOfRangeError(f"{what}; max_input_length={most} keeps the first so many", "source")
        return ids

    def _end(self) -> int:
        ends: list[int] = self._model.info["eos_token_ids"]
        if not ends:
            raise UnsupportedError("the model has no end token")
        return ends[0]

    def _with_start(self, ids: list[int]) -> list[int]:
        """The decoder's start once: a target that begins with its spelling has it twice, as in CTranslate2."""
        start: Optional[int] = self._model.info["decoder_start_token_id"]
        return ids if start is None else [start, *ids]


def _cut(ids: list[int], most: int, end: Optional[int]) -> list[int]:
    """The first `most` ids, 0: all. An end stays the last one, as in CTranslate2."""
    if most == 0 or len(ids) <= most:
        return ids
    return [*ids[: most - 1], end] if end is not None and ids[-1] == end else ids[:most]


# translate_batch's, for generate_tokens.
_DEFAULTS: dict[str, Any] = {
    "coverage_penalty": 0,
    "length_penalty": 1,
    "min_alternative_expansion_prob": 0,
    "num_hypotheses": 1,
    "patience": 1,
    "prefix_bias_beta": 0,
    "replace_unknowns": False,
    "return_alternatives": False,
    "return_attention": False,
    "return_end_token": False,
    "return_scores": False,
    "callback": None,
}
# Whole numbers, with the least of each.
_LEAST = {
    "beam_size": 1,
    "num_hypotheses": 1,
    "max_decoding_length": 1,
    "min_decoding_length": 0,
    "max_input_length": 0,
    "no_repeat_ngram_size": 0,
    "sampling_topk": 0,
}
_FINITE = ("length_penalty", "repetition_penalty", "sampling_topp", "sampling_temperature")
# What would change results and is not there, with the value that changes nothing.
_REFUSED: dict[str, Any] = {
    "patience": 1,
    "coverage_penalty": 0,
    "end_token": None,
    "prefix_bias_beta": 0,
    "use_vmap": False,
    "return_logits_vocab": False,
    "return_attention": False,
    "return_alternatives": False,
    "min_alternative_expansion_prob": 0,
    "replace_unknowns": False,
    "callback": None,
}


def _check_batch(max_batch_size: Any, batch_type: Any) -> None:
    """Of arguments that mean nothing here, and may be wrong all the same."""
    whole("max_batch_size", max_batch_size, 0)
    if batch_type not in ("examples", "tokens"):
        raise InvalidArgumentError(f"batch_type must be examples or tokens, not {batch_type!r}", "batch_type")


def _check_stream(name: str, value: Any) -> None:
    if isinstance(value, (str, *BYTES)):
        raise TypeError(f"{name} must be an iterable of lists of tokens, not {shown(value)}")


class _Search:
    """The arguments of one call as a request's fields, and its results as tokens."""

    def __init__(self, translator: Translator, given: dict[str, Any]) -> None:
        for name, accepted in _REFUSED.items():
            refuse_unless("Translator", name, given[name], accepted)
        for name, least in _LEAST.items():
            whole(name, given[name], least)
        for name in _FINITE:
            finite(name, given[name])
        _check_batch(given.get("max_batch_size", 0), given.get("batch_type", "examples"))
        self._translator = translator
        self._model: EngineModel = translator._model
        self._given = given
        self._beam_size: int = given["beam_size"]
        self._fields = self._make_fields()
        self._ends = frozenset(self._model.info["eos_token_ids"])

    def _make_fields(self) -> dict[str, Any]:
        given = self._given
        fields: dict[str, Any] = {
            "max_tokens": given["max_decoding_length"],
            "min_tokens": given["min_decoding_length"],
            "n": given["num_hypotheses"],
            "repetition_penalty": given["repetition_penalty"],
            "no_repeat_ngram_size": given["no_repeat_ngram_size"],
            "temperature": 0,
        }
        sampled = given["sampling_topk"] != 1
        if not sampled and given["num_hypotheses"] > self._beam_size:
            what = f"num_hypotheses must be at most beam_size, which is {self._beam_size}, not {given['num_hypotheses']}"
            raise InvalidArgumentError(what, "num_hypotheses")
        if self._beam_size > 1:
            if sampled:
                raise UnsupportedError("Translator: sampling_topk needs beam_size=1", "sampling_topk")
            fields.update(num_beams=self._beam_size, length_penalty=given["length_penalty"], early_stopping=True)
        elif sampled:
            fields.update(temperature=given["sampling_temperature"], top_k=given["sampling_topk"])
            fields["top_p"] = given["sampling_topp"]
        else:
            fields["num_beams"] = 1
        vocabulary = self._model.vocabulary(True)
        unknown = vocabulary.get("<unk>") if given["disable_unk"] else None
        if unknown is not None:
            fields["suppress_tokens"] = [unknown]
        if given["suppress_sequences"]:
            banned = lists_of_tokens("suppress_sequences", given["suppress_sequences"])
            fields["bad_words_ids"] = [vocabulary.ids("suppress_sequences", tokens) for tokens in banned]
        return fields

    def request(
        self, tokens: Tokens, prefix: Optional[Tokens], more: Optional[dict[str, Any]] = None
    ) -> _Asked[TranslationResult]:
        """The result itself where nothing is generated: of an empty source, and after a prefix of the greatest length."""
        encoder = self._translator._source_ids(tokens, self._given["max_input_length"])
        given = self.prefix_ids(prefix)
        if not encoder or len(given) == self._fields["max_tokens"]:
            return self._without_engine(given)
        # Not what the model's files say of the first token: CTranslate2 has it generated.
        decoder = self._translator._with_start(given) or None
        most = self._model.info["max_decoder_len"] - (2 if decoder is None else len(decoder))
        # Its lengths are those of the answer, of which the prefix is part.
        limits = {
            "max_tokens": max(min(self._fields["max_tokens"] - len(given), most), 1),
            "min_tokens": max(self._fields["min_tokens"] - len(given), 0),
        }
        return Parts(encoder, decoder, {}), object_json({**self._fields, **limits, **(more or {})})

    def prefix_ids(self, prefix: Optional[Tokens]) -> list[int]:
        """What an answer begins with: not more than its greatest length."""
        ids = self._model.vocabulary(True).ids("target_prefix", prefix) if prefix is not None else []
        return ids[: self._fields["max_tokens"]]

    def _without_engine(self, ids: list[int]) -> TranslationResult:
        spell, count = self._model.vocabulary(True).tokens, self._given["num_hypotheses"]
        hypotheses = [[spell[token_id] for token_id in ids] for _ in range(count)]
        return TranslationResult(hypotheses, [0.0] * count if self._given["return_scores"] else [])

    def result(self, result: _core.Result) -> TranslationResult:
        spell = self._model.vocabulary(True).tokens
        prefix = result.decoder_ids[1:]
        hypotheses, scores = [], []
        for i in range(len(result)):
            _, _, ids, logprob, beam_score, _ = result.output(i)
            generated, penalty = max(len(ids), 1), self._given["length_penalty"]
            if ids and ids[-1] in self._ends and not self._given["return_end_token"]:
                ids = ids[:-1]
            hypotheses.append([spell[token_id] for token_id in [*prefix, *ids]])
            # What was generated, by the length of the whole answer.
            total = beam_score * generated**penalty if beam_score == beam_score else logprob
            scores.append(total / (len(prefix) + generated) ** penalty)
        return TranslationResult(hypotheses, scores if self._given["return_scores"] else [])
