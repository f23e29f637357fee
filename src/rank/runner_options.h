// What the runner of a rank is made with (model_runner.h, encoder_model_runner.h). A value; an encoder's runner reads
// nothing of what concerns decoding and the KV pool.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/communicator.h"
#include "base/isa.h"
#include "base/status.h"
#include "core/model_config.h"
#include "models/model.h"
#include "rank/devices.h"
#include "rank/group_shortlists.h"
#include "tensor/dtype.h"

namespace transept {

struct ModelRunnerOptions {
  ModelPart part = ModelPart::kWhole;
  int32_t num_threads = 1;
  // Of a stage of a pipeline, in a step beside which no other is in flight: the other stages on its host have nothing
  // to do meanwhile. At least num_threads; 0: num_threads.
  int32_t num_threads_alone = 0;
  std::vector<int> cpus;  // one per thread of the larger number, to pin it to; empty: not pinned
  Isa isa = Isa::kGeneric;
  std::string attention_backend = "auto";
  std::optional<WeightFormat> weight_storage;  // of matrices; unset: as the checkpoint stores each
  bool as_packed = false;                      // a packed folder's matrices are used as they are
  bool sizes_only = false;                     // matrices are not read (PackOptions::sizes_only); no step may run
  int32_t block_size = 16;
  DType kv_dtype = DType::kFloat32;  // of self and cross KV
  int32_t max_num_seqs = 64;
  int32_t max_num_batched_tokens = 2048;
  int32_t max_num_encoder_tokens = 4096;
  // Caps both sides (but not the fixed window of a media encoder). Unset: the model's positions; for a model without
  // a limit 8192, or what the KV pool holds if less.
  std::optional<int32_t> max_model_len;
  bool max_model_len_may_exceed = false;  // a model of fewer positions has those; false: that is an error
  std::optional<uint64_t>
      kv_cache_memory;  // bytes; unset: what the largest load can use, within what the machine has left
  // Of what kv_cache_memory leaves open: the most bytes, unless one longest request takes more. A draft model's.
  std::optional<uint64_t> kv_memory_limit;
  uint64_t reserved_memory = 0;  // bytes of the machine's free memory that are left to others: to a draft model
  uint64_t swap_space = 0;       // bytes
  int32_t num_replicas = 1;      // share these bytes, and the free memory of the machine
  double watermark = 0.01;
  // Rows that other processes encode are taken into blocks of the pool, which gets a table for them.
  bool takes_remote_rows = false;
  // kFloat32 or kBFloat16: of such rows in their blocks, as they are received. With kBFloat16 the rows that this runner
  // encodes are rounded, too, so that they are those that another process would have sent.
  DType remote_rows_dtype = DType::kFloat32;
  // Bytes of the pool that reservations of such rows may hold (--ec-buffer-memory). Unset: those of max_num_seqs
  // inputs, but no more than a tenth of the machine's memory and a quarter of kv_cache_memory.
  std::optional<uint64_t> ec_buffer_memory;
  int32_t max_num_injected_tokens = 0;  // such rows a step; 0: four times max_num_encoder_tokens
  ShortlistOptions shortlist;
  bool has_long_encodes = false;  // plans may have some: encodes get their own memory, apart from the step's
  bool debug_poison = false;
  // The ranks that hold the model together, this one among them; null: one has it alone. Borrowed. Bytes above are
  // those of all of them. REQUIRES, if not null: no replicas, no long encodes, no rows of other processes.
  Communicator* ranks = nullptr;
  // Stages of a pipeline that the ranks are, each of as many neighbours, which divide the stage's layers. REQUIRES: it
  // divides the number of ranks; of several, `ranks` is not null, and the device is the processor.
  int32_t num_stages = 1;
  std::string pipeline_layers = "";               // parse_pipeline_layers(); "": bytes
  const DeviceKind* device = &cpu_device_kind();  // borrowed
  // For tests: the maker of a model that is no family. Null: load_model() of models/registry.h.
  std::function<StatusOr<std::unique_ptr<Model>>(const ModelConfig&, const std::shared_ptr<WeightMap>&,
                                                 const ModelLoadOptions&)>
      make_model = nullptr;
};

}  // namespace transept
