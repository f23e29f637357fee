#include "base/thread_pool.h"

#include <sched.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <utility>

#include "base/check.h"
#include "base/cpus.h"

namespace transept {
namespace {

// About 50 us of waiting on current processors: longer than the gaps inside a step, shorter than anybody's patience
// with a busy core while the engine is idle.
constexpr int kSpins = 2000;
// On an oversubscribed machine a spinning thread keeps the one that it waits for off the processor.
constexpr int kSpinsBeforeYield = 1000;

inline void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int num_threads, std::vector<int> cpus) : cpus_(std::move(cpus)) {
  CHECK(cpus_.empty() || static_cast<int>(cpus_.size()) == num_threads, "a processor for each thread, or none");
  for (int i = 1; i < num_threads; ++i) {
    workers_.emplace_back([this, i] { work(i); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::parallel_for(int64_t num_tasks, FunctionRef<void(int64_t, int)> fn) {
  if (num_tasks <= 1 || workers_.empty()) {
    for (int64_t i = 0; i < num_tasks; ++i) fn(i, 0);
    return;
  }
  job_ = &fn;
  num_tasks_ = num_tasks;
  next_task_.store(0, std::memory_order_relaxed);
  joined_.store(0, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  run_tasks(0);
  // Nobody joins any more; those who have are in their last tasks.
  joined_.fetch_or(kClosed, std::memory_order_acq_rel);
  for (int spins = 0; joined_.load(std::memory_order_acquire) != kClosed; ++spins) {
    if (spins < kSpinsBeforeYield) {
      pause();
    } else {
      std::this_thread::yield();
    }
  }
}

void ThreadPool::run_tasks(int thread) {
  while (true) {
    const int64_t task = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (task >= num_tasks_) return;
    (*job_)(task, thread);
  }
}

bool ThreadPool::join() {
  uint32_t joined = joined_.load(std::memory_order_relaxed);
  while ((joined & kClosed) == 0) {
    if (joined_.compare_exchange_weak(joined, joined + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

// A processor that has gone away meanwhile costs the pinning, and nothing else.
void ThreadPool::pin_caller() const {
  if (!cpus_.empty()) pin_this_thread(cpus_[0]);
}

void ThreadPool::work(int thread) {
  if (!cpus_.empty()) pin_this_thread(cpus_[static_cast<size_t>(thread)]);
  uint32_t seen = 0;
  while (true) {
    for (int spins = 0; spins < kSpins && epoch_.load(std::memory_order_acquire) == seen; ++spins) pause();
    epoch_.wait(seen, std::memory_order_acquire);
    seen = epoch_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    if (!join()) continue;
    run_tasks(thread);
    joined_.fetch_sub(1, std::memory_order_release);
  }
}

int num_available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
  const unsigned hardware = std::thread::hardware_concurrency();
  return hardware > 0 ? static_cast<int>(hardware) : 1;
}

}  // namespace transept
