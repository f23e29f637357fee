// What the threads of one download share: whether to go on, and how much has come. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/mutex.h"

namespace transept {

class FetchControl final {
 public:
  // `on_progress` is called with the bytes that are there and those that there will be, by one thread at a time.
  using OnProgress = std::function<void(int64_t done, int64_t total)>;

  explicit FetchControl(OnProgress on_progress = nullptr) : on_progress_(std::move(on_progress)) {}

  void add_total(int64_t bytes) { total_ += bytes; }
  // Negative: bytes that have to come again.
  void add_done(int64_t bytes) {
    done_ += bytes;
    if (!on_progress_) return;
    const MutexLock lock(mutex_);
    on_progress_(done_, total_);
  }

  // Bytes of files that the hub has sent, those that had to come again twice.
  void add_received(int64_t bytes) { received_ += bytes; }
  int64_t received() const { return received_; }

  // Ends the waits of all threads. Their transfers end with the next bytes.
  void stop() {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
    stopped_.notify_all();
  }
  bool is_stopped() const { return is_stopped_; }
  // Returns false if stop() ended the wait.
  bool wait(std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    const MutexLock lock(mutex_);
    while (!is_stopped_ && std::chrono::steady_clock::now() < end) stopped_.wait_until(mutex_, end);
    return !is_stopped_;
  }

 private:
  const OnProgress on_progress_;
  std::atomic<int64_t> done_ = 0, total_ = 0, received_ = 0;
  std::atomic<bool> is_stopped_ = false;
  Mutex mutex_;  // of the condition alone: no wait misses is_stopped_
  CondVar stopped_;
};

}  // namespace transept
