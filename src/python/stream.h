// Requests in flight, and which of them have news for an event loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "capi/transept.hpp"
#include "python/handles.h"

namespace transept::python {

// Collects the keys of streams that became readable, and makes a descriptor readable. Thread-safe; engine threads call
// notify, which takes no GIL.
class Notifier final {
 public:
  // Throws std::runtime_error if the process has no descriptor left.
  Notifier();
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  int fileno() const { return descriptor_; }
  void notify(std::int64_t key);
  // Gives the keys since the last call, and makes the descriptor unreadable.
  std::vector<std::int64_t> take();

 private:
  const int descriptor_;
  Mutex mutex_;
  std::vector<std::int64_t> keys_ ABSL_GUARDED_BY(mutex_);
};

// A stream with what it must keep. One thread at a time, but for abort.
class RunningRequest final {
 public:
  RunningRequest(ModelPointer model, transept_request& request, std::shared_ptr<Notifier> notifier, std::int64_t key);

  // nullopt: nothing came in time. Lets signal handlers run. REQUIRES: the GIL.
  std::optional<transept::Result> next(std::optional<double> timeout_seconds);
  bool has_ended() const { return stream_->has_ended(); }
  void abort() { stream_->abort(); }

 private:
  struct Target {
    std::shared_ptr<Notifier> notifier;
    std::int64_t key = 0;
  };
  const ModelPointer model_;
  const std::unique_ptr<Target> target_;  // the stream's callback reads it until the stream is freed
  std::optional<transept::Stream> stream_;
};

}  // namespace transept::python
