// Applies a step's tokens to their requests: appends, forks, detokenises, stops and reports. Owns the growing texts.
// Owned by the engine. Not thread-safe (engine thread).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "core/request_output.h"
#include "engine/beam_group.h"
#include "engine/output_text.h"
#include "engine/stream_deltas.h"
#include "rank/step_plan.h"
#include "scheduling/scheduler.h"
#include "text/tokenizer.h"

namespace transept {

class OutputProcessor final {
 public:
  // Borrows all three; `tokenizer` may be null (texts stay empty).
  // vocab_size: of the output layer.
  OutputProcessor(Scheduler& scheduler, const Tokenizer* tokenizer, const Clock& clock, int32_t vocab_size);

  // Call before the group is first scheduled. With `stream`, process() gives its tokens as they come (not for beams and
  // best_of, which are not settled before the end). `before`: metrics of an earlier part of the same request; its wait
  // and encode count as the request's.
  void add_group(const SequenceGroup& group, EncoderDecoderInputs inputs, bool stream = false,
                 const RequestMetrics& before = RequestMetrics());

  // Plans the rows to choose and to score for the groups of this plan. Row r of a drafted sequence is edited as if the
  // drafts before it were accepted.
  void plan_rows(StepPlan& plan);

  // What became of the drafts of a sequence.
  struct DraftOutcome {
    GroupId group_id;
    int32_t seq_index = 0;
    int32_t num_drafts = 0;    // that were run
    int32_t num_accepted = 0;  // that were right and before the sequence's end
    int32_t num_tokens = 0;    // that the sequence got
  };
  // Of the last process(); valid until the next.
  std::span<const DraftOutcome> draft_outcomes() const { return draft_outcomes_; }

  // Tokens of the last process() that no request got, as theirs were aborted.
  int64_t num_skipped_samples() const { return num_skipped_samples_; }

  // Call after the step was executed. Skips groups that were aborted since it was planned. Ends sequences, appends
  // finished requests to `outputs` and forgets them, and appends what is new of streamed requests. The finished output
  // of a stream, too, holds only what was not sent before.
  void process(const StepPlan& plan, const StepOutput& output, std::vector<RequestOutput>& outputs);

  // Returns what an aborted request has so far, in `output`. Returns false if there is no such group.
  bool abort(GroupId group_id, RequestOutput& output);

 private:
  struct SequenceState {
    OutputText text;
    std::vector<PositionLogprobs> logprobs;  // not sent yet
    std::vector<int32_t> alignments;         // not sent yet
    StreamCursor sent;
  };
  struct GroupState {
    EncoderDecoderInputs inputs;
    std::vector<std::optional<PositionLogprobs>> prompt_logprobs;
    std::vector<int32_t> prompt_alignments;
    double score = 0;
    std::optional<float> probe_logprob;
    std::shared_ptr<CrossAttentionWeights> cross_attention;  // of the rows so far
    int32_t num_captured_rows = 0;
    std::vector<float> encoder_output;
    TimePoint first_token{};
    double queue_s = -1;                       // of an earlier part; this and the next two
    std::optional<int32_t> num_cached_tokens;  // as the pass found, whose own tokens the request then finds
    int32_t num_cached_media = 0;              // the same
    double encode_s = -1;
    double sliced_encode_s = 0;  // of a long encode, so far
    bool has_first_token = false;
    int32_t num_accepted_drafts = 0, num_rejected_drafts = 0;
    std::string error, error_param;
    absl::flat_hash_map<SeqId, SequenceState> sequences;  // not for beams
    std::unique_ptr<StopPrefixes> stream;                 // null: nothing is sent before the end
    std::unique_ptr<BeamGroup> beams;                     // null: no beam search
    std::vector<BeamGroup::Row> beam_rows;                // of this step
  };

  GroupState* find(GroupId group_id) const;
  void process_rows(const StepPlan& plan, const StepOutput& output);
  void end_group(const SequenceGroupMetadata& metadata, const StepOutput& output, GroupState& state,
                 std::vector<RequestOutput>& outputs);
  void plan_group(const SequenceGroup& group, const GroupState& state, size_t group_idx, StepPlan& plan);
  void plan_drafted(const SequenceGroup& group, const GroupState& state, size_t group_idx, size_t seq_idx,
                    StepPlan& plan);
  void plan_prompt(const SequenceGroup& group, const GroupState& state, size_t group_idx, size_t seq_idx,
                   StepPlan& plan) const;
  void plan_encoder_captures(StepPlan& plan) const;
  void plan_capture(const SequenceGroup& group, const GroupState& state, size_t group_idx, size_t seq_idx,
                    StepPlan& plan) const;
  void plan_sample(const SequenceGroup& group, const GroupState& state, const Sequence& seq,
                   std::span<const int32_t> generated, int32_t sample_idx, RowPlan& row) const;
  void process_drafted(const SequenceGroupMetadata& metadata, const SequenceData& data,
                       std::span<const RowSample> samples, const StepOutput& output, GroupState& state);
  void process_row(const RowPlan& row, const RowSample& sample, const StepOutput& output, SequenceGroup& group,
                   const SequenceData& data, GroupState& state);
  static void add_captured(const CapturePlan& capture, const CapturedRows& rows, const SequenceGroupMetadata& metadata,
                           GroupState& state);
  void append_token(SequenceGroup& group, Sequence& seq, const RowSample& sample, const StepOutput& output,
                    GroupState& state);
  void advance_beams(const StepOutput& output, SequenceGroup& group, GroupState& state);
  bool fail_without_token(const RowSample& sample, GroupState& state) const;
  void finish(SequenceGroup& group, Sequence& seq, FinishReason reason, SequenceState& state);
  SequenceState make_state(const SequenceGroup& group, const GroupState& state) const;
  RequestOutput make_output(const SequenceGroup& group, GroupState& state) const;
  std::vector<CompletionOutput> sampled_outputs(const SequenceGroup& group, GroupState& state) const;
  static bool has_news(const Sequence& seq, const GroupState& state);
  CompletionOutput unsent(const SequenceGroup& group, const Sequence& seq, GroupState& state) const;

  Scheduler& scheduler_;
  const Tokenizer* tokenizer_;
  const Clock& clock_;
  int32_t vocab_size_;
  std::vector<int32_t> drafted_;  // of a sequence: its output and its drafts
  std::vector<DraftOutcome> draft_outcomes_;
  int64_t num_skipped_samples_ = 0;
  absl::flat_hash_map<GroupId, std::unique_ptr<GroupState>> groups_;
};

}  // namespace transept
