// Threads for the tasks of live sessions, which begin in the order of their posts. Owned by a LiveHost. Thread-safe.
//
// To wake a thread costs more than to hear a tenth of a second of silence. So tasks that may wait a little wake none:
// while there are such tasks, one thread looks for them every kTick.
#pragma once

#include <chrono>
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

  static constexpr auto kTick = std::chrono::milliseconds(20);
  static constexpr int kMostEmptyTicks = 50;  // then the thread sleeps until the next post

  // Queues a task, which must not throw. After stop() it is dropped.
  void post(std::function<void()> task);
  // The same, to begin within kTick.
  void post_soon(std::function<void()> task);
  // Has what is queued begin now.
  void hurry();
  // Runs what is queued, and joins the threads. Idempotent. REQUIRES: not called from a task.
  void stop();

 private:
  std::function<void()> take();                       // waits for a task; null: stopped
  void wait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // for a task, a tick or the end

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool is_due_ ABSL_GUARDED_BY(mutex_) = false;                    // what is queued begins now
  std::thread::id ticker_ ABSL_GUARDED_BY(mutex_);                 // none: no thread looks every kTick
  int num_empty_ticks_ ABSL_GUARDED_BY(mutex_) = kMostEmptyTicks;  // in a row
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace transept
