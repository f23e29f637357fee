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

# Of vLLM's arguments: those that change no answer here, as `transept serve` takes its flags of these names.
HARMLESS: Final = frozenset(
    {
        "additional_config",
        "all2all_backend",
        "allowed_local_media_path",
        "async_scheduling",
        "attention_config",
        "calculate_kv_scales",
        "code_revision",
        "compilation_config",
        "config_format",
        "cpu_offload_gb",
        "cuda_graph_sizes",
        "cudagraph_capture_sizes",
        "cudagraph_metrics",
        "dbo_decode_token_threshold",
        "dbo_prefill_token_threshold",
        "disable_async_output_proc",
        "disable_cascade_attn",
        "disable_chunked_mm_input",
        "disable_custom_all_reduce",
        "disable_hybrid_kv_cache_manager",
        "disable_log_requests",
        "disable_log_stats",
        "disable_mm_preprocessor_cache",
        "disable_nccl_for_dp_synchronization",
        "disable_sliding_window",
        "distributed_executor_backend",
        "enable_chunked_prefill",
        "enable_dbo",
        "enable_elastic_ep",
        "enable_eplb",
        "enable_expert_parallel",
        "enable_layerwise_nvtx_tracing",
        "enable_log_requests",
        "enable_logging_iteration_details",
        "enable_mfu_metrics",
        "enable_multimodal_encoder_data_parallel",
        "enable_prefix_caching",
        "enforce_eager",
        "eplb_config",
        "eplb_log_balancedness",
        "expert_placement_strategy",
        "fail_on_environ_validation",
        "gpu_memory_utilization",
        "ignore_patterns",
        "interleave_mm_strings",
        "kernel_config",
        "kv_cache_metrics",
        "kv_cache_metrics_sample",
        "kv_sharing_fast_prefill",
        "limit_mm_per_prompt",
        "load_format",
        "long_prefill_token_threshold",
        "mamba_block_size",
        "mamba_cache_dtype",
        "mamba_cache_mode",
        "mamba_ssm_cache_dtype",
        "max_cudagraph_capture_size",
        "max_logprobs",
        "max_long_partial_prefills",
        "max_num_partial_prefills",
        "max_parallel_loading_workers",
        "max_seq_len_to_capture",
        "mm_encoder_attn_backend",
        "mm_encoder_tp_mode",
        "mm_processor_cache_gb",
        "mm_processor_cache_type",
        "mm_shm_cache_max_object_size_mb",
        "model_impl",
        "model_loader_extra_config",
        "moe_backend",
        "num_lookahead_slots",
        "num_redundant_experts",
        "num_scheduler_steps",
        "optimization_level",
        "override_attention_dtype",
        "override_neuron_config",
        "performance_mode",
        "prefix_caching_hash_algo",
        "profiler_config",
        "pt_load_map_location",
        "ray_workers_use_nsight",
        "runner",
        "safetensors_load_strategy",
        "scheduler_delay_factor",
        "served_model_name",
        "show_hidden_metrics_for_version",
        "skip_mm_profiling",
        "stream_interval",
        "task",
        "tokenizer_mode",
        "tokenizer_pool_extra_config",
        "tokenizer_pool_size",
        "tokenizer_pool_type",
        "trust_remote_code",
        "ubatch_size",
        "usage_context",
        "use_async_output_proc",
        "use_tqdm_on_load",
        "use_v2_block_manager",
        "worker_cls",
        "worker_extension_cls",
    }
)
# Those that would, with the value that changes nothing.
REFUSED: Final[dict[str, Any]] = {
    "allowed_media_domains": None,
    "chat_template": None,
    "collect_detailed_traces": None,
    "convert": "auto",
    "data_parallel_size": 1,
    "decode_context_parallel_size": 1,
    "default_mm_loras": None,
    "ec_transfer_config": None,
    "enable_lora": False,
    "enable_lora_bias": False,
    "enable_mm_embeds": False,
    "enable_prompt_adapter": False,
    "enable_prompt_embeds": False,
    "enable_sleep_mode": False,
    "fully_sharded_loras": False,
    "generation_config": "auto",
    "guided_decoding_backend": None,
    "hf_config_path": None,
    "hf_overrides": None,
    "io_processor_plugin": None,
    "kv_events_config": None,
    "kv_offloading_size": None,
    "kv_transfer_config": None,
    "language_model_only": False,
    "logits_processor_pattern": None,
    "logits_processors": None,
    "logprobs_mode": "raw_logprobs",
    "lora_dtype": "auto",
    "lora_extra_vocab_size": 256,
    "max_cpu_loras": None,
    "max_lora_rank": 16,
    "max_loras": 1,
    "media_io_kwargs": None,
    "mm_encoder_only": False,
    "mm_processor_kwargs": None,
    "num_gpu_blocks_override": None,
    "otlp_traces_endpoint": None,
    "override_generation_config": None,
    "override_pooler_config": None,
    "pipeline_parallel_size": 1,
    "pooler_config": None,
    "prefill_context_parallel_size": 1,
    "qlora_adapter_name_or_path": None,
    "reasoning_parser": "",
    "reasoning_parser_plugin": "",
    "rope_scaling": None,
    "rope_theta": None,
    "scheduler_cls": None,
    "scheduling_policy": "fcfs",
    "skip_tokenizer_init": False,
    "speculative_config": None,
    "structured_outputs_config": None,
    "tensor_parallel_size": 1,
    "tokenizer": None,
    "tokenizer_revision": None,
    "video_pruning_rate": None,
    "weight_transfer_config": None,
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
    mllama_strict_mask: Optional[bool] = None
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
