// A request in the scheduler: its decoder sequences (one at first, more after forks), its encoder input, its sampling
// parameters. Owned by the scheduler from add_seq_group until it is freed. Not thread-safe (engine thread).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/content_digest.h"
#include "base/ids.h"
#include "core/sampling_params.h"
#include "scheduling/sequence.h"

namespace transept {

class SequenceGroup final {
 public:
  enum class State : uint8_t { kWaiting, kRunning, kSwapped };

  struct Init {
    GroupId group_id{};
    std::string request_id{};
    SamplingParams params{};
    EncoderDecoderInputs inputs{};
    SeqId first_seq_id{};
    std::optional<ContentDigest> encoder_digest = std::nullopt;
    TimePoint arrival_time{};
    // An earlier part of the same request: a group that has finished and is not freed yet. This group takes its place
    // in the order of arrival.
    std::optional<GroupId> continues = std::nullopt;
  };

  // REQUIRES: inputs.prompt_token_ids is not empty.
  explicit SequenceGroup(const Init& init);

  GroupId group_id() const { return group_id_; }
  const std::string& request_id() const { return request_id_; }
  const SamplingParams& params() const { return params_; }
  TimePoint arrival_time() const { return arrival_time_; }
  // Place in the order of add_seq_group; that of the earlier part for a group that continues one.
  uint64_t arrival_index() const { return arrival_index_; }
  const std::optional<GroupId>& continues() const { return continues_; }
  State state() const { return state_; }

  // In order of index, at fixed addresses. Finished sequences stay until the group is freed; those dropped by
  // Scheduler::remove_sequence do not.
  const std::vector<std::unique_ptr<Sequence>>& seqs() const { return seqs_; }
  Sequence* find(SeqId id) const;  // null: no such sequence
  int32_t num_unfinished() const;
  bool is_finished() const { return num_unfinished() == 0; }

  const std::optional<Sequence>& encoder_seq() const { return encoder_seq_; }  // unset: a decoder-only group
  bool has_encoder() const { return num_encoder_tokens_ > 0; }
  // Positions of the encoder's output: slots of the cross table. 0: a decoder-only group.
  int32_t num_encoder_tokens() const { return num_encoder_tokens_; }
  const std::shared_ptr<const EncoderFeatures>& encoder_features() const { return encoder_features_; }  // null: ids
  const std::optional<ContentDigest>& encoder_digest() const { return encoder_digest_; }

  // Most sequences that may run concurrently from now on. Beam search: num_beams. Else SamplingParams::num_seqs() until
  // the group has forked, then the unfinished ones.
  int32_t max_running_seqs() const;
  int64_t max_tokens_per_seq() const;  // prompt + max_tokens

  TimePoint first_scheduled_time() const { return first_scheduled_time_; }
  bool was_scheduled() const { return was_scheduled_; }
  int32_t num_preemptions() const { return num_preemptions_; }

 private:
  friend class Scheduler;  // moves groups between states; others only read

  GroupId group_id_;
  std::string request_id_;
  SamplingParams params_;
  TimePoint arrival_time_;
  uint64_t arrival_index_ = 0;
  std::optional<GroupId> continues_;
  State state_ = State::kWaiting;
  std::vector<std::unique_ptr<Sequence>> seqs_;
  std::optional<Sequence> encoder_seq_;
  std::shared_ptr<const EncoderFeatures> encoder_features_;
  int32_t num_encoder_tokens_;
  std::optional<ContentDigest> encoder_digest_;
  int32_t next_index_ = 1;
  // A pending recompute of several sequences: the first one feeds fork_at_ common tokens, then the others fork from it.
  // 0: none pending.
  int32_t fork_at_ = 0;
  int32_t num_tail_blocks_ = 0;  // blocks that the sequences allocate after that fork
  bool was_scheduled_ = false;
  bool was_computed_ = false;  // a step with rows of this group was executed
  TimePoint first_scheduled_time_{};
  int32_t num_preemptions_ = 0;
};

}  // namespace transept
