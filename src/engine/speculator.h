// Puts drafts into a step's plan, and learns from what became of them: which sequences, whose guesses, how many.
// Guesses come from the request's own draft, else by the engine's method (speculation/). A guess ends before a token
// that its own edits forbid, that ends the sequence, or that is no id; what fits into the step's spare budget and into
// blocks that none uses is run (Scheduler::add_drafts).
//
// Owned by the engine. Not thread-safe (engine thread).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/engine_state.h"
#include "engine/output_processor.h"
#include "rank/executor.h"
#include "rank/step_plan.h"
#include "scheduling/scheduler.h"
#include "speculation/draft_length.h"
#include "speculation/drafter.h"
#include "speculation/speculation_options.h"

namespace transept {

class Speculator final {
 public:
  // Borrows the scheduler.
  Speculator(const SpeculationOptions& options, const ModelSpec& spec, Scheduler& scheduler);

  // Call when a group is added to the scheduler.
  void add_group(const SequenceGroup& group);
  // Adds drafts to the plan, before its rows are planned. No sequence of a prompt, of beams or of a score gets any.
  void draft(SchedulerOutputs& scheduled);
  // Call after the step was executed and its tokens were appended.
  void count(const StepPlan& plan, const StepOutput& output, std::span<const OutputProcessor::DraftOutcome> outcomes,
             DraftStats& stats);

 private:
  struct SequenceState {
    DraftMemory given, own;
    Acceptance acceptance;
    bool is_given = false;  // the last drafts were the request's own
  };
  using GroupState = std::vector<SequenceState>;  // by Sequence::index()

  bool may_draft(const SequenceGroup& group) const;
  void draft_sequence(const SequenceGroup& group, size_t group_idx, size_t seq_idx, SchedulerOutputs& scheduled);
  void propose(const SequenceGroup& group, const Sequence& seq, int32_t num_seqs, SequenceState& state);
  void cut(const SequenceGroup& group, const Sequence& seq);
  void forget(std::span<const GroupId> gone);

  SpeculationOptions options_;
  Scheduler& scheduler_;
  int32_t vocab_size_;
  bool is_one_vocabulary_;                // the encoder's ids are the decoder's
  std::unique_ptr<Drafter> given_, own_;  // own_: null with DraftMethod::kGiven
  DraftLength length_;
  Acceptance of_given_, of_own_;                     // of all sequences: what a new one begins with
  absl::flat_hash_map<GroupId, GroupState> groups_;  // those that may have drafts
  std::vector<int32_t> draft_;
  std::vector<int32_t> generated_;  // and the drafts so far
  RowEdits edits_;
};

}  // namespace transept
