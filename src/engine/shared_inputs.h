// Which requests and handles have the same encoder input. It gives each input in flight a hash of its own: the keyed
// hash of its content, and where another content has that already (the contents are compared, always) a different one.
// So to the block manager, which shares cross tables by hash alone, equal hashes mean equal inputs.
//
// Every input is pinned while somebody has it: so its cross table stays, while there is room, for requests that wait
// (behind others, or after a preemption by recompute) and for handles, when the last that ran has ended.
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
  using HashContent = std::function<ContentHash(const EncoderContent&)>;  // word 3 is ours

  // Borrows the scheduler. Without share_identical only requests over a handle share, and over that one.
  SharedInputs(Scheduler& scheduler, bool share_identical);
  // For tests: with a hash that may collide.
  SharedInputs(Scheduler& scheduler, bool share_identical, HashContent hash);
  ~SharedInputs();
  SharedInputs(const SharedInputs&) = delete;
  SharedInputs& operator=(const SharedInputs&) = delete;

  // The group's hash, for SequenceGroup::Init; null: it shares with nobody. REQUIRES: the group has none yet.
  std::optional<ContentHash> attach(GroupId group_id, const EncoderContent& content);
  // The same for a request over a handle. REQUIRES: owns(handle).
  ContentHash attach(GroupId group_id, const EncodedInput& handle);
  // The group was refused, or is gone. Nothing, if it has no hash.
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
  // Called on whatever thread drops a handle's last copy, after the fact; null: nobody.
  void set_on_drop(std::shared_ptr<const std::function<void()>> on_drop);

  // A group with a hash encodes now. True: its input was encoded before, has been in flight or held ever since, and is
  // encoded again because its cross KV was given up or lies on the host.
  bool count_encode(GroupId group_id);

  size_t num_inputs() const { return inputs_.size(); }

 private:
  struct Input {
    std::shared_ptr<const EncoderContent> content;
    int32_t num_users = 0;  // groups and handles
    bool was_encoded = false;
  };

  ContentHash intern(const EncoderContent& content);
  ContentHash intern_alone(const EncoderContent& content);
  ContentHash attach(GroupId group_id, const ContentHash& hash);
  void add(const ContentHash& hash, const EncoderContent& content);
  void leave(const ContentHash& hash);

  Scheduler& scheduler_;
  bool share_identical_;
  HashContent hash_;
  uint64_t next_alone_ = 0;
  absl::flat_hash_map<ContentHash, Input> inputs_;
  absl::flat_hash_map<GroupId, ContentHash> groups_;
  std::shared_ptr<EncodedInput::DroppedPins> dropped_;
};

}  // namespace transept
