// What a connector's broker and transport call: frames of channels 0 to 2 become events, those of channel 3 go to the
// sinks, events of outputs that are sent pass while they are wanted. Shared with their callbacks, so that it outlives
// the connector; after stop() it does nothing. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "disagg/ec_sinks.h"
#include "disagg/frame_counts.h"
#include "disagg/peer_names.h"

namespace transept {

class EcIncoming final {
 public:
  // Borrows the broker, until stop(). `reply` sends a message, and returns at once. `secret` may be null.
  EcIncoming(Broker& broker, Duration grace, std::shared_ptr<const EcSecret> secret,
             std::function<void(const InstanceId& to, EcMessage)> reply)
      : secret_(secret), names_(broker, grace), sinks_(std::move(secret), counts_), reply_(std::move(reply)) {}

  void start(std::shared_ptr<EcInbox> inbox);
  void stop();

  // A frame of channel 0, 1 or 2, on the broker's thread.
  void take(EcChannel channel, std::span<const std::byte> frame);
  void on_path(bool is_away);
  void put(EcEvent event);

  // Sends of an input whose events are wanted: the last one that began.
  uint64_t begin_send(const EcInput& input);
  void end_send(const EcInput& input);
  void put_send(EcSenderEvent event, const EcKey& key, uint64_t send);

  EcSinks& sinks() { return sinks_; }
  PeerNames& names() { return names_; }
  FrameCounts& counts() { return counts_; }

 private:
  struct Send {
    uint64_t number = 0;
    TimePoint told_at = TimePoint::min();
  };

  void answer_other_version(std::span<const std::byte> frame);

  const std::shared_ptr<const EcSecret> secret_;
  FrameCounts counts_;
  PeerNames names_;
  EcSinks sinks_;
  Mutex mutex_;
  std::function<void(const InstanceId& to, EcMessage)> reply_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<EcInbox> inbox_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<EcInput, Send> sends_ ABSL_GUARDED_BY(mutex_);
  uint64_t num_sends_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace transept
