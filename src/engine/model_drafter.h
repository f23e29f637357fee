// Drafts of a second, smaller model over the target's vocabulary: the tokens that it likes best, edited as the
// request's are. All sequences of a step are drafted together: one step of the model for each place of their drafts, of
// which the first also feeds what the model has not seen of them.
//
// The model has a pool of its own. A sequence has a table there that follows its tokens: what was rejected is
// truncated, what is new is fed. Cross KV is found by the digest of the encoder's input, so sequences and requests
// share it as in the target's pool, and it is kept, limited in age and cleared as there. A model whose encoder is the
// target's has none of its own, and takes the target's rows. What finds no room, and what would delay others, is not
// drafted: nothing here waits, and nothing changes an answer (decision 61).
//
// Owned by the speculator. Not thread-safe (engine thread).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/recycled.h"
#include "kv/block_space_manager.h"
#include "rank/executor.h"
#include "rank/step_plan.h"
#include "scheduling/scheduler.h"

namespace transept {

// What an engine drafts with.
struct DraftModel {
  std::unique_ptr<Executor> executor;  // null: there is none
  bool shares_encoder = false;         // it has a decoder alone, and takes the rows of the target's encoder
};

class ModelDrafter final {
 public:
  // A sequence to draft.
  struct Ask {
    size_t group_idx = 0, seq_idx = 0;  // in SchedulerOutputs::groups, for the caller
    const SequenceGroup* group = nullptr;
    const Sequence* seq = nullptr;  // its last token is not fed yet
    int32_t max_tokens = 0;         // > 0
    std::vector<int32_t> draft;     // the result: at most so many

    void clear() { draft.clear(); }
  };

  // like: the target's, for what is kept of inputs and for debug runs. Borrows scheduler and clock. REQUIRES:
  // model.executor is not null, and its model takes the target's inputs and ids.
  ModelDrafter(DraftModel model, const BlockSpaceManager::Options& like, const Scheduler& scheduler,
               const Clock& clock);

  // Whether the model can have the group's input and a token of its sequences.
  bool may_draft(const SequenceGroup& group) const;
  // Whether take_rows() is to be called when the group's input was encoded.
  bool wants_rows() const { return shares_encoder_ && !is_broken_; }
  // The rows of the group's encoder input, [positions, width]. Their cross KV is written in begin_step().
  void take_rows(GroupId group_id, std::vector<float> rows);

  // Forgets the sequences that have ended or were preempted, and takes the rows that came. Call before propose(), in
  // every step.
  void begin_step();
  // Fills the drafts. One that the model has no room for, or whose input it has not got, stays empty. Of inputs that it
  // encodes itself it takes one a step. REQUIRES: may_draft() of each group, and max_num_seqs asks at most.
  void propose(Recycled<Ask>& asks);
  // What the steps of the last propose() took, but for encodes.
  double seconds() const { return seconds_; }

  void expire_cache() { blocks_.advance_to(clock_.now()); }
  TimePoint next_expiry() const { return blocks_.next_expiry(); }
  void clear_cache() { blocks_.clear_cache(); }
  void enter_thread() { executor_->enter_thread(); }

  // For tests.
  const Executor& executor() const { return *executor_; }
  const BlockSpaceManager& blocks() const { return blocks_; }
  size_t num_sequences() const { return states_.size(); }
  bool has(SeqId seq_id) const { return states_.contains(seq_id); }
  int64_t num_fed_tokens() const { return num_fed_tokens_; }  // rows of all steps

 private:
  // Of a sequence. `fed` are the tokens of its table: those of the sequence that were fed, then guesses.
  struct State {
    GroupId of_group;  // the target's
    GroupId group_id;  // this and the next: in blocks_
    SeqId seq_id;
    std::vector<int32_t> fed;
    int32_t num_known = 0;  // of `fed`, those that are the sequence's
    int64_t last_step = 0;  // that asked for it
  };
  struct Run {
    Ask* ask = nullptr;
    State* state = nullptr;
    int32_t most = 0;      // of the draft
    int32_t num_rows = 0;  // in the plan; 0: it is not in it
    int32_t row = -1;      // of plan_.rows; -1: none
  };
  struct Rows {
    GroupId group_id;
    std::vector<float> values;
  };

  const ExecutorInfo& info() const { return executor_->info(); }
  BlockSpaceManager::Request request_of(const SequenceGroup& group) const;
  State* state_of(const SequenceGroup& group, const Sequence& seq, const std::vector<float>* rows);
  void write_rows();
  bool write_cross(const SequenceGroup& group, const State& state, const std::vector<float>* rows);
  void follow(State& state, std::span<const int32_t> tokens);
  bool grow(const State& state, int32_t num_tokens);
  bool make_room();
  void drop(SeqId seq_id);
  void begin_runs(Recycled<Ask>& asks);
  bool plan_round();
  void plan_run(Run& run);
  void plan_row(const Run& run, int32_t row);
  void take_round();
  bool execute();

  std::unique_ptr<Executor> executor_;
  const bool shares_encoder_;
  const Scheduler& scheduler_;
  const Clock& clock_;
  BlockSpaceManager blocks_;
  absl::flat_hash_map<SeqId, std::unique_ptr<State>> states_;  // by the target's ids
  std::vector<Rows> rows_;                                     // that came since the last begin_step()
  std::vector<Run> runs_;
  std::vector<SeqId> gone_;
  std::vector<int32_t> generated_;
  StepPlan plan_;
  StepOutput output_;
  uint64_t next_id_ = 1;
  int64_t num_engine_steps_ = 0, num_fed_tokens_ = 0;
  int32_t num_encodes_left_ = 0;  // of this step
  double seconds_ = 0;
  bool is_broken_ = false;  // its executor has failed: it drafts no more
};

}  // namespace transept
