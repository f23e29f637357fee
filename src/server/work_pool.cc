#include "server/work_pool.h"

#include <exception>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace transept {

WorkPool::WorkPool(int num_threads, int num_for_short) {
  CHECK(num_for_short < num_threads || num_threads == 0);
  for (int i = 0; i < num_threads; ++i) {
    threads_.emplace_back([this, does_long = i >= num_for_short] { run(does_long); });
  }
}

void WorkPool::post(std::function<void()> task, Length length) {
  {
    const MutexLock lock(mutex_);
    if (!stop_) {
      (length == Length::kLong ? long_ : short_).push_back({std::move(task), ++num_posted_});
      // A thread of each kind that may do it, and no more: whoever finds it taken waits again.
      any_posted_.notify_one();
      if (length == Length::kShort) short_posted_.notify_one();
      return;
    }
  }
  task();
}

void WorkPool::stop() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    any_posted_.notify_all();
    short_posted_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

size_t WorkPool::num_waiting() const {
  const MutexLock lock(mutex_);
  return short_.size() + long_.size();
}

std::deque<WorkPool::Task>* WorkPool::next(bool does_long) {
  const bool has_long = does_long && !long_.empty();
  if (short_.empty()) return has_long ? &long_ : nullptr;
  return has_long && long_.front().number < short_.front().number ? &long_ : &short_;
}

void WorkPool::run(bool does_long) {
  while (true) {
    std::function<void()> task;  // what it holds goes without the lock
    {
      const MutexLock lock(mutex_);
      std::deque<Task>* tasks = next(does_long);
      for (; !stop_ && tasks == nullptr; tasks = next(does_long)) {
        (does_long ? any_posted_ : short_posted_).wait(mutex_);
      }
      if (tasks == nullptr) return;
      task = std::move(tasks->front().run);
      tasks->pop_front();
    }
    // A task that finds no memory is given up, and with it its request (its Responder answers 500): the others go on.
    try {
      task();
    } catch (const std::exception& exception) {
      log_error("a task was given up: ", exception.what());
    }
  }
}

}  // namespace transept
