// Which requests and handles have the same encoder input: those whose digests are equal (core/encoder_features.h). The
// digest comes with the content, made on the caller's thread; nothing is hashed or compared here where it does.
//
// Every input is pinned while a request or a handle has it: so its cross table stays, while there is room, for requests
// that wait (behind others, or after a preemption by recompute) and for handles, when the last that ran has ended.
//
// An input is whatever determines the encoder's output: token ids, or the features of media.
//
// Owned by the engine. Not thread-safe (engine thread), but for the handles that it gives out (encoded_input.h).
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
  // Borrows the scheduler. Without share_identical only requests over a handle share, and over that one.
  SharedInputs(Scheduler& scheduler, bool share_identical);
  ~SharedInputs();
  SharedInputs(const SharedInputs&) = delete;
  SharedInputs& operator=(const SharedInputs&) = delete;

  // The group's digest, for SequenceGroup::Init; null: it shares with no group. REQUIRES: the group has none yet.
  std::optional<ContentDigest> attach(GroupId group_id, const EncoderContent& content);
  // The same for a request over a handle. REQUIRES: owns(handle).
  ContentDigest attach(GroupId group_id, const EncodedInput& handle);
  // The group was refused, or is gone. Nothing, if it has no digest.
  void detach(GroupId group_id);

  // A new handle of an input.
  EncodedInput hold(const EncoderContent& content, std::optional<std::string> text);
  // Whether the handle holds something, and comes from here.
  bool owns(const EncodedInput& handle) const { return handle.has_value() && handle.owner() == owner(); }
  // Never that of others while a handle of ours lives.
  const void* owner() const { return dropped_.get(); }
  bool shares_identical() const { return share_identical_; }
  // Forgets the handles whose last copies were dropped since the last call.
  void collect_dropped();
  // Called on the thread that drops a handle's last copy, afterwards; null: no call.
  void set_on_drop(std::shared_ptr<const std::function<void()>> on_drop);

  // A group with a digest encodes now. True: its input was encoded before, has been in flight or held ever since, and
  // is encoded again because its cross KV was given up or lies on the host.
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
