#include "startup/runner_choices.h"

#include <algorithm>

#include "base/cpus.h"
#include "startup/choose_device.h"

namespace transept {

StatusOr<RunnerChoices> make_runner_choices(const EngineConfig& config) {
  RunnerChoices choices;
  const char* const divider = config.pipeline_parallel_size > 1 ? "--pipeline-parallel-size"
                              : config.tensor_parallel_size > 1 ? "--tensor-parallel-size"
                                                                : "--replicas";
  ASSIGN_OR_RETURN(choices.isa, parse_isa(config.isa));
  ASSIGN_OR_RETURN(choices.cpus, plan_replica_cpus(config.threads, std::max(config.replicas, config.ranks_per_node()),
                                                   config.cpu_affinity, available_cpus(), divider));
  if (!choices.cpus.cpus.empty() && !may_pin_threads()) {
    choices.cpus.cpus.clear();
    choices.may_pin = false;
  }
  ASSIGN_OR_RETURN(choices.encode_slice, parse_encode_slice(config.encode_slice));
  ASSIGN_OR_RETURN(choices.device, choose_device(config));
  if (choices.device != nullptr) choices.encode_slice = {};  // auto: its encodes run to the end
  return choices;
}

namespace {

// A step that is alone in a pipeline has the threads of all its stages on this host, wherever it is; of ranks that
// divide a stage's layers each has those of its place.
void add_threads_of_stages(const EngineConfig& config, const RunnerChoices& choices, int32_t rank,
                           ModelRunnerOptions& options) {
  if (config.pipeline_parallel_size == 1) return;
  const int32_t first = config.first_rank_of_node(), ranks_of_stage = config.tensor_parallel_size;
  options.num_threads_alone = options.num_threads;
  for (int32_t other = first; other < first + config.ranks_per_node(); ++other) {
    if (other == rank || other % ranks_of_stage != rank % ranks_of_stage) continue;
    options.num_threads_alone += options.num_threads;
    const std::vector<int> cpus = choices.cpus.of_replica(other - first);
    options.cpus.insert(options.cpus.end(), cpus.begin(), cpus.end());
  }
  if (!options.cpus.empty()) return;
  const auto num_available = static_cast<int32_t>(available_cpus().size());
  options.num_threads_alone = std::max(options.num_threads, std::min(options.num_threads_alone, num_available));
}

}  // namespace

EncoderDecoderModelRunner::Options runner_options(const EngineConfig& config, const RunnerChoices& choices,
                                                  int32_t rank) {
  const StorageTypes& types = choices.types;
  EncoderDecoderModelRunner::Options options;
  options.isa = choices.isa;
  options.num_threads = choices.cpus.num_threads;
  options.cpus = choices.cpus.of_replica(rank % config.ranks_per_node());
  options.num_replicas = config.replicas;
  add_threads_of_stages(config, choices, rank, options);
  options.attention_backend = config.attention_backend;
  options.weight_storage = types.weights;
  options.as_packed = types.as_packed;
  options.sizes_only = config.sizes_only;
  options.block_size = config.block_size;
  options.kv_dtype = types.kv;
  options.max_num_seqs = config.max_num_seqs;
  options.max_num_batched_tokens = config.max_num_batched_tokens;
  options.max_num_encoder_tokens = config.max_num_encoder_tokens;
  options.max_model_len = config.max_model_len;
  options.kv_cache_memory = config.kv_cache_memory;
  options.swap_space = config.swap_space;
  options.watermark = config.watermark;
  options.ec_buffer_memory = config.ec_buffer_memory;
  options.max_num_injected_tokens = config.max_num_injected_tokens;
  options.has_long_encodes = choices.encode_slice.mode != EncodeSliceOptions::Mode::kNone;
  options.debug_poison = config.debug_poison;
  if (choices.device != nullptr) options.device = choices.device.get();
  return options;
}

}  // namespace transept
