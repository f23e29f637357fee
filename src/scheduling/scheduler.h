// Decides what a step computes. Every step: the running sequences first, then groups that come back from the host
// pool, then new groups in order of arrival (encode and prefill together), within three budgets: decoder tokens,
// encoder tokens, sequences. The scan stops at the first group that does not fit, so no group starves.
//
// There are no prefill steps and decode steps: a sequence has tokens, some of them are computed, and a step feeds the
// next ones. A prompt, one new token, the tail of a recomputed sequence are the same thing.
//
// Out of blocks: the last running group (by arrival) is preempted, by recompute or by swapping, so the oldest group
// always gets on; alone it always fits, because add_seq_group refuses what cannot.
//
// Groups whose encoder inputs have the same digest share one cross table (BlockSpaceManager): one of them encodes, in
// the step in which the first of the others decodes, or before. A group that shares is preempted by recompute.
//
// While any sequence decodes, new groups encode at most set_max_encoder_tokens_beside tokens per step. A group
// that wants more, and is first in a step, begins a long encode: it takes its blocks, and feeds no row until some later
// step has ended the encode. Other encodes wait behind it.
//
// Owned by the engine. Not thread-safe (engine thread). The life of a step:
//
//   scheduler.schedule(outputs);             execute(outputs);
//   scheduler.mark_computed(outputs, ended); sequence.append_token(...), fork_sequence(...), finish_sequence(...)
//   scheduler.free_finished_seq_groups();
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/status.h"
#include "kv/block_space_manager.h"
#include "scheduling/scheduler_outputs.h"
#include "scheduling/sequence_group.h"

namespace transept {

enum class PreemptionMode : uint8_t {
  kAuto,       // one sequence: recompute; several: swap
  kRecompute,  // always
  kSwap,       // always, unless the host pool is full or absent
};

class Scheduler final {
 public:
  struct Options {
    int32_t max_num_batched_tokens = 2048;  // decoder tokens a step
    int32_t max_num_encoder_tokens = 4096;  // encoder tokens a step
    int32_t max_num_seqs = 64;              // running sequences
    PreemptionMode preemption_mode = PreemptionMode::kAuto;

    // Errors: a budget below 1; fewer batched tokens than sequences (then not every running one could get on).
    Status validate() const;
  };

  // REQUIRES: both options are valid.
  Scheduler(const Options& options, const BlockSpaceManager::Options& block_options, const Clock& clock);

  // To the end of the waiting queue. Errors, with both counts: the worst case (cross blocks + sequences x
  // ceil((prompt + max_tokens) / block_size), nothing shared) exceeds the pool less its watermark; more sequences than
  // max_num_seqs; a longer encoder input than max_num_encoder_tokens.
  Status add_seq_group(std::unique_ptr<SequenceGroup> group);
  // Whether add_seq_group would take such a group.
  Status check_admission(int64_t num_encoder_tokens, int64_t max_tokens_per_seq, int64_t num_seqs) const;

  // In any state, between steps; all its blocks come back, and the group is gone. False: no such group.
  bool abort_seq_group(GroupId group_id);

  // From the next step on. Without it, or while no sequence decodes, only max_num_encoder_tokens counts.
  void set_max_encoder_tokens_beside(std::optional<int32_t> num_tokens) { max_encoder_tokens_beside_ = num_tokens; }

  // Plans a step into `outputs`, whose memory is used again. An empty plan: there is nothing to do, and it
  // need not be executed. What an earlier plan was to encode, and was not marked computed, is encoded again.
  void schedule(SchedulerOutputs& outputs);

  // The plan was executed: its rows are in the cache now. Call before tokens are appended. Groups that were aborted in
  // between are passed over. long_encode_ended: the plan's long encode did.
  void mark_computed(const SchedulerOutputs& outputs, bool long_encode_ended = false);

  // A new sequence that shares everything so far with `parent` (no block is taken until they part). For n > 1 and
  // beams, after the prefill was sampled and before tokens are appended. REQUIRES: a running group's sequence whose
  // tokens are all computed.
  Sequence& fork_sequence(SequenceGroup& group, SeqId parent);
  // The sequence ends; its blocks are freed; it stays in its group for the results.
  void finish_sequence(SequenceGroup& group, SeqId seq_id, FinishReason reason);
  // The same, and it is dropped (a beam that lost).
  void remove_sequence(SequenceGroup& group, SeqId seq_id);
  // The cross table of inputs with this digest stays, while there is room, when their last group has ended. Between
  // steps.
  void pin_input(const ContentDigest& digest) { blocks_.pin(digest); }
  void unpin_input(const ContentDigest& digest) { blocks_.unpin(digest); }

