// A pool of threads for tasks that may take a while (parsing, tokenising, decoding media, formatting answers), so that
// I/O threads never do them. Tasks run in the order of post(); but some threads take no long tasks, so that a short
// task never waits for long ones alone. Owned by Server. Thread-safe.
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
  // `num_for_short` of the threads take no long tasks. REQUIRES: num_for_short < num_threads, or no threads at all.
  explicit WorkPool(int num_threads, int num_for_short = 0);
  ~WorkPool() { stop(); }
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  enum class Length { kShort, kLong };
  // Queues a task, and does not wait for it. A task may post further ones. An exception of a task is logged, and other
  // tasks go on. After stop(), post() runs the task itself, on the calling thread.
  void post(std::function<void()> task, Length length = Length::kShort);
  // Runs all queued tasks, then joins the threads. Idempotent. REQUIRES: not called from a task.
  void stop();
  size_t num_waiting() const;

 private:
  struct Task {
    std::function<void()> run;
    uint64_t number = 0;  // in the order of post()
  };

  // The sleeping threads of one kind: those that take short tasks only, or all tasks.
  struct Sleepers {
    CondVar changed;
    int num_threads = 0;
  };

  void run(bool does_long);
  std::function<void()> take(bool does_long);  // waits for a task; null: the pool has stopped
  void wake_some() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::deque<Task>* next(bool does_long) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // null: no task to take

  mutable Mutex mutex_;
  Sleepers for_short_ ABSL_GUARDED_BY(mutex_), for_all_ ABSL_GUARDED_BY(mutex_);
  std::deque<Task> short_ ABSL_GUARDED_BY(mutex_), long_ ABSL_GUARDED_BY(mutex_);
  uint64_t num_posted_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace transept
