// Tracks which requests and handles have the same items: those with equal digests (core/encoder_item.h). The digests
// usually come with the items, computed on the caller's thread; then nothing is hashed or compared here.
//
// Every item is pinned while a request or handle has it. So its tables stay, while there is room, after the last
// running group has ended: for waiting requests (in the queue, or after a preemption by recompute) and for handles.
// What stays after the last pin is the block manager's to know (BlockSpaceManager::Options::cache_inputs).
//
// Owned by the engine. Not thread-safe (engine thread), except for the handles that it returns (encoded_input.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "base/status.h"
#include "core/prompt.h"
#include "engine/encoded_input.h"
#include "scheduling/scheduler.h"

namespace transept {

class SharedInputs final {
 public:
  // Borrows the scheduler. Without share_identical, only requests over the same handle share.
  SharedInputs(Scheduler& scheduler, bool share_identical);
  ~SharedInputs();
  SharedInputs(const SharedInputs&) = delete;
  SharedInputs& operator=(const SharedInputs&) = delete;

  // Pins the items of a group; computes the digests that are missing, with this salt. Returns
  // SequenceGroup::Init::shares_items; false: the group shares with none. REQUIRES: the group has no items here yet.
  bool attach(GroupId group_id, std::vector<EncoderItem>& items, std::string_view salt = {});
  // The same for a request over a handle, whose items replace `items`, in the places that these have in the prompt.
  // REQUIRES: owns(handle); `items` is empty, or there are as many.
  void attach(GroupId group_id, const EncodedInput& handle, std::vector<EncoderItem>& items);
  // Call when the group was refused or is gone. No-op if it has no items here.
  void detach(GroupId group_id);

  // Returns a new handle of these items.
  EncodedInput hold(std::vector<EncoderItem> items, std::optional<std::string> text, std::string_view salt = {});
  // Whether the handle is not empty and comes from this object.
  bool owns(const EncodedInput& handle) const { return handle.has_value() && handle.owner() == owner(); }
  // Unique while a handle of this object lives.
  const void* owner() const { return dropped_.get(); }
  bool shares_identical() const { return share_identical_; }
  // Forgets the handles whose last copies were dropped since the last call.
  void collect_dropped();
  // Sets the callback that runs on the thread that drops a handle's last copy, after the drop; null: none.
  void set_on_drop(std::shared_ptr<const std::function<void()>> on_drop);

  // Counts an encode of a group's item. Returns true if it was encoded before, has been in flight or held ever since,
  // and is encoded again because its tables were evicted or are on the host. False for a group without items here.
  bool count_encode(GroupId group_id, size_t item);

  size_t num_inputs() const { return inputs_.size(); }

 private:
  struct Input {
    int32_t num_users = 0;  // groups and handles
    bool was_encoded = false;
  };
  // Of each item, in order; then of the cross table, if several items are crossed.
  using Digests = absl::InlinedVector<ContentDigest, 2>;

  static Digests digests_of(std::span<const EncoderItem> items);
  ContentDigest next_alone();
  void add(GroupId group_id, Digests digests);
  void join(std::span<const ContentDigest> digests);
  void leave(const ContentDigest& digest);

  Scheduler& scheduler_;
  bool share_identical_;
  uint64_t num_alone_ = 0;
  absl::flat_hash_map<ContentDigest, Input> inputs_;
  absl::flat_hash_map<GroupId, Digests> groups_;
  std::shared_ptr<EncodedInput::DroppedPins> dropped_;
};

}  // namespace transept