  // Frees groups whose sequences are all finished, with their cross tables. Pointers to them are gone then.
  void free_finished_seq_groups();

  SequenceGroup* find(GroupId group_id) const;  // null: none
  SeqId next_seq_id() { return SeqId(next_seq_id_++); }
  bool has_unfinished() const { return !groups_.empty(); }

  // In order of arrival.
  std::span<SequenceGroup* const> waiting() const { return waiting_; }
  std::span<SequenceGroup* const> running() const { return running_; }
  std::span<SequenceGroup* const> swapped() const { return swapped_; }
  const BlockSpaceManager& blocks() const { return blocks_; }
  const Options& options() const { return options_; }

  // The block manager's, and: each group is in the one queue of its state, in order, with tables where it must have
  // some and none where not.
  Status check_invariants() const;

 private:
  using Queue = std::vector<SequenceGroup*>;  // sorted by arrival

  struct Budget {  // what is left in this step
    int32_t tokens = 0;
    int32_t encoder_tokens = 0;
    int32_t seqs = 0;
    bool is_beside = false;  // a sequence decodes: encoder_tokens are those of set_max_encoder_tokens_beside
  };
  struct Rows {  // a sequence feeds its next `count` tokens
    Sequence* seq = nullptr;
    int32_t count = 0;
  };

  void schedule_running(Budget& budget, SchedulerOutputs& outputs);
  void schedule_swapped(Budget& budget, SchedulerOutputs& outputs);
  void schedule_waiting(Budget& budget, SchedulerOutputs& outputs);
  bool try_admit(SequenceGroup& group, Budget& budget, SchedulerOutputs& outputs);
  void limit_encodes(Budget& budget, const SchedulerOutputs& outputs) const;
  bool may_encode(const SequenceGroup& group, const Budget& budget, const SchedulerOutputs& outputs) const;
  void plan_long_encode(const Budget& budget, SchedulerOutputs& outputs);
  int32_t num_promised_blocks() const;
  BlockSpaceManager::Request admission_request(const SequenceGroup& group) const;
  void choose_rows(const SequenceGroup& group, int32_t max_rows);
  void plan(const SequenceGroup& group, Budget& budget, SchedulerOutputs& outputs);
  void plan_encoder(const SequenceGroup& group, SequenceGroupMetadata& metadata);
  void plan_encode(const SequenceGroup& group, Budget& budget, SchedulerOutputs& outputs);
  static void fill_encoder_input(const SequenceGroup& group, EncoderSequenceData& data, SchedulerOutputs& outputs);
  static void fill_sequence_data(const SequenceGroup& group, const Rows& rows, SequenceData& data);
  void fork_recomputed(SequenceGroup& group);
  void preempt_last(SchedulerOutputs& outputs);
  void to_waiting(SequenceGroup& group);
  void release_blocks(SequenceGroup& group);
  Status check_group(const SequenceGroup& group) const;

  static void insert_by_arrival(Queue& queue, SequenceGroup& group);
  Queue& queue_of(SequenceGroup::State state);

  Options options_;
  BlockSpaceManager blocks_;
  const Clock& clock_;
  absl::flat_hash_map<GroupId, std::unique_ptr<SequenceGroup>> groups_;
  Queue waiting_, running_, swapped_;
  SequenceGroup* long_encode_ = nullptr;  // a running group
  bool long_encode_has_begun_ = false;    // a step of it was executed
  std::optional<int32_t> max_encoder_tokens_beside_;
  std::vector<GroupId> finished_;
  std::vector<Rows> rows_;                             // of the group being planned
  std::vector<BlockSpaceManager::SlotRequest> slots_;  // that they want
  std::vector<std::unique_ptr<Sequence>> spare_seqs_;  // dropped, for their memory
  uint64_t next_arrival_ = 0;
  uint64_t next_seq_id_ = 1;
};

}  // namespace transept
