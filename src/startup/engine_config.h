// The whole configuration, in one place. Each room below it takes its own small Options, cut from this. A value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "multimodal/media_access.h"

namespace transept {

struct EngineConfig {
  std::string model;          // folder
  std::string chat_template;  // a file; "": the folder's
  std::string attention_backend = "auto";
  std::string isa = "auto";
  std::string dtype = "auto";  // these four: features.cc lists the known values
  std::string kv_cache_dtype = "auto";
  std::string quantization = "none";
  bool quantization_given = false;  // "none" was requested, and is not only the default
  std::string device = "auto";
  bool recordings = true;                     // of steps, where the device keeps them
  std::string device_matrices = "auto";       // auto, on, off: a Vulkan device's matrix units
  std::string device_arithmetic = "float32";  // float32, float16: of a Vulkan device's products
  std::string shortlist = "auto";             // auto, none, or a file (shortlist_file.h)
  std::optional<int64_t> shortlist_parts;     // ShortlistOptions::max_parts; for tests
  std::string preemption_mode = "auto";       // auto, recompute, swap
  int32_t threads = 0;                        // per replica or rank; 0: the processors, divided among them
  int32_t replicas = 1;                       // engines over one set of weights, which share the bytes below
  // Ranks that hold the model together, and share the bytes below: so many divide every layer of a stage, and stages
  // divide the layers.
  int32_t tensor_parallel_size = 1, pipeline_parallel_size = 1;
  std::string pipeline_layers;  // parse_pipeline_layers(); "": bytes
  double rank_timeout = 60;     // seconds that a rank may be silent in a step
  int32_t num_nodes = 1;        // that the ranks are on, as many on each: hosts, or a launcher's processes
  int32_t node_rank = 0;        // this one's place among them; ranks are counted node by node
  std::string master_addr;      // where the first rank listens for those of other nodes
  int32_t master_port = 29500;
  std::string group_token_file;       // "": none
  std::string cpu_affinity = "none";  // auto, none, or a list of processors (replica_cpus.h)
  int32_t block_size = 16;
  int32_t max_num_seqs = 64;
  int32_t max_num_batched_tokens = 2048;
  int32_t max_num_encoder_tokens = 4096;
  std::string encode_slice = "none";  // none, auto, or milliseconds
  std::optional<int32_t> max_model_len;
  std::optional<uint64_t> kv_cache_memory;  // bytes
  uint64_t swap_space = uint64_t{1} << 30;  // bytes
  double watermark = 0.01;
  std::string ec_transfer_dtype = "float32";  // of rows between instances; this and the next four: of instances alone
  std::string ec_fallback = "none";           // local: a decode instance encodes what encode instances do not
  int32_t ec_lease_seconds = 30;              // EcTimes::lease
  std::optional<uint64_t> ec_buffer_memory;   // bytes; encode: of outputs; decode: of the pool, for rows on their way
  int32_t max_num_injected_tokens = 0;        // ModelRunnerOptions
  MediaLimits media_limits;                   // of requests' images
  std::string header_font;                    // a file; "": none
  bool mllama_strict_mask = false;            // read_mllama_strict_mask()
  bool share_identical_inputs = true;
  std::string speculative_config;  // JSON (speculation_options.h); "": requests' own drafts alone
  std::optional<int32_t> num_speculative_tokens;
  std::string draft_model;    // the folder of speculative_config's model; "": as it is written there
  bool caches_inputs = true;  // encoder inputs stay for later requests; only with share_identical_inputs
  // Bytes of the pool that these and prefixes may have; unset: a sixteenth of the machine's memory.
  std::optional<uint64_t> encoder_cache_memory;
  std::optional<double> encoder_cache_ttl;  // seconds that they, and prefixes, stay at most
  bool caches_prefixes = true;              // the same of full blocks of decoder prompts
  uint64_t seed = 0;
  bool sizes_only = false;  // the plan of memory alone: no weight is read, and no step may run
  bool debug_poison = false;
  bool debug_loopback_plans = false;  // LoopbackExecutor
  size_t max_trace_steps = 0;
  std::set<std::string> from_environment;  // flags set by TRANSEPT_<FLAG>: errors name the variable

  int32_t num_ranks() const { return tensor_parallel_size * pipeline_parallel_size; }
  int32_t ranks_per_node() const { return num_ranks() / num_nodes; }
  // The flag, and its value, that asks for several ranks: for messages.
  std::string ranks_flag() const {
    return pipeline_parallel_size > 1 ? "--pipeline-parallel-size " + std::to_string(pipeline_parallel_size)
                                      : "--tensor-parallel-size " + std::to_string(tensor_parallel_size);
  }
  int32_t first_rank_of_node() const { return node_rank * ranks_per_node(); }
};

}  // namespace transept
