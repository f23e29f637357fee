// For tests: an engine with the real scheduler and a fake model whose correct answer is known. The model stores tokens
// in the slots of the block pools, in the place of KV. The next token is a hash of the slots that it reads through the
// plan's tables; a token that is spliced has a word of its item's row. So a wrong table, a missing copy, a block used
// too early or a missing encode changes the text. Any specs: every table of an owner holds the same, which is checked.
// reference_texts() computes the correct text from the request alone. Not thread-safe.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "scheduling/scheduler.h"

namespace transept::testing {

inline constexpr int32_t kEos = 0;
inline constexpr int32_t kVocabSize = 11;

struct FakeRequest {
  std::vector<int32_t> encoder = {};  // ids of the one item that is crossed; empty: none, or `items`
  std::vector<int32_t> decoder = {};
  SamplingParams params = {};
  std::optional<ContentDigest> encoder_digest = std::nullopt;  // of `encoder`; unset: it is not shared
  std::vector<EncoderItem> items = {};                         // instead of `encoder`; shared if they have digests

  std::vector<EncoderItem> all_items() const;
};

// One text (generated tokens) per sequence, in order of index; beams: in order of rank.
using Texts = std::vector<std::vector<int32_t>>;

// Decodes one request without blocks and without a batch.
Texts reference_texts(const FakeRequest& request);

class FakeModel final {
 public:
  explicit FakeModel(const BlockSpaceManager::Options& options);

  // Hashes of each sampled sequence's last row.
  using States = std::map<SeqId, uint64_t>;
  // Executes a plan. CHECKs that the slots hold the right tokens.
  States execute(const SchedulerOutputs& plan);
  // The same where plans overlap, as on the first stage of a pipeline: a plan's rows are computed at once, and what its
  // encodes write comes when it ends. REQUIRES: no long encodes.
  States begin(const SchedulerOutputs& plan);
  void end(const SchedulerOutputs& plan);

  // Sets the positions of a long encode that each step computes.
  void set_pace(size_t num_positions) { pace_ = num_positions; }
  // Whether the last plan's long encode has ended.
  bool long_encode_ended() const { return long_encode_ended_; }

  int64_t num_encodes() const { return num_encodes_; }
  int64_t num_dropped_encodes() const { return num_dropped_encodes_; }
  int64_t num_copied_blocks() const { return num_copied_blocks_; }
  int64_t num_spliced_rows() const { return num_spliced_rows_; }

 private:
  using Slots = std::vector<uint64_t>;
  void apply(const BlockMoves& moves);
  void encode(const PlannedEncode& encode, size_t begin, size_t end);
  void encode_long(const LongEncode& encode);
  void encode_all(const SchedulerOutputs& plan);
  States compute_rows(const SchedulerOutputs& plan);
  void write_rows(const SequenceGroupMetadata& group);
  void splice(const PlannedSplice& splice, const SequenceGroupMetadata& group);
  uint64_t read(const SequenceGroupMetadata& group, size_t seq_idx);
  using Tables = std::span<const BlockTable>;  // of one owner: one of each of its specs
  static Tables tables_of(const SequenceGroupMetadata& group, size_t seq_idx);
  void write(TableOwner owner, Tables tables, size_t position, uint64_t word);
  uint64_t read(TableOwner owner, Tables tables, size_t position);

  std::array<std::vector<size_t>, kNumTableOwners> tokens_per_block_;  // of each spec of each owner
  size_t block_size_ = 0;                                              // words: the most of them
  Slots device_;
  Slots host_;
  size_t pace_ = 3;
  LongEncode long_encode_;  // in progress, if it runs
  size_t num_encoded_ = 0;  // positions of long_encode_
  bool long_encode_ended_ = false;
  int64_t num_encodes_ = 0;
  int64_t num_dropped_encodes_ = 0;
  int64_t num_copied_blocks_ = 0;
  int64_t num_spliced_rows_ = 0;
};

class FakeEngine final {
 public:
  FakeEngine(const Scheduler::Options& options, const BlockSpaceManager::Options& block_options);
  FakeEngine(const FakeEngine&) = delete;  // the scheduler refers to the clock
  FakeEngine& operator=(const FakeEngine&) = delete;

  Status add(GroupId id, const FakeRequest& request);
  bool abort(GroupId id);
  // Runs one step, the oldest of as many as can begin; returns false if there was nothing to do. results() has the
  // texts of groups that ended.
  bool step();
  // The two halves of a step: planning; execution and update of the oldest in flight. Calls between them happen in the
  // middle of a step.
  bool begin_step();
  bool finish_step();

  // That begun last.
  const SchedulerOutputs& plan() const { return steps_[newest_].plan; }
  // Of those in flight, oldest first.
  const SchedulerOutputs& plan_in_flight(int32_t i) const {
    return steps_[(oldest_ + static_cast<size_t>(i)) % steps_.size()].plan;
  }
  // The executor has failed: Scheduler::abandon_plans().
  void lose_steps() { scheduler_.abandon_plans(); }
  const std::map<GroupId, Texts>& results() const { return results_; }
  Scheduler& scheduler() { return scheduler_; }
  FakeModel& model() { return model_; }
  FakeClock& clock() { return clock_; }
  // For prompt_logprobs: the rows of each group's prompt whose logits were returned, in order.
  const std::map<GroupId, std::vector<int32_t>>& prompt_rows() const { return prompt_rows_; }

 private:
  struct Step {
    SchedulerOutputs plan;
    FakeModel::States states;  // where several may be in flight
  };

  bool has_several_steps() const { return steps_.size() > 1; }
  void update(const SequenceGroupMetadata& metadata, const std::map<SeqId, uint64_t>& sampled);
  void update_samples(SequenceGroup& group, const std::map<SeqId, uint64_t>& sampled);
  void update_beams(SequenceGroup& group, const std::map<SeqId, uint64_t>& sampled);
  void append(SequenceGroup& group, Sequence& seq, int32_t token);

  FakeClock clock_;
  Scheduler scheduler_;
  FakeModel model_;
  std::vector<Step> steps_;  // a ring; those in flight begin with the oldest
  size_t oldest_ = 0, newest_ = 0;
  std::map<GroupId, Texts> results_;
  std::map<GroupId, std::vector<int32_t>> prompt_rows_;
  std::map<GroupId, std::vector<SeqId>> beams_;  // best first
};

}  // namespace transept::testing
