// Which requests have news: told by the engine thread, read by a main thread that also waits for input.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace transept {

class ReadyQueue final {
 public:
  // Errors: the process has no descriptor left.
  static StatusOr<std::unique_ptr<ReadyQueue>> create();
  ~ReadyQueue();
  ReadyQueue(const ReadyQueue&) = delete;
  ReadyQueue& operator=(const ReadyQueue&) = delete;

  // Any thread; never waits.
  void push(size_t index);

  // One thread. All that were pushed since the last call.
  std::vector<size_t> take();
  // Until something was pushed, `fd` can be read (-1: none), or a signal came; a tenth of a second at most, so that a
  // signal just before the call is not slept through.
  void wait(int fd);

 private:
  explicit ReadyQueue(int event_fd) : event_fd_(event_fd) {}

  const int event_fd_;  // readable while indices_ is not empty
  Mutex mutex_;
  std::vector<size_t> indices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace transept
