#include "speech/live_workers.h"

#include <utility>

namespace transept {
namespace {

constexpr size_t kManyTasks = 8;  // so many are worth another thread

}  // namespace

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
  is_due_ = true;
  changed_.notify_one();
}

void LiveWorkers::post_soon(std::function<void()> task) {
  const MutexLock lock(mutex_);
  if (stopped_) return;
  tasks_.push_back(std::move(task));
  if (ticker_ != std::thread::id()) return;
  num_empty_ticks_ = 0;
  is_due_ = true;
  changed_.notify_one();
}

void LiveWorkers::hurry() {
  const MutexLock lock(mutex_);
  if (tasks_.empty()) return;
  is_due_ = true;
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
  while (!stopped_ && !(is_due_ && !tasks_.empty())) wait();
  if (tasks_.empty()) return nullptr;
  std::function<void()> task = std::move(tasks_.front());
  tasks_.pop_front();
  if (tasks_.empty()) is_due_ = false;
  if (tasks_.size() >= kManyTasks) changed_.notify_one();
  return task;
}

void LiveWorkers::wait() {
  is_due_ = false;  // nothing is queued, or may wait
  const bool is_ticker = ticker_ == std::thread::id() || ticker_ == std::this_thread::get_id();
  if (is_ticker) ticker_ = std::thread::id();
  if (!is_ticker || num_empty_ticks_ >= kMostEmptyTicks) return changed_.wait(mutex_);
  ticker_ = std::this_thread::get_id();
  if (changed_.wait_until(mutex_, std::chrono::steady_clock::now() + kTick)) return;
  is_due_ = !tasks_.empty();
  num_empty_ticks_ = is_due_ ? 0 : num_empty_ticks_ + 1;
}

}  // namespace transept
