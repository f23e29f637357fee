// A pool of threads for tasks that may take a while (parsing, tokenising, decoding media, formatting answers), so that
// I/O threads never do them. Tasks begin in the order of post(). Owned by Server. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace transept {

class WorkPool final {
 public:
  // Of the pool's threads. A low one leaves a processor to every other thread that wants it, but for a tenth.
  enum class Priority : uint8_t { kNormal, kLow };

  explicit WorkPool(int num_threads, Priority priority = Priority::kNormal);
  ~WorkPool() { stop(); }
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // Queues a task, and does not wait for it. A task may post further ones. An exception of a task is logged, and other
  // tasks go on. After stop(), post() runs the task itself, on the calling thread.
  void post(std::function<void()> task);
  // Runs all queued tasks, then joins the threads. Idempotent. REQUIRES: not called from a task.
  void stop();
  size_t num_waiting() const;

 private:
  void run(Priority priority);
  std::function<void()> take();  // waits for a task; null: the pool has stopped

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace transept
