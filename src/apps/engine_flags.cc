#include "apps/engine_flags.h"

#include <algorithm>

#include "apps/hub_flags.h"
#include "apps/launch_environment.h"
#include "apps/media_flags.h"
#include "apps/model_source.h"
#include "base/environment.h"
#include "core/capabilities.h"
#include "layers/split.h"
#include "speculation/speculation_options.h"
#include "startup/engine_ranges.h"
#include "startup/features.h"
#include "startup/rank_worker.h"
#include "startup/recognise_model.h"

namespace transept {
namespace {

constexpr const char* kEngine = "Engine";
constexpr const char* kMemory = "Memory and batching";
constexpr double kMaxCacheSeconds = 1e8;  // three years
constexpr double kMaxRankTimeout = 86400;

// vLLM's name of a feature that the table refuses.
FlagSpec refused(std::string name, std::string value_name, Feature feature, std::string harmless = "") {
  return {.name = std::move(name),
          .value_name = std::move(value_name),
          .group = kEngine,
          .refusal = std::string(feature_row(feature).refusal),
          .harmless = std::move(harmless)};
}

std::vector<FlagSpec> memory_and_batching_flags() {
  return {
      {"block-size", "TOKENS", "16", "tokens a KV block holds", kMemory},
      {"kv-cache-memory", "SIZE", "what the largest load can use", "bytes of the KV cache, e.g. 512MiB", kMemory},
      {"swap-space", "SIZE", "1GiB", "bytes of host memory for preempted requests", kMemory},
      {"preemption-mode", "auto|recompute|swap", "auto",
       "auto: recompute one sequence, swap several; a decode instance swaps", kMemory},
      {"watermark", "SHARE", "0.01", "share of the KV blocks that admission leaves free", kMemory},
      {"share-identical-inputs", "on|off", "on", "requests with the same encoder input share one encode and its KV",
       kMemory},
      {"encoder-cache-memory", "SIZE|off", "auto",
       "bytes of the KV cache in which encoder inputs and prefixes stay for later requests while nothing else needs "
       "them; auto: a sixteenth of the machine's memory; off: no encoder input stays",
       kMemory},
      {"encoder-cache-ttl", "SECONDS", "none", "how long an input, or a prefix, stays at most after its last use",
       kMemory},
      {.name = "enable-prefix-caching",
       .value_name = "auto|off",
       .default_text = "auto",
       .help = "auto: decoder prompts of two KV blocks and more begin with blocks that earlier ones of the same "
               "encoder input left",
       .group = kMemory,
       .value_alone = "auto"},
      {"max-num-seqs", "N", "64", "sequences that run at once", kMemory},
      {"max-num-batched-tokens", "N", "2048", "decoder tokens a step; longer prompts go in parts", kMemory},
      {"enable-chunked-prefill", "", "", "accepted, as vLLM has it: decoder prompts always go in parts", kMemory},
      {"max-num-encoder-tokens", "N", "4096", "encoder tokens a step", kMemory},
      {"encode-slice", "MS", "auto in serve, else none",
       "how long encodes may take of a step in which others decode, the rest waits for the next steps: milliseconds, "
       "auto (as long as the decoding; more when requests wait), or none",
       kMemory},
      {"max-model-len", "N", "the model's, or 8192", "longest encoder input and longest decoder sequence", kMemory},
      {"debug-poison", "", "",
       "fill freed KV blocks with NaN, shuffle block order, watch cross KV: slow, for finding bugs", kMemory},
      {"debug-loopback-plans", "", "",
       "send every step's plan through the bytes that another process would get, and check it: for finding bugs",
       kMemory},
      refused("enable-lora", "", Feature::kLora),
      refused("lora-modules", "LIST", Feature::kLora),
  };
}

std::vector<FlagSpec> speculation_and_parallelism_flags() {
  return {
      {"speculative-config", "JSON", "the drafts of requests alone",
       "guess tokens, and run several a step; answers stay the same. \"method\": ngram (prompt_lookup_max, "
       "prompt_lookup_min), copy (the answer follows the input), model (a smaller \"model\" of the same vocabulary) or "
       "given; \"num_speculative_tokens\"",
       kMemory},
      {"num-speculative-tokens", "N", "4; 16 of a given draft and of copy",
       "guesses of a sequence and step at most, fewer where they do not pay; 0: none, also of requests' own drafts",
       kMemory},
      {.name = "speculative-model",
       .value_name = "NAME",
       .group = kEngine,
       .refusal = "give --speculative-config '{\"method\": \"model\", \"model\": \"NAME\"}'"},
      {"tensor-parallel-size", "N", "1",
       "processes that hold the model together, each with a part of every matrix and of the KV cache: 1, 2, 4 or 8; "
       "answers stay the same",
       kEngine},
      {"rank-timeout", "SECONDS", "60", "how long one of these processes may be silent within a step before all end",
       kEngine},
      {"nnodes", "N", "1, or what a launcher's environment says",
       "hosts, or processes of mpirun, srun, torchrun or a LeaderWorkerSet, that these processes are on, as many on "
       "each; "
       "the same command runs on all of them (docs/scaling.md)",
       kEngine},
      {"node-rank", "R", "0, or what a launcher's environment says", "which of these this one is; 0 has the answers",
       kEngine},
      {"master-addr", "HOST", "what a launcher's environment says",
       "address of node 0, private or loopback, where the others connect", kEngine},
      {"master-port", "PORT", "29500", "its port", kEngine},
      {"group-token-file", "FILE", "none", "a file whose content all nodes must know", kEngine},
      {"pipeline-parallel-size", "S", "1",
       "stages that hold a share of the layers and of the KV cache each, and work on a step each where several "
       "requests run: more memory; each is as many processes as --tensor-parallel-size says, 8 in all at most; answers "
       "stay the same",
       kEngine},
      {"pipeline-layers", "bytes|time|LIST", "bytes",
       "how layers are shared out to stages: as even in bytes, or in the time that they take, as can be; or decoder "
       "layers of each stage, e.g. 5,7, or the encoder's before them: 6,6/5,7",
       kEngine},
  };
}

}  // namespace

FlagSpec quiet_flag(std::string group) {
  return {.name = "quiet",
          .value_name = "[BOOL]",
          .default_text = "false",
          .help = "errors alone, and no progress",
          .group = std::move(group),
          .letter = 'q'};
}

std::vector<FlagSpec> engine_flags() {
  std::vector<FlagSpec> table = {
      {"dtype", "auto|float32|bfloat16|float16", "auto",
       "what weights are kept in; auto: as the folder has them; arithmetic is float32, but bfloat16 by name multiplies "
       "in it on processors that do so fast (AMX, and AMD's with AVX-512 BF16); half and float are float16 and float32",
       kEngine},
      {"attention-backend", "auto|reference|cpu", "auto", "the kernels of attention; reference is the oracle", kEngine},
      {"isa", "auto|generic|avx2|avx512|avx512_vnni|avx512_bf16|avx512_fp16|amx", "auto",
       "pin the kernels' instruction level", kEngine},
      {"device", "auto|cpu|vulkan", "auto",
       "where the model runs; auto: the processor. vulkan, vulkan:NUMBER, vulkan:NAME: a GPU, which transept devices "
       "lists; one that computes on the processor is meant by its name alone",
       kEngine},
      {.name = "no-recordings",
       .help = "a Vulkan device records every step anew, and none is filled with rows up to one that was recorded: to "
               "compare",
       .group = kEngine,
       .is_advanced = true},
      {.name = "device-arithmetic",
       .value_name = "float32|float16",
       .default_text = "float32",
       .help =
           "what a Vulkan device multiplies float16 and bfloat16 weights with: float32, inputs as they are; float16, "
           "inputs rounded to it, where its matrices do so faster",
       .group = kEngine,
       .is_advanced = true},
      {.name = "device-matrices",
       .value_name = "auto|on|off",
       .default_text = "auto",
       .help = "whether a Vulkan device's matrix units multiply; auto: where the start has seen that they keep rows "
               "apart and are faster",
       .group = kEngine,
       .is_advanced = true},
      {"quantization", "none|int8|int4|auto", "none, or what the checkpoint or packed folder says",
       "none, int8 (weights in 8 bits, inputs quantised row by row), int4 (weights in 4 bits, or the checkpoint's own "
       "codes of 4; inputs in 8 bits, group by group), or auto: the fastest types that pass every "
       "quality gate, which are float16 for weights stored in float32, other weights as they are, and KV in int8 "
       "(float16 in models narrower than 192)",
       kEngine},
      {"kv-cache-dtype", "auto|float32|bfloat16|float16|int8", "auto",
       "what keys and values are kept in, arithmetic apart; auto: float32, or what --quantization auto chooses",
       kEngine},
      {"shortlist", "FILE", "auto",
       "generate only what a Marian model's lexical shortlist allows: a binary file (lex*.s2t.bin), auto (the one in "
       "the model's folder, if there is one) or none",
       kEngine},
      {"threads", "N", "all processors",
       "compute threads, of each replica or rank where there are several; 0: the default", kEngine},
      {"cpu-affinity", "LIST", "none",
       "pin compute threads: none, auto (one core a thread, where there are enough), or processors, e.g. 0-3,8",
       kEngine},
      {"seed", "N", "0", "seed of requests that name none", kEngine},
      {"log-level", "error|warning|info", "warning; in serve info", "info: what the engine tells of itself, too",
       kEngine},
      quiet_flag(kEngine),
  };
  for (FlagSpec& flag : memory_and_batching_flags()) table.push_back(std::move(flag));
  for (FlagSpec& flag : speculation_and_parallelism_flags()) table.push_back(std::move(flag));
  for (FlagSpec& flag : media_flags()) table.push_back(std::move(flag));
  for (FlagSpec& flag : hub_flags()) table.push_back(std::move(flag));
  keep_common(table, {"dtype", "quantization", "threads", "log-level", "quiet", "kv-cache-memory", "max-model-len",
                      "max-num-seqs", "revision"});
  return table;
}

namespace {

Status read_rank_flags(const Flags& flags, EngineConfig& config) {
  ASSIGN_OR_RETURN(const int64_t ranks, flags.integer("tensor-parallel-size", 1, kMostRanks, 1));
  ASSIGN_OR_RETURN(const int64_t stages, flags.integer("pipeline-parallel-size", 1, kMostRanks, 1));
  config.tensor_parallel_size = static_cast<int32_t>(ranks);
  config.pipeline_parallel_size = static_cast<int32_t>(stages);
  config.pipeline_layers = flags.text_or("pipeline-layers", "");
  return ok_status();
}

// Where ranks on several nodes are: by flags, or by the environment that a launcher makes.
Status read_node_flags(const Flags& flags, AskLauncher launcher, EngineConfig& config) {
  std::optional<LaunchEnvironment> launch;
  if (launcher == AskLauncher::kYes && config.num_ranks() > 1 && !flags.has("nnodes")) {
    ASSIGN_OR_RETURN(launch, find_launcher(process_environment()));
  }
  const LaunchEnvironment said = launch.value_or(LaunchEnvironment());
  const auto count = [&](std::string_view name, int64_t least, int64_t most, int32_t otherwise) -> StatusOr<int32_t> {
    ASSIGN_OR_RETURN(const int64_t value, flags.integer(name, least, most, otherwise));
    return static_cast<int32_t>(value);
  };
  ASSIGN_OR_RETURN(config.num_nodes, count("nnodes", 1, kMostRanks, said.size));
  ASSIGN_OR_RETURN(config.node_rank, count("node-rank", 0, kMostRanks - 1, said.rank));
  ASSIGN_OR_RETURN(config.master_port, count("master-port", 1, UINT16_MAX, said.port.value_or(config.master_port)));
  config.master_addr = flags.text_or("master-addr", said.address);
  config.group_token_file = flags.text_or("group-token-file", "");
  if (launch.has_value() && config.num_ranks() % config.num_nodes != 0) {
    return invalid_argument(said.launcher, " has started ", said.size, " processes, and ", config.ranks_flag(),
                            " is not as many ranks for each; --nnodes 1 starts all here");
  }
  return ok_status();
}

// What stays for later requests.
Status read_cache_flags(const Flags& flags, EngineConfig& config) {
  const std::string memory = flags.text_or("encoder-cache-memory", "auto");
  config.caches_inputs = memory != "off";
  if (memory != "off" && memory != "auto") {
    ASSIGN_OR_RETURN(config.encoder_cache_memory, flags.bytes("encoder-cache-memory"));
  }
  if (flags.has("encoder-cache-ttl")) {
    ASSIGN_OR_RETURN(config.encoder_cache_ttl, flags.number("encoder-cache-ttl", 0, kMaxCacheSeconds, 0));
  }
  const std::string prefixes = flags.text_or("enable-prefix-caching", "auto");
  if (prefixes != "auto" && prefixes != "off") {
    return blame_environment(invalid_argument("--enable-prefix-caching ", prefixes, ": expected auto or off"),
                             flags.from_environment());
  }
  config.caches_prefixes = prefixes == "auto";
  return ok_status();
}

}  // namespace

StatusOr<int32_t> node_rank(const Flags& flags) {
  EngineConfig config;
  RETURN_IF_ERROR(read_rank_flags(flags, config));
  RETURN_IF_ERROR(read_node_flags(flags, AskLauncher::kYes, config));
  return config.node_rank;
}

StatusOr<EngineConfig> engine_config(const Flags& flags, AskLauncher launcher) {
  EngineConfig config;
  config.from_environment = flags.from_environment();
  config.dtype = known_dtype(flags.text_or("dtype", config.dtype));
  config.kv_cache_dtype = flags.text_or("kv-cache-dtype", config.kv_cache_dtype);
  config.quantization = flags.text_or("quantization", config.quantization);
  config.quantization_given = flags.has("quantization");
  config.shortlist = flags.text_or("shortlist", config.shortlist);
  config.device = flags.text_or("device", config.device);
  config.recordings = !flags.is_on("no-recordings");
  config.device_matrices = flags.text_or("device-matrices", config.device_matrices);
  config.device_arithmetic = flags.text_or("device-arithmetic", config.device_arithmetic);
  config.attention_backend = flags.text_or("attention-backend", config.attention_backend);
  config.isa = flags.text_or("isa", config.isa);
  config.cpu_affinity = flags.text_or("cpu-affinity", config.cpu_affinity);
  config.preemption_mode = flags.text_or("preemption-mode", config.preemption_mode);
  const auto count = [&](std::string_view name, int32_t& target, int64_t min, int64_t max = kMaxEngineCount) -> Status {
    ASSIGN_OR_RETURN(const int64_t value, flags.integer(name, min, max, target));
    target = static_cast<int32_t>(value);
    return ok_status();
  };
  RETURN_IF_ERROR(count("threads", config.threads, 0, kMaxThreads));
  RETURN_IF_ERROR(read_rank_flags(flags, config));
  RETURN_IF_ERROR(read_node_flags(flags, launcher, config));
  ASSIGN_OR_RETURN(config.rank_timeout, flags.number("rank-timeout", 0.1, kMaxRankTimeout, config.rank_timeout));
  RETURN_IF_ERROR(count("block-size", config.block_size, 1, kMaxBlockSize));
  RETURN_IF_ERROR(count("max-num-seqs", config.max_num_seqs, 1, kMaxNumSeqs));
  RETURN_IF_ERROR(count("max-num-batched-tokens", config.max_num_batched_tokens, 1));
  RETURN_IF_ERROR(count("max-num-encoder-tokens", config.max_num_encoder_tokens, 1));
  config.encode_slice = flags.text_or("encode-slice", config.encode_slice);
  if (flags.has("max-model-len")) {
    int32_t length = 0;
    RETURN_IF_ERROR(count("max-model-len", length, 1));
    config.max_model_len = length;
  }
  ASSIGN_OR_RETURN(config.kv_cache_memory, flags.bytes("kv-cache-memory"));
  ASSIGN_OR_RETURN(const std::optional<uint64_t> swap_space, flags.bytes("swap-space"));
  config.swap_space = swap_space.value_or(config.swap_space);
  ASSIGN_OR_RETURN(config.watermark, flags.number("watermark", 0, kMaxWatermark, config.watermark));
  const std::string share = flags.text_or("share-identical-inputs", "on");
  if (share != "on" && share != "off") {
    return blame_environment(invalid_argument("--share-identical-inputs ", share, ": expected on or off"),
                             flags.from_environment());
  }
  config.share_identical_inputs = share == "on";
  RETURN_IF_ERROR(read_cache_flags(flags, config));
  ASSIGN_OR_RETURN(const int64_t seed, flags.integer("seed", 0, INT64_MAX, 0));
  config.seed = static_cast<uint64_t>(seed);
  ASSIGN_OR_RETURN(config.media_limits, media_limits(flags));
  config.header_font = flags.text_or("header-font", "");
  config.mllama_strict_mask = flags.is_on("mllama-strict-mask");
  config.debug_loopback_plans = flags.is_on("debug-loopback-plans");
  config.speculative_config = flags.text_or("speculative-config", "");
  if (flags.has("num-speculative-tokens")) {
    int32_t count_of_drafts = 0;
    RETURN_IF_ERROR(count("num-speculative-tokens", count_of_drafts, 0, kMostSpeculativeTokens));
    config.num_speculative_tokens = count_of_drafts;
  }
  // Told here, before a model is fetched.
  RETURN_IF_ERROR(blame_environment(check_rank_flags(config), flags.from_environment()));
  const StatusOr<SpeculationOptions> drafts =
      settle_speculation(config.speculative_config, config.num_speculative_tokens);
  if (!drafts.ok()) return blame_environment(drafts.status(), flags.from_environment());
#ifdef TRANSEPT_POISON
  config.debug_poison = true;
#else
  config.debug_poison = flags.is_on("debug-poison");
#endif
  // Last: it may fetch gigabytes, and a flag that is wrong is said before.
  ASSIGN_OR_RETURN(config.model, resolve_model(flags, ModelParts::kAll));
  if (drafts->method == DraftMethod::kModel) {
    StatusOr<std::string> folder = resolve_other_model(flags, drafts->model, ModelParts::kAll);
    if (!folder.ok()) return with_prefix(folder.status(), "--speculative-config: model");
    config.draft_model = std::move(folder).value();
  }
  return config;
}

}  // namespace transept
