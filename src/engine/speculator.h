// Puts drafts into a step's plan, and learns from what became of them: which sequences, whose guesses, how many.
// Guesses come from the request's own draft, else by the engine's method (speculation/, model_drafter.h). A guess ends
// before a token that its own edits forbid, that ends the sequence, or that is no id; what fits into the step's spare
// budget and into blocks that none uses is run (Scheduler::add_drafts).
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
#include "engine/model_drafter.h"
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
  // Borrows the scheduler and the clock. blocks: the scheduler's. model: of DraftMethod::kModel; else empty.
  Speculator(const SpeculationOptions& options, const ModelSpec& spec, Scheduler& scheduler,
             const BlockSpaceManager::Options& blocks, DraftModel model, const Clock& clock);

  // Call when a group is added to the scheduler.
  void add_group(const SequenceGroup& group);
  // Adds drafts to the plan, before its rows are planned. No sequence of a prompt, of beams or of a score gets any. A
  // draft model runs for steps of decoding rows alone: no prompt waits for it.
  void draft(SchedulerOutputs& scheduled);
  // Adds the groups whose encoder rows the draft model takes to the plan's captures. Call after the rows were planned.
  void plan_captures(StepPlan& plan) const;
  // Takes these rows out of the step's output. Call when nothing else reads them any more.
  void take_rows(StepOutput& output);
  // Call after the step was executed and its tokens were appended.
  void count(const StepPlan& plan, const StepOutput& output, std::span<const OutputProcessor::DraftOutcome> outcomes,
             DraftStats& stats);
  ModelDrafter* model() const { return model_.get(); }  // null: no model drafts

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
  int32_t num_spare_tokens() const { return scheduler_.num_spare_tokens() - num_asked_; }
  DraftAsk ask_of(const SequenceGroup& group, const Sequence& seq) const;
  bool brings_draft(const SequenceGroup& group) const;  // of its own, which comes before the method's
  void draft_by_model(SchedulerOutputs& scheduled);
  void cut(const SequenceGroup& group, const Sequence& seq);
  void forget(std::span<const GroupId> gone);

  SpeculationOptions options_;
  Scheduler& scheduler_;
  int32_t vocab_size_;
  bool is_one_vocabulary_;                // the encoder's ids are the decoder's
  std::unique_ptr<Drafter> given_, own_;  // own_: null with DraftMethod::kGiven and kModel
  std::unique_ptr<ModelDrafter> model_;
  bool replaces_model_;  // SpeculationOptions::truth of a model: given_ speaks in its place
  DraftLength length_;
  Acceptance of_given_, of_own_;                     // of all sequences: what a new one begins with
  absl::flat_hash_map<GroupId, GroupState> groups_;  // those that may have drafts
  std::vector<int32_t> draft_;
  Recycled<ModelDrafter::Ask> asks_;  // of this step
  bool may_ask_ = false;              // the model, in this step
  int32_t num_wanted_ = 0;            // of the model, by the last propose()
  int32_t num_asked_ = 0;             // tokens of asks_
  std::vector<int32_t> generated_;    // and the drafts so far
  RowEdits edits_;
};

}  // namespace transept
