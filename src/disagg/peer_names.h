// Which instance an incarnation is, by the records of a broker, and which instances have gone. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "encoder_cache/broker.h"

namespace transept {

class PeerNames final {
 public:
  // Borrows the broker. A broker that was away has lost its records; for `grace` after its return an instance whose
  // record is missing has not gone.
  PeerNames(Broker& broker, Duration grace) : broker_(broker), grace_(grace) {}

  // Asks the broker about an incarnation that is unknown, but not more often than every 10 ms: strangers can make
  // incarnations up.
  std::optional<InstanceId> find(uint64_t incarnation);
  // Asks the broker. Returns those that were known and have no record any longer, or another process has their name.
  std::vector<InstanceId> refresh();
  void on_path(bool is_away);

 private:
  std::optional<InstanceId> known(uint64_t incarnation);

  Broker& broker_;
  const Duration grace_;
  Mutex mutex_;
  absl::flat_hash_map<uint64_t, InstanceId> names_ ABSL_GUARDED_BY(mutex_);
  std::vector<InstanceId> gone_ ABSL_GUARDED_BY(mutex_);  // that refresh() has not returned yet
  TimePoint asked_at_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();
  TimePoint grace_until_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();
  bool is_away_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace transept
