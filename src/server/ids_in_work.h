// The ids that clients have chosen (X-Request-Id) for requests that are in work. A balancer or a second proxy may pass
// one on twice; the second request would have the first one's name in logs and in the fleet.
//
// Shared by the API's service and the responders of its requests. Thread-safe.
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "base/mutex.h"

namespace transept {

class IdsInWork final {
 public:
  // False: a request of this id is in work.
  bool begin(const std::string& id) {
    const MutexLock lock(mutex_);
    return ids_.insert(id).second;
  }
  void end(const std::string& id) {
    const MutexLock lock(mutex_);
    ids_.erase(id);
  }

 private:
  Mutex mutex_;
  absl::flat_hash_set<std::string> ids_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace transept
