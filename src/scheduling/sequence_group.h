// A request in the scheduler: its decoder sequences (one at first, more after forks), its encoder items, its sampling
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
#include "core/prompt.h"
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
    // Whether its tables are shared with groups of equal items. Each item has a digest then.
    bool shares_items = false;
    TimePoint arrival_time{};
    // Lower is earlier: a level is a second of waiting, so a group comes before those of a higher level that were added
    // less than so many seconds before it, and waits for older ones.
    int32_t priority = 0;
    // What the KV of its decoder prompt depends on besides the prompt's ids: prefix_root(). Unset: its blocks are
    // neither remembered nor found.
    std::optional<ContentDigest> prefix_root = std::nullopt;
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
  int32_t priority() const { return priority_; }
  // The order of groups in the scheduler; of equal priority, that of arrival.
  bool comes_before(const SequenceGroup& other) const {
    return place_ != other.place_ ? place_ < other.place_ : arrival_index_ < other.arrival_index_;
  }
  const std::optional<GroupId>& continues() const { return continues_; }
  State state() const { return state_; }

  // In order of index, at fixed addresses. Finished sequences stay until the group is freed; those dropped by
  // Scheduler::remove_sequence do not.
  const std::vector<std::unique_ptr<Sequence>>& seqs() const { return seqs_; }
  Sequence* find(SeqId id) const;  // null: no such sequence
  int32_t num_unfinished() const;
  bool is_finished() const { return num_unfinished() == 0; }

  const std::vector<EncoderItem>& items() const { return items_; }
  const DecoderLayout& layout() const { return layout_; }
  bool shares_items() const { return shares_items_; }
  // Positions of each cross table: slots. 0: the group crosses nothing, and has none.
  int32_t num_cross_tokens() const { return num_cross_tokens_; }
  // Items before this one that are spliced: those whose own tables come before its own.
  size_t num_spliced_before(size_t item) const;
  // Whether some item is encoded elsewhere.
  bool has_remote_items() const { return has_remote_items_; }
  // Remote items before this one that are crossed alone: their rows have tables of their own behind those of spliced
  // ones, from admission until their cross KV is written.
  size_t num_remote_before(size_t item) const;
  // The digest of the cross tables or of an item's rows; unset: they are shared with none. Rows that come from
  // elsewhere are found by it.
  const std::optional<ContentDigest>& cross_digest() const { return cross_digest_; }
  std::optional<ContentDigest> rows_digest(size_t item) const;
  // Whether some item is not encoded yet. The group feeds no row until all are.
  bool awaits_items() const { return awaits_items_; }
  // It is in a plan that was not collected yet (Scheduler::Options::max_steps_in_flight).
  bool is_busy() const { return is_busy_; }

  // Most sequences that may run concurrently from now on. Beam search: num_beams. Else SamplingParams::num_seqs() until
  // the group has forked, then the unfinished ones.
  int32_t max_running_seqs() const;
  int64_t max_tokens_per_seq() const;  // prompt + max_tokens

  const std::optional<ContentDigest>& prefix_root() const { return prefix_root_; }
  // Tokens of both prompts that it did not compute, as others had: positions of items that were encoded, and rows of
  // the decoder's prompt. Of its first admission; later ones find its own.
  int32_t num_cached_tokens() const { return num_cached_tokens_; }
  int32_t num_cached_media() const { return num_cached_media_; }  // RequestMetrics::num_cached_media

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
  int32_t priority_;
  TimePoint place_{};  // when it was added, by the scheduler's clock, and a second later for each level of priority
  std::optional<GroupId> continues_;
  State state_ = State::kWaiting;
  std::vector<std::unique_ptr<Sequence>> seqs_;
  // Of an item: whether its rows of the cross tables are written. (Those of its own table: the block manager knows.)
  enum class ItemState : uint8_t { kUnwritten, kBegun, kWritten };
  std::vector<EncoderItem> items_;
  std::vector<ItemState> item_states_;
  DecoderLayout layout_;
  bool shares_items_;
  int32_t num_cross_tokens_;
  std::optional<ContentDigest> cross_digest_;
  std::optional<ContentDigest> prefix_root_;
  int32_t num_cached_tokens_ = 0, num_cached_media_ = 0;
  bool awaits_items_ = false;
  bool is_busy_ = false;
  bool is_aborted_ = false;  // and busy: it is freed when its plan was collected
  bool has_remote_items_ = false;
  bool holds_rows_ = false;  // it was admitted with tables of num_remote_before()
  bool has_rows_ = false;    // some item's rows may still lie in its table
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
