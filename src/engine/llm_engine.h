// The engine: requests in, results out, one step at a time. `step()` is schedule, execute, update, and that is the
// architecture. Knows no file, no flag and no wire: it is given an executor, a scheduler's options, a tokenizer, a
// clock.
//
// Not thread-safe: one thread owns it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/status.h"
#include "core/prompt.h"
#include "core/request_output.h"
#include "core/sampling_params.h"
#include "engine/executor.h"
#include "engine/output_processor.h"
#include "engine/step_trace.h"
#include "scheduling/scheduler.h"
#include "text/tokenizer.h"

namespace transept {

struct RequestOptions {
  bool stream = false;  // step() gives what is new after each step, not of beams and of best_of
  std::optional<TimePoint> arrival_time = std::nullopt;  // by the engine's clock; unset: now
};

class LLMEngine final {
 public:
  struct Options {
    Scheduler::Options scheduler;
    BlockSpaceManager::Options blocks;
    size_t max_trace_steps = 0;  // steps kept for --stats-json; 0: none
  };

  // Borrows the tokenizer (may be null) and the clock.
  LLMEngine(const Options& options, std::unique_ptr<Executor> executor, const Tokenizer* tokenizer, const Clock& clock);

  // Errors: a request id that is in flight; a request that could never fit (both counts).
  Status add_request(const std::string& request_id, EncoderDecoderInputs inputs, const SamplingParams& params,
                     const RequestOptions& options = {});

  // What the request has so far, with finish_reason abort. Errors: no such request.
  StatusOr<RequestOutput> abort_request(const std::string& request_id);

  // One step. Requests that finished with it are appended to `outputs`, and unfinished pieces of those that are
  // streamed: merge_delta of all pieces is the whole. Errors: the executor's; nothing is lost then.
  Status step(std::vector<RequestOutput>& outputs);

  bool has_unfinished_requests() const { return scheduler_.has_unfinished(); }
  size_t num_unfinished_requests() const { return requests_.size(); }

  struct Stats {
    int64_t num_steps = 0;
    int64_t num_prompt_tokens = 0;   // decoder rows of prompts, recomputed ones included
    int64_t num_encoder_tokens = 0;  // recomputed ones included
    int64_t num_generated_tokens = 0;
    int64_t num_preemptions = 0;
    int64_t num_swaps_out = 0, num_swaps_in = 0;  // groups
    int64_t max_running_seqs = 0;
    double encode_seconds = 0, decode_seconds = 0, step_seconds = 0;
  };
  const Stats& stats() const { return stats_; }
  ExecutorStats executor_stats() const { return executor_->stats(); }
  const StepTrace& trace() const { return trace_; }
  const Scheduler& scheduler() const { return scheduler_; }

 private:
  void count_step(size_t num_outputs_before, const std::vector<RequestOutput>& outputs, double seconds);

  std::unique_ptr<Executor> executor_;
  const Clock& clock_;
  Scheduler scheduler_;
  OutputProcessor output_processor_;
  absl::flat_hash_map<std::string, GroupId> requests_;
  StepPlan plan_;
  StepOutput output_;
  StepTrace trace_;
  Stats stats_;
  uint64_t next_group_id_ = 1;
};

}  // namespace transept
