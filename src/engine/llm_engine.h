// The engine: requests in, results out, one step at a time. `step()` is schedule, execute, update, and that is the
// architecture. Knows no file, no flag and no wire: it is given an executor, a scheduler's options, a tokenizer, a
// clock.
//
// Not thread-safe: one thread owns it.
#pragma once

#include <cstdint>
#include <functional>
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
#include "engine/encode_pacer.h"
#include "engine/encoded_input.h"
#include "engine/executor.h"
#include "engine/output_processor.h"
#include "engine/shared_inputs.h"
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
    BlockSpaceManager::Options blocks;  // share_identical_inputs: encoder inputs are compared, equal ones share
    EncodeSliceOptions encode_slice;    // not kNone: the executor must take long encodes
    size_t max_trace_steps = 0;         // steps kept for --stats-json; 0: none
  };

  // Borrows the tokenizer (may be null) and the clock.
  LLMEngine(const Options& options, std::unique_ptr<Executor> executor, const Tokenizer* tokenizer, const Clock& clock);

  // An open token of the decoder prompt is filled first, by a pass of its own over the same encoded input.
  // Errors: a request id that is in flight; a request that could never fit (both counts); a probe outside the prompt;
  // cross-attention of a model without alignment heads, or of more than 256 MB.
  Status add_request(const std::string& request_id, EncoderDecoderInputs inputs, const SamplingParams& params,
                     const RequestOptions& options = {});

  // A handle of the encoder side of `inputs` (encoded_input.h). Nothing is computed yet: the first request over it
  // encodes, and those after it find its cross KV. Errors: no encoder input; one that could never fit (both counts).
  StatusOr<EncodedInput> encode(const EncoderDecoderInputs& inputs);
  // A request over a handle: `inputs` brings the decoder side, its encoder side is replaced by the handle's. Errors:
  // those of add_request; an empty handle, or one of another engine.
  Status add_request(const std::string& request_id, const EncodedInput& encoded, EncoderDecoderInputs inputs,
                     const SamplingParams& params, const RequestOptions& options = {});
  // Gives up what dropped handles pinned, as every step and every encode() does first: for an engine that stands still.
  void collect_dropped_inputs() { shared_inputs_.collect_dropped(); }
  // Called on whatever thread drops a handle's last copy, until it is set anew; null: nobody. It may outlive the
  // engine as handles do.
  void set_on_input_dropped(std::shared_ptr<const std::function<void()>> on_drop) {
    shared_inputs_.set_on_drop(std::move(on_drop));
  }

  // EncodedInput::owner() of this engine's handles.
  const void* input_owner() const { return shared_inputs_.owner(); }
  bool shares_identical_inputs() const { return shared_inputs_.shares_identical(); }

  // For a thread that calls step() from here on, before its first: it is pinned where the executor's threads are.
  void enter_thread() { executor_->enter_thread(); }

  // What the request has so far, with finish_reason abort. Errors: no such request.
  StatusOr<RequestOutput> abort_request(const std::string& request_id);

  // One step. Requests that finished with it are appended to `outputs`, and unfinished pieces of those that are
  // streamed: merge_delta of all pieces is the whole. Errors: the executor's; nothing is lost then.
  Status step(std::vector<RequestOutput>& outputs);

  bool has_unfinished_requests() const { return scheduler_.has_unfinished(); }
  size_t num_unfinished_requests() const { return requests_.size(); }

  struct Stats {
    int64_t num_steps = 0;
    int64_t num_prompt_tokens = 0;       // decoder rows of prompts, recomputed ones included
    int64_t num_encoder_tokens = 0;      // recomputed ones included
    int64_t num_encoder_cache_hits = 0;  // admissions of groups that found their cross KV, and did not encode
    int64_t num_long_encodes = 0;        // of them, those that ran for a share of several steps
    int64_t num_reencodes = 0;           // encodes of an input whose cross KV was there before, and was given up
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
  // The part of a request that has just ended, and what it took.
  struct Continued {
    GroupId group_id;
    RequestMetrics metrics;
  };

  Status add_group(const std::string& request_id, EncoderDecoderInputs inputs, const SamplingParams& params,
                   const EncodedInput& encoded, const RequestOptions& options, const Continued* continued = nullptr);
  Status open_group(const std::string& request_id, EncoderDecoderInputs inputs, const SamplingParams& params,
                    const EncodedInput& encoded, const RequestOptions& options);
  void close_prompts(size_t num_outputs_before, std::vector<RequestOutput>& outputs);
  Status check_internals(const EncoderDecoderInputs& inputs, const SamplingParams& params) const;
  void count_inputs();
  void count_encode(GroupId group_id);
  void count_step(size_t num_outputs_before, const std::vector<RequestOutput>& outputs, double seconds);

  std::unique_ptr<Executor> executor_;
  const Clock& clock_;
  Scheduler scheduler_;
  SharedInputs shared_inputs_;
  OutputProcessor output_processor_;
  EncodePacer encode_pacer_;
  absl::flat_hash_map<std::string, GroupId> requests_;
  // Requests whose open token is being found, under the same id; the handle keeps what was encoded for it.
  struct OpenRequest {
    EncoderDecoderInputs inputs;
    SamplingParams params;
    RequestOptions options;
    EncodedInput encoded;
  };
  absl::flat_hash_map<std::string, OpenRequest> open_requests_;
  StepPlan plan_;
  StepOutput output_;
  StepTrace trace_;
  Stats stats_;
  uint64_t next_group_id_ = 1;
};

}  // namespace transept
