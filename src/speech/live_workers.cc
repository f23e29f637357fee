#include "speech/live_workers.h"

#include <utility>

namespace transept {

LiveWorkers::LiveWorkers(int num_threads) {
  for (int i = 0; i < num_threads; ++i) {
    threads_.emplace_back([this] {
      // What a task holds goes without the lock.
      while (const std::function<void()> task = take()) task();
    });
  }
}

void LiveWorkers::post(std::function<void()> task) {
  const MutexLock lock(mutex_);
  if (stopped_) return;
  tasks_.push_back(std::move(task));
  changed_.notify_one();
}

void LiveWorkers::stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

std::function<void()> LiveWorkers::take() {
  const MutexLock lock(mutex_);
  while (!stopped_ && tasks_.empty()) changed_.wait(mutex_);
  if (tasks_.empty()) return nullptr;
  std::function<void()> task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

}  // namespace transept
