// Threads for the tasks of live sessions, which begin in the order of post(). Owned by a LiveHost. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace transept {

class LiveWorkers final {
 public:
  explicit LiveWorkers(int num_threads);
  ~LiveWorkers() { stop(); }
  LiveWorkers(const LiveWorkers&) = delete;
  LiveWorkers& operator=(const LiveWorkers&) = delete;

  // Queues a task, which must not throw. After stop() it is dropped.
  void post(std::function<void()> task);
  // Runs what is queued, and joins the threads. Idempotent. REQUIRES: not called from a task.
  void stop();

 private:
  std::function<void()> take();  // waits for a task; null: stopped

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace transept
