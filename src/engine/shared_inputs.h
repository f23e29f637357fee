// Tracks which requests and handles have the same encoder input: those with equal digests (core/encoder_features.h).
// The digest usually comes with the content, computed on the caller's thread; then nothing is hashed or compared here.
//
// Every input is pinned while a request or handle has it. So its cross table stays, while there is room, after the last
// running group has ended: for waiting requests (in the queue, or after a preemption by recompute) and for handles.
//
// An input is what determines the encoder's output: token ids, or the features of media.
//
// Owned by the engine. Not thread-safe (engine thread), except for the handles that it returns (encoded_input.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
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

  // Returns the group's digest, for SequenceGroup::Init; nullopt: the group shares with none. REQUIRES: it has no
  // digest yet.
  std::optional<ContentDigest> attach(GroupId group_id, const EncoderContent& content);
  // The same for a request over a handle. REQUIRES: owns(handle).
  ContentDigest attach(GroupId group_id, const EncodedInput& handle);
  // Call when the group was refused or is gone. No-op if it has no digest.
  void detach(GroupId group_id);

  // Returns a new handle of an input.
  EncodedInput hold(const EncoderContent& content, std::optional<std::string> text);
  // Whether the handle is not empty and comes from this object.
  bool owns(const EncodedInput& handle) const { return handle.has_value() && handle.owner() == owner(); }
  // Unique while a handle of this object lives.
  const void* owner() const { return dropped_.get(); }
  bool shares_identical() const { return share_identical_; }
  // Forgets the handles whose last copies were dropped since the last call.
  void collect_dropped();
  // Sets the callback that runs on the thread that drops a handle's last copy, after the drop; null: none.
  void set_on_drop(std::shared_ptr<const std::function<void()>> on_drop);

  // Counts an encode of the group. Returns true if its input was encoded before, has been in flight or held ever since,
  // and is encoded again because its cross KV was evicted or is on the host. False for a group without digest.
  bool count_encode(GroupId group_id);

  size_t num_inputs() const { return inputs_.size(); }

 private:
  struct Input {
    std::shared_ptr<const EncoderContent> content;
    int32_t num_users = 0;  // groups and handles
    bool was_encoded = false;
  };

  ContentDigest intern(const EncoderContent& content);
  ContentDigest intern_alone(const EncoderContent& content);
  ContentDigest attach(GroupId group_id, const ContentDigest& digest);
  void add(const ContentDigest& digest, const EncoderContent& content);
  void leave(const ContentDigest& digest);

  Scheduler& scheduler_;
  bool share_identical_;
  uint64_t next_alone_ = 0;
  absl::flat_hash_map<ContentDigest, Input> inputs_;
  absl::flat_hash_map<GroupId, ContentDigest> groups_;
  std::shared_ptr<EncodedInput::DroppedPins> dropped_;
};

}  // namespace transept
