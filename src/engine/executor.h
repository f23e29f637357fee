// Every step passes through an Executor: it fans a plan out to ranks (one today) and brings the result back. submit and
// collect are apart so that step k + 1 may be planned while k runs; with one rank on a CPU collect simply runs it.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "engine/step_plan.h"

namespace transept {

// What the engine must know of the rank's memory and counters.
struct ExecutorInfo {
  int32_t num_device_blocks = 0;
  int32_t num_host_blocks = 0;
  int32_t num_encoder_layers = 0;
  int32_t num_alignment_heads = 0;  // ModelSpec::alignment_heads
};

struct ExecutorStats {
  int64_t num_encoder_runs = 0;
  int64_t num_cross_kv_writes = 0;
  int64_t num_matmuls = 0;
  uint64_t bytes_copied = 0;  // copy-on-write
  uint64_t bytes_swapped_out = 0;
  uint64_t bytes_swapped_in = 0;
  int64_t num_arena_overflows = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;

  virtual const ExecutorInfo& info() const = 0;

  // On the thread that submits and collects from here on, before its first step.
  virtual void enter_thread() {}

  // `plan` stays as it is until collect(plan.step) has returned. One step may be in flight.
  virtual Status submit(const StepPlan& plan) = 0;
  virtual Status collect(uint64_t step, StepOutput& output) = 0;

  virtual ExecutorStats stats() const = 0;
};

}  // namespace transept
