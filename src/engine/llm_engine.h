// The engine: requests in, results out, one step at a time. `step()` schedules, executes and updates, and that is the
// architecture. The engine knows no files, flags or wire formats: its caller passes an executor, the scheduler's
// options, a tokenizer and a clock.
//
// Over a pipeline as many plans are in flight as it has stages: step() submits while a plan can be made, and collects
// the oldest. Of all else one is (Scheduler::Options::max_steps_in_flight), also of a pipeline if inputs come from
// elsewhere, encodes are cut, or a model drafts: these look at the step before.
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
#include "engine/speculator.h"
#include "engine/step_engine.h"
#include "engine/step_trace.h"
#include "rank/executor.h"
#include "scheduling/scheduler.h"
#include "text/tokenizer.h"

namespace transept {

class LLMEngine final : public StepEngine {
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
    SpeculationOptions speculation;
  };

  // Borrows the tokenizer (may be null) and the clock. draft_model: of DraftMethod::kModel; its model takes the inputs
  // and ids of the executor's.
  LLMEngine(const Options& options, std::unique_ptr<Executor> executor, const Tokenizer* tokenizer, const Clock& clock,
            DraftModel draft_model = {});
  // Collects the steps in flight: their plans are read until then.
  ~LLMEngine() override;

  // Of a request over remote items (core/encoder_item.h): it waits outside the scheduler until the rows of all are
  // here; if they do not come in time, its result says so. An open token of the decoder prompt is filled first, by a
  // separate pass over the same encoded input. Errors: a request id that is in flight; a request that could never fit
  // (both counts); those of InputStage::check.
  Status add_request(const std::string& request_id, EncoderDecoderInputs inputs, const SamplingParams& params,
                     const RequestOptions& options = {});

  // Returns a handle of the encoder side of `inputs` (encoded_input.h). Nothing is computed yet: the first request over
  // the handle encodes, and later ones find its cross KV. Errors: no encoder input; an input that could never fit (both
  // counts).
  StatusOr<EncodedInput> encode(const EncoderDecoderInputs& inputs) override;
  // Adds a request over a handle: `inputs` has the decoder side, and the handle replaces its encoder side. Of its items
  // counts where they stand in the prompt, if they are spliced. Errors: those of add_request and InputStage::take_held.
  Status add_request(const std::string& request_id, const EncodedInput& encoded, EncoderDecoderInputs inputs,
                     const SamplingParams& params, const RequestOptions& options = {});
  // Over a handle, or over the request's own items.
  Status add(Request request) override;

  int64_t clear_cache() override;
  void collect_dropped_inputs() override { inputs_.shared().collect_dropped(); }
  void set_on_input_dropped(std::shared_ptr<const std::function<void()>> on_drop) override {
    inputs_.shared().set_on_drop(std::move(on_drop));
  }

  const void* input_owner() const override { return inputs_.shared().owner(); }
  bool shares_identical_inputs() const override { return inputs_.shared().shares_identical(); }

  void start(std::function<void()> wake) override;

  StatusOr<RequestOutput> abort_request(const std::string& request_id) override;

  // Runs one step: the oldest of those in flight, after new ones were submitted. Appends to `outputs` the requests that
  // finished, and the unfinished pieces of streamed requests: merge_delta of all pieces is the whole. Errors: the
  // executor's; nothing is lost then. kInternal: requests wait, and the scheduler has planned nothing for
  // kMaxEmptySteps steps.
  Status step(std::vector<RequestOutput>& outputs) override;

  static constexpr int32_t kMaxEmptySteps = 1000;

  bool has_unfinished_requests() const { return scheduler_.has_unfinished() || num_awaiting_inputs() > 0; }
  size_t num_unfinished_requests() const override { return requests_.size() + num_awaiting_inputs(); }
  // Requests that wait for rows from elsewhere: a step computes nothing for them.
  size_t num_awaiting_inputs() const { return remote_ == nullptr ? 0 : remote_->num_awaiting(); }
  TimePoint next_step_time() const override;

  using Stats = EngineStats;
  void describe(EngineState& state) const override;
  Stats stats() const;
  ExecutorStats executor_stats() const { return executor_->stats(); }
  const Executor& executor() const { return *executor_; }
  const StepTrace& trace() const { return trace_; }
  const Scheduler& scheduler() const { return scheduler_; }
  const ModelDrafter* model_drafter() const { return speculator_.model(); }  // null: no model drafts
  const RemoteInputs* remote_inputs() const { return remote_.get(); }        // null: it is no decode instance

 private:
  // The part of a request that has just ended, and its metrics.
  struct Continued {
    GroupId group_id;
    RequestMetrics metrics;
  };

  Status add_checked(Request request);
  Status add_ready(Request request);
  void take_remote_inputs(std::vector<RequestOutput>& outputs);
  bool look_for_rows(const StepPlan& plan, std::vector<RequestOutput>& outputs);
  void encode_here(const std::string& request_id);
  void end_group(const std::string& request_id, const Status& why, std::vector<RequestOutput>& outputs);
  void consume_inputs(const StepPlan& plan);
  Status add_group(InputStage::Request request, const Continued* continued = nullptr);
  Status reopen(InputStage::Request request, const RequestOutput& opened);
  static Scheduler::Options scheduler_options(const Options& options, bool has_draft_model);
  Status submit_all(std::vector<RequestOutput>& outputs);
  bool make_plan(StepPlan& plan);
  Status check_progress();
  Status abandon(const Status& why);
  void update(const StepPlan& plan, std::vector<RequestOutput>& outputs);
  void count_inputs(const StepPlan& plan);
  void count_encode(const PlannedEncode& encode);
  void count_step(const StepPlan& plan, size_t num_outputs_before, const std::vector<RequestOutput>& outputs,
                  double seconds);

  std::unique_ptr<Executor> executor_;
  const Clock& clock_;
  Scheduler scheduler_;
  InputStage inputs_;
  std::unique_ptr<RemoteInputs> remote_;    // null: all items are encoded here
  std::vector<InputStage::Request> ready_;  // of this step: their rows have come
  std::vector<RemoteInputs::Lost> lost_;    // of this step: their rows will not come
  OutputProcessor output_processor_;
  Speculator speculator_;
  EncodePacer encode_pacer_;
  absl::flat_hash_map<std::string, GroupId> requests_;
  std::vector<StepPlan> plans_;  // a ring, of as many as may be in flight
  size_t oldest_plan_ = 0;       // of plans_; those in flight begin with it
  StepOutput output_;
  StepTrace trace_;
  Stats stats_;
  uint64_t next_group_id_ = 1;
  int32_t num_empty_steps_ = 0;  // in a row, while requests waited
  bool waits_for_rows_ = false;  // the last step had nothing to do but to wait for rows that were asked for
};

}  // namespace transept
