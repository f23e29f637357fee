#include "server/work_pool.h"

#include <sys/resource.h>

#include <exception>
#include <utility>

#include "base/log.h"

namespace transept {
namespace {

// Linux gives a thread 110 parts of a processor where one that is ten steps less nice has 1024.
constexpr int kLowerBy = 10;

// Of the calling thread alone, which is what Linux takes a process for here.
void lower_priority() { ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + kLowerBy); }

}  // namespace

WorkPool::WorkPool(int num_threads, Priority priority) {
  for (int i = 0; i < num_threads; ++i) {
    threads_.emplace_back([this, priority] { run(priority); });
  }
}

void WorkPool::post(std::function<void()> task) {
  {
    const MutexLock lock(mutex_);
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
    const MutexLock lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

size_t WorkPool::num_waiting() const {
  const MutexLock lock(mutex_);
  return tasks_.size();
}

std::function<void()> WorkPool::take() {
  const MutexLock lock(mutex_);
  while (!stop_ && tasks_.empty()) changed_.wait(mutex_);
  if (tasks_.empty()) return nullptr;
  std::function<void()> task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

void WorkPool::run(Priority priority) {
  if (priority == Priority::kLow) lower_priority();
  // What a task holds goes without the lock.
  while (std::function<void()> task = take()) {
    // A task that finds no memory is given up, and with it its request (its Responder answers 500): the others go on.
    try {
      task();
    } catch (const std::exception& exception) {
      log_error("a task was given up: ", exception.what());
    }
  }
}

}  // namespace transept
