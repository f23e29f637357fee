// The engine's only door to its ranks: an Executor fans each step's plan out to them and brings the result
// back. submit and collect are apart so that step k + 1 may be planned, and begun, while k runs on another stage of a
// pipeline; with one rank on a CPU collect runs the step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/isa.h"
#include "base/status.h"
#include "kv/block.h"
#include "kv/table_spec.h"
#include "layers/packing.h"
#include "layers/split.h"
#include "models/model_spec.h"
#include "rank/step_plan.h"
#include "tensor/device.h"
#include "tensor/dtype.h"

namespace transept {

// All that is known of the ranks' model, memory and arithmetic outside of them. A value; it never changes.
struct ExecutorInfo {
  ModelSpec spec;  // spec.part: what the ranks have. An encoder alone has no tables and blocks, and decodes nothing
  // The most encoder positions that a request may cross, and its longest decoder sequence (prompt and output).
  int32_t max_encoder_len = 0;
  int32_t max_decoder_len = 0;
  // The largest step.
  int32_t max_num_seqs = 0;
  int32_t max_num_batched_tokens = 0;
  int32_t max_num_encoder_tokens = 0;
  int32_t max_num_injected_tokens = 0;  // rows of items that are encoded elsewhere; 0: none are taken from the pool
  // Steps that may be submitted and not collected: the stages of a pipeline; 1 of all else.
  int32_t max_steps_in_flight = 1;
  // The KV cache.
  int32_t block_size = 0;  // tokens of a block of the first spec of sequences
  // Of each of spec.kv, with its tokens a block; behind them that of remote items' rows, unless spec.kv has it.
  std::vector<TableSpec> tables;
  // Index of `tables`: of rows that other processes encode; -1: none are taken. A block has room for tokens_per_block
  // of the widest rows of the model's items; narrower rows lie side by side from its beginning, as many to a block.
  int32_t rows_spec = -1;
  DType rows_dtype = DType::kFloat32;  // of these rows in their blocks: or kBFloat16
  bool reads_encoder_ids = false;      // the ranks read the ids of items, also of those that are encoded elsewhere
  int32_t max_reserved_blocks = 0;     // of num_device_blocks, what reservations of such rows may hold
  int32_t num_device_blocks = 0;
  int32_t num_host_blocks = 0;
  uint64_t block_bytes = 0;
  uint64_t step_bytes = 0;  // of the largest step: its arenas, and the rows of its encodes
  DType kv_dtype = DType::kFloat32;
  std::optional<WeightFormat> weight_storage;  // asked for all matrices; unset: as the checkpoint stores each
  Isa isa = Isa::kGeneric;
  int32_t num_threads = 0;        // of a rank
  int32_t num_threads_alone = 0;  // of a rank, in a step that is alone in a pipeline; elsewhere num_threads
  std::string attention_backend;
  DeviceNames device;
  std::vector<PackedLayer> packed_layers;  // every matrix, in the order of loading; without views
  std::vector<std::string> report;         // what start-up found and chose, a line each (blocks, tokens, bytes)
};

struct ExecutorStats {
  int64_t num_encoder_runs = 0;
  int64_t num_cross_kv_writes = 0;
  int64_t num_matmuls = 0;
  uint64_t bytes_copied = 0;  // copy-on-write
  uint64_t bytes_swapped_out = 0;
  uint64_t bytes_swapped_in = 0;
  int64_t num_arena_overflows = 0;
  StepCounts steps;                   // of a device that keeps what it makes of steps
  std::optional<DeviceUsage> device;  // none: the processor's
  // Of ranks that hold a model together; none: there is one.
  int32_t num_ranks = 0;
  bool ranks_are_up = false;                              // they live and die together
  int64_t num_steps_alone = 0;                            // of a pipeline: computed with num_threads_alone
  double collective_seconds = 0;                          // of the first rank, in what all ranks do at once
  std::array<double, kMostRanks> rank_wait_seconds = {};  // that each rank waited for the others in it
};

class Executor {
 public:
  virtual ~Executor() = default;

  virtual const ExecutorInfo& info() const = 0;

  // Called by the thread that submits and collects from here on, before its first step.
  virtual void enter_thread() {}

  // `plan` must not change until collect(plan.step) has returned. Steps are executed in the order of submit(), block
  // moves too, and are collected in it; at most ExecutorInfo::max_steps_in_flight are in flight. If more than one may
  // be, no row of a plan reads what the plan's encodes write: that is there when the plan was collected. After an error
  // no step is in flight; nor is one when an executor ends.
  virtual Status submit(const StepPlan& plan) = 0;
  virtual Status collect(uint64_t step, StepOutput& output) = 0;

  virtual ExecutorStats stats() const = 0;

  // Where the rows of a remote item lie: the bytes of rows [num_positions, width] of rows_dtype in blocks of
  // ExecutorInfo::rows_spec, a span for each block that has some, in order. Any thread may write them while the blocks
  // are reserved and not written; steps read them in a later plan alone. Errors: kUnimplemented, this executor or its
  // device takes no rows so, by name. REQUIRES: as many blocks as the positions need, and a width that rows of some
  // items have (ModelSpec::width_of()), or no positions.
  virtual StatusOr<std::vector<std::span<std::byte>>> row_places(std::span<const BlockId> blocks, int32_t num_positions,
                                                                 int32_t width) {
    (void)blocks, (void)num_positions, (void)width;
    return absl::UnimplementedError("this executor has no memory that rows could be received in");
  }
};

}  // namespace transept
