// The engine: requests in, results out, one step at a time. `step()` schedules, executes and updates, and that is the
// architecture. The engine knows no files, flags or wire formats: its caller passes an executor, the scheduler's
// options, a tokenizer and a clock.
//
// Not thread-safe: owned by one thread.
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
#include "engine/input_stage.h"
#include "engine/output_processor.h"
#include "engine/remote_inputs.h"
#include "engine/step_trace.h"
#include "rank/executor.h"
#include "scheduling/scheduler.h"
#include "text/tokenizer.h"

namespace transept {

class LLMEngine final {
 public:
  struct Options {
    // Those that fit an executor: its limits, pools and specs.
    static Options of(const ExecutorInfo& info);

    Scheduler::Options scheduler;
    BlockSpaceManager::Options blocks;  // share_identical_inputs: identical encoder inputs share
    EncodeSliceOptions encode_slice;    // unless kNone: the executor must support long encodes
    size_t max_trace_steps = 0;         // steps kept for --stats-json; 0: none
    // A decode instance: inputs come encoded through its connector. REQUIRES: RemoteInputs::check().
    RemoteInputs::Options remote;
  };

  // Borrows the tokenizer (may be null) and the clock.
  LLMEngine(const Options& options, std::unique_ptr<Executor> executor, const Tokenizer* tokenizer, const Clock& clock);

  // Of a request over remote items (core/encoder_item.h): it waits outside the scheduler until the rows of all are
  // here; if they do not come in time, its result says so. An open token of the decoder prompt is filled first, by a
  // separate pass over the same encoded input. Errors: a request id that is in flight; a request that could never fit
  // (both counts); those of InputStage::check.
  Status add_request(const std::string& request_id, EncoderDecoderInputs inputs, const SamplingParams& params,
                     const RequestOptions& options = {});

  // Returns a handle of the encoder side of `inputs` (encoded_input.h). Nothing is computed yet: the first request over
  // the handle encodes, and later ones find its cross KV. Errors: no encoder input; an input that could never fit (both
  // counts).
  StatusOr<EncodedInput> encode(const EncoderDecoderInputs& inputs);
  // Adds a request over a handle: `inputs` has the decoder side, and the handle replaces its encoder side. Errors:
  // those of add_request; an empty handle, or a handle of another engine.
  Status add_request(const std::string& request_id, const EncodedInput& encoded, EncoderDecoderInputs inputs,
                     const SamplingParams& params, const RequestOptions& options = {});
  // Unpins the inputs of dropped handles, as every step and every encode() does first. For an engine that is idle.
  void collect_dropped_inputs() { inputs_.shared().collect_dropped(); }
  // Sets the callback for dropped handles; null: none. It runs on the thread that drops a handle's last copy. It may
  // outlive the engine, as handles do.
  void set_on_input_dropped(std::shared_ptr<const std::function<void()>> on_drop) {
    inputs_.shared().set_on_drop(std::move(on_drop));
  }

  // EncodedInput::owner() of this engine's handles.
  const void* input_owner() const { return inputs_.shared().owner(); }
  bool shares_identical_inputs() const { return inputs_.shared().shares_identical(); }

  // Pins the thread that calls step() from here on where the executor's threads are. Call before its first step.
  void enter_thread() { executor_->enter_thread(); }

  // Returns what the request has so far, with finish_reason abort. Errors: no such request.
  StatusOr<RequestOutput> abort_request(const std::string& request_id);

  // Runs one step. Appends to `outputs` the requests that finished, and the unfinished pieces of streamed requests:
  // merge_delta of all pieces is the whole. Errors: the executor's; nothing is lost then. kInternal: requests wait, and
  // the scheduler has planned nothing for kMaxEmptySteps steps.
  Status step(std::vector<RequestOutput>& outputs);

  static constexpr int32_t kMaxEmptySteps = 1000;

  bool has_unfinished_requests() const { return scheduler_.has_unfinished() || num_awaiting_inputs() > 0; }
  size_t num_unfinished_requests() const { return requests_.size() + num_awaiting_inputs(); }
  // Requests that wait for rows from elsewhere: a step computes nothing for them.
  size_t num_awaiting_inputs() const { return remote_ == nullptr ? 0 : remote_->num_awaiting(); }
  // When to step at the latest, if it is not woken before (RemoteInputs::Options::wake). TimePoint::min(): at once;
  // max(): there is nothing to do.
  TimePoint next_step_time() const;

  struct Stats {
    int64_t num_steps = 0;
    int64_t num_prompt_tokens = 0;       // decoder rows of prompts, recomputed ones included
    int64_t num_encoder_tokens = 0;      // recomputed ones included
    int64_t num_encoder_cache_hits = 0;  // admissions of groups that found their cross KV and did not encode
    int64_t num_injected_tokens = 0;     // rows that came from elsewhere; taken again after preemption, too
    int64_t num_local_encodes = 0;       // items that a decode instance encoded itself
    int64_t num_long_encodes = 0;        // encodes that ran in slices of several steps
    int64_t num_reencodes = 0;           // encodes of an input whose earlier cross KV was evicted
    int64_t num_generated_tokens = 0;
    int64_t num_preemptions = 0;
    int64_t num_swaps_out = 0, num_swaps_in = 0;  // groups
    int64_t max_running_seqs = 0;
    double encode_seconds = 0, decode_seconds = 0, step_seconds = 0;
  };
  const Stats& stats() const { return stats_; }
  ExecutorStats executor_stats() const { return executor_->stats(); }
  const Executor& executor() const { return *executor_; }
  const StepTrace& trace() const { return trace_; }
  const Scheduler& scheduler() const { return scheduler_; }
  const RemoteInputs* remote_inputs() const { return remote_.get(); }  // null: it is no decode instance

 private:
  // The part of a request that has just ended, and its metrics.
  struct Continued {
    GroupId group_id;
    RequestMetrics metrics;
  };

  Status add(InputStage::Request request);
  Status add_ready(InputStage::Request request);
  void take_remote_inputs(std::vector<RequestOutput>& outputs);
  void end_without_rows(std::vector<RequestOutput>& outputs);
  void consume_inputs();
  Status add_group(InputStage::Request request, const Continued* continued = nullptr);
  Status reopen(InputStage::Request request, const RequestOutput& opened);
  bool plan();
  Status check_progress();
  Status execute();
  void update(std::vector<RequestOutput>& outputs);
  void count_inputs();
  void count_encode(const PlannedEncode& encode);
  void count_step(size_t num_outputs_before, const std::vector<RequestOutput>& outputs, double seconds);

  std::unique_ptr<Executor> executor_;
  const Clock& clock_;
  Scheduler scheduler_;
  InputStage inputs_;
  std::unique_ptr<RemoteInputs> remote_;    // null: all items are encoded here
  std::vector<InputStage::Request> ready_;  // of this step: their rows have come
  OutputProcessor output_processor_;
  EncodePacer encode_pacer_;
  absl::flat_hash_map<std::string, GroupId> requests_;
  StepPlan plan_;
  StepOutput output_;
  StepTrace trace_;
  Stats stats_;
  uint64_t next_group_id_ = 1;
  int32_t num_empty_steps_ = 0;  // in a row, while requests waited
};

}  // namespace transept
