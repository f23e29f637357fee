// What a step is to do, and its results: values without pointers, so that a rank can be another process. Reused from
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
  int32_t sample_idx = 0;     // of the n samples from one row after a prompt; the sequence's index in its group
  int32_t target_token = -1;  // >= 0: score this token instead of choosing one
  int32_t target_vocab = 0;   // > 0: over the ids below it only, see RowRequest
  bool probe = false;         // the target is SamplingParams::probe's
  float temperature = 0;
  int32_t top_k = 0;
  float top_p = 1;
  float min_p = 0;
  uint64_t seed = 0;
  uint32_t position = 0;  // generated tokens before it (prompt rows: the target's position): keys the random number
  bool wants_logprob = true;
  int32_t num_logprobs = -1;
  bool align = false;          // RowSample::source_index is wanted
  int32_t num_candidates = 0;  // > 0: a beam's row, see RowRequest
  RowEdits edits;

  void clear() {
    target_token = -1;
    target_vocab = 0;
    probe = false;
    sample_idx = 0;
    num_candidates = 0;
    wants_logprob = true;
    align = false;
    edits.clear();
  }

  bool operator==(const RowPlan&) const = default;
};

// New rows [row_begin, row_end) of a sequence whose cross-attention is wanted whole.
struct CapturePlan {
  int32_t group_idx = 0;
  int32_t seq_idx = 0;
  int32_t row_begin = 0;
  int32_t row_end = 0;

  bool operator==(const CapturePlan&) const = default;
};

struct StepPlan {
  uint64_t step = 0;
  SchedulerOutputs scheduled;
  Recycled<RowPlan> rows;  // ascending by group, sequence, row: logits are computed for these rows only
  std::vector<CapturePlan> captures;
  std::vector<GroupId> encoder_captures;  // groups whose encoder output is wanted, of items whose encode this step ends
  // Tasks of the thread pool that scheduled.long_encode does in this step, unless it runs to its end. A number, not a
  // time: where an encode stands still never depends on a rank's clock.
  int64_t num_long_encode_tasks = 1;

  bool operator==(const StepPlan&) const = default;
};

// Probabilities [num_heads, rows of the CapturePlan, positions of the group's cross table] of the alignment heads.
// LLMEngine::add_request bounds their size per request, and the step's rows bound it per step. Freed with the step.
struct CapturedRows {
  int32_t num_heads = 0;
  std::vector<float> values;
};

// The rows of an item, [num_positions, width]. A group's items come in their order.
struct CapturedEncode {
  GroupId group_id;
  std::vector<float> values;
};

struct StepOutput {
  uint64_t step = 0;
  SampleOutput samples;                // samples.rows[i] belongs to StepPlan::rows[i]
  std::vector<CapturedRows> captured;  // captured[i] belongs to StepPlan::captures[i]
  std::vector<CapturedEncode> captured_encodes;
  bool long_encode_ended = false;  // the plan's has ended, and its cross KV is written
  double encode_seconds = 0;       // of this step's encodes and cross KV writes
  int64_t num_encode_tasks = 0;    // tasks of the thread pool that these were
  double decode_seconds = 0;
};

}  // namespace transept
