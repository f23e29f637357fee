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
      wake_some();
      return;
    }
  }
  task();
}

void WorkPool::stop() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    for_short_.changed.notify_all();
    for_all_.changed.notify_all();
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

// One thread for each kind of task at most. A thread that has taken a task wakes the next, if there are more: so nobody
// sleeps beside a task that it could do, and no task wakes a thread in vain.
void WorkPool::wake_some() {
  const bool short_is_seen_to = short_.empty() || for_short_.num_threads > 0;
  if (!short_.empty() && for_short_.num_threads > 0) for_short_.changed.notify_one();
  if ((!long_.empty() || !short_is_seen_to) && for_all_.num_threads > 0) for_all_.changed.notify_one();
}

std::function<void()> WorkPool::take(bool does_long) {
  const MutexLock lock(mutex_);
  Sleepers& sleepers = does_long ? for_all_ : for_short_;
  std::deque<Task>* tasks = next(does_long);
  ++sleepers.num_threads;
  for (; !stop_ && tasks == nullptr; tasks = next(does_long)) sleepers.changed.wait(mutex_);
  --sleepers.num_threads;
  if (tasks == nullptr) return nullptr;
  std::function<void()> task = std::move(tasks->front().run);
  tasks->pop_front();
  wake_some();
  return task;
}

void WorkPool::run(bool does_long) {
  // What a task holds goes without the lock.
  while (std::function<void()> task = take(does_long)) {
    // A task that finds no memory is given up, and with it its request (its Responder answers 500): the others go on.
    try {
      task();
    } catch (const std::exception& exception) {
      log_error("a task was given up: ", exception.what());
    }
  }
}

}  // namespace transept
