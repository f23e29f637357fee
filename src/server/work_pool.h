// Threads that do what may take a while (parsing, tokenising, decoding media, building answers), so that I/O threads
// never do. First come, first served; but what is long keeps away from some of the threads, so that what is short never
// waits for it alone. Thread-safe.
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
  // `num_for_short` of the threads (fewer than all) do no long tasks.
  explicit WorkPool(int num_threads, int num_for_short = 0);
  ~WorkPool() { stop(); }
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  enum class Length { kShort, kLong };
  // Never blocks. A task may post further ones. After stop() it runs at once, on the calling thread.
  void post(std::function<void()> task, Length length = Length::kShort);
  // Does what is posted, then ends the threads. Idempotent; not from a task.
  void stop();
  size_t num_waiting() const;

 private:
  struct Task {
    std::function<void()> run;
    uint64_t number = 0;  // the order of their coming
  };

  // Threads that do the same kinds of tasks, those of them that sleep.
  struct Sleepers {
    CondVar changed;
    int num_threads = 0;
  };

  void run(bool does_long);
  std::function<void()> take(bool does_long);  // null: the end
  void wake_some() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::deque<Task>* next(bool does_long) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // null: there is nothing to do

  mutable Mutex mutex_;
  Sleepers for_short_ ABSL_GUARDED_BY(mutex_), for_all_ ABSL_GUARDED_BY(mutex_);
  std::deque<Task> short_ ABSL_GUARDED_BY(mutex_), long_ ABSL_GUARDED_BY(mutex_);
  uint64_t num_posted_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace transept
