"""Arguments of an engine, in vLLM's names."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import Any, Final, Optional, Union

from ._checks import finite, folder_of, whole
from ._foreign import check_foreign
from ._model import EngineModel, check_device
from .errors import InvalidArgumentError

_GIB = 1024**3
_MOST_BYTES = 2**62

# Of vLLM's arguments: those that change no answer here.
HARMLESS: Final = frozenset(
    {
        "allowed_local_media_path",
        "async_scheduling",
        "compilation_config",
        "config_format",
        "cpu_offload_gb",
        "disable_custom_all_reduce",
        "disable_log_requests",
        "disable_log_stats",
        "enable_chunked_prefill",
        "enable_log_requests",
        "enable_prefix_caching",
        "enforce_eager",
        "gpu_memory_utilization",
        "limit_mm_per_prompt",
        "load_format",
        "max_seq_len_to_capture",
        "skip_mm_profiling",
        "tokenizer_mode",
        "trust_remote_code",
        "usage_context",
    }
)
# Those that would, with the value that changes nothing.
REFUSED: Final[dict[str, Any]] = {
    "data_parallel_size": 1,
    "enable_lora": False,
    "guided_decoding_backend": None,
    "hf_config_path": None,
    "hf_overrides": None,
    "kv_transfer_config": None,
    "logits_processors": None,
    "mm_processor_kwargs": None,
    "override_generation_config": None,
    "pipeline_parallel_size": 1,
    "skip_tokenizer_init": False,
    "speculative_config": None,
    "task": "auto",
    "tensor_parallel_size": 1,
    "tokenizer": None,
    "tokenizer_revision": None,
}


@dataclass
class EngineArgs:
    """What a model is loaded with. None is the default of `transept generate`'s flag of the name (docs/flags.md)."""

    model: Union[str, os.PathLike[str]]
    revision: Optional[str] = None
    download_dir: Optional[str] = None
    hf_token: Optional[str] = None
    dtype: Optional[str] = None
    quantization: Optional[str] = None
    kv_cache_dtype: Optional[str] = None
    kv_cache_memory_bytes: Optional[int] = None
    swap_space: Optional[float] = None  # GiB, as in vLLM
    block_size: Optional[int] = None
    max_model_len: Optional[int] = None
    max_num_seqs: Optional[int] = None
    max_num_batched_tokens: Optional[int] = None
    seed: Optional[int] = None
    device: str = "auto"
    # Transept's.
    attention_backend: Optional[str] = None
    cpu_affinity: Optional[str] = None
    encode_slice: Optional[str] = None
    header_font: Optional[str] = None
    isa: Optional[str] = None
    max_num_encoder_tokens: Optional[int] = None
    max_queued_requests: int = 0  # 0: 512, and without a limit for AsyncLLM
    preemption_mode: Optional[str] = None
    replicas: Optional[int] = None
    share_identical_inputs: Optional[bool] = None
    shortlist: Optional[str] = None
    threads: Optional[int] = None
    watermark: Optional[float] = None

    def load(self, max_queued_by_default: int = 0) -> EngineModel:
        check_device("LLM", self.device)
        ours = {"model", "device", "kv_cache_memory_bytes", "swap_space", "max_queued_requests"}
        options = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in ours}
        options["download_dir"] = folder_of("download_dir", self.download_dir)
        if self.kv_cache_memory_bytes is not None:
            options["kv_cache_memory"] = whole("kv_cache_memory_bytes", self.kv_cache_memory_bytes, 0, _MOST_BYTES)
        if self.swap_space is not None:
            gib = finite("swap_space", self.swap_space)
            if not 0 <= gib * _GIB <= _MOST_BYTES:
                raise InvalidArgumentError(f"swap_space must be GiB of memory from 0 on, not {gib}", "swap_space")
            options["swap_space"] = int(gib * _GIB)
        queued = self.max_queued_requests
        if type(queued) is int and queued == 0:
            queued = max_queued_by_default
        return EngineModel(self.model, options, queued, names={"kv_cache_memory": "kv_cache_memory_bytes"})


_NAMES: Final = frozenset(field.name for field in fields(EngineArgs))


def engine_args(callee: str, model: Union[str, os.PathLike[str]], given: dict[str, Any]) -> EngineArgs:
    """Of keyword arguments. Raises TypeError for unknown names, UnsupportedError for vLLM's that are not here."""
    check_foreign(callee, {name: value for name, value in given.items() if name not in _NAMES}, HARMLESS, REFUSED)
    return EngineArgs(model, **{name: value for name, value in given.items() if name in _NAMES})


class AsyncEngineArgs(EngineArgs):
    """The same: vLLM's name beside AsyncLLM."""
