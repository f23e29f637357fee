#include "server/work_pool.h"

#include <exception>
#include <utility>

#include "base/log.h"

namespace transept {

WorkPool::WorkPool(int num_threads) {
  for (int i = 0; i < num_threads; ++i) threads_.emplace_back([this] { run(); });
}

void WorkPool::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (!stop_) {
      tasks_.push_back(std::move(task));
      changed_.notify_one();
      return;
    }
  }
  task();
}

void WorkPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

size_t WorkPool::num_waiting() const {
  const std::lock_guard lock(mutex_);
  return tasks_.size();
}

void WorkPool::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    // A task that finds no memory is given up, and with it its request (its Responder answers 500): the others go on.
    try {
      task();
    } catch (const std::exception& exception) {
      log_error("a task was given up: ", exception.what());
    }
    task = nullptr;  // what it holds goes before the lock comes back
    lock.lock();
  }
}

}  // namespace transept
