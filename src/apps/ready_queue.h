// The requests that have news. The engine thread pushes them; a main thread that also waits for input takes them. Owned
// by the main thread.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace transept {

class ReadyQueue final {
 public:
  // Errors: the process has no file descriptor left.
  static StatusOr<std::unique_ptr<ReadyQueue>> create();
  ~ReadyQueue();
  ReadyQueue(const ReadyQueue&) = delete;
  ReadyQueue& operator=(const ReadyQueue&) = delete;

  // Any thread; never waits.
  void push(size_t index);

  // Takes all that were pushed since the last call. One thread.
  std::vector<size_t> take();
  // Waits until something was pushed, `fd` can be read (-1: none), or a signal came. Waits at most a tenth of a second,
  // so that a signal just before the call is not missed.
  void wait(int fd);

 private:
  explicit ReadyQueue(int event_fd) : event_fd_(event_fd) {}

  const int event_fd_;  // readable while indices_ is not empty
  Mutex mutex_;
  std::vector<size_t> indices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace transept
