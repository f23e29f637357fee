// What a step is to do and what came of it: values without pointers, so that a rank can be another process. Reused from
// step to step: vectors keep their memory.
#pragma once

#include <cstdint>
#include <vector>

#include "base/recycled.h"
#include "sampling/row_edits.h"
#include "sampling/select.h"
#include "scheduling/scheduler_outputs.h"

namespace transept {

// One token to choose or to score.
struct RowPlan {
  int32_t group_idx = 0;      // in SchedulerOutputs::groups
  int32_t seq_idx = 0;        // in its seq_data
  int32_t row = 0;            // of that sequence's new rows
  int32_t sample_idx = 0;     // of the n samples that one row gives after a prompt; the sequence's index in its group
  int32_t target_token = -1;  // >= 0: score this token instead of choosing one
  float temperature = 0;
  int32_t top_k = 0;
  float top_p = 1;
  float min_p = 0;
  uint64_t seed = 0;
  uint32_t position = 0;  // number of generated tokens before it (of the target, in the prompt): keys the random number
  int32_t num_logprobs = -1;
  bool align = false;          // RowSample::source_index is wanted
  int32_t num_candidates = 0;  // > 0: a beam's row, see RowRequest
  RowEdits edits;

  void clear() {
    target_token = -1;
    sample_idx = 0;
    num_candidates = 0;
    align = false;
    edits.clear();
  }
};

struct StepPlan {
  uint64_t step = 0;
  SchedulerOutputs scheduled;
  Recycled<RowPlan> rows;  // ascending by group, sequence, row
};

struct StepOutput {
  uint64_t step = 0;
  SampleOutput samples;       // samples.rows[i] belongs to StepPlan::rows[i]
  double encode_seconds = 0;  // of this step's encodes and cross KV writes
  double decode_seconds = 0;
};

}  // namespace transept
