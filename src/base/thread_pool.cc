#include "base/thread_pool.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <chrono>
#include <limits>
#include <utility>

#include "base/caller_distance.h"
#include "base/check.h"
#include "base/cpus.h"
#include "base/shared_processor.h"

namespace transept {
namespace {

// About 50 us of waiting on current processors: longer than the gaps inside a step, shorter than anybody's patience
// with a busy core while the engine is idle.
constexpr int kSpins = 2000;
// Beside a busy neighbour time that is spun away is missing later: a worker sleeps sooner.
constexpr int kSpinsWhenShared = 600;
// On an oversubscribed machine a spinning thread keeps the one that it waits for off the processor.
constexpr int kSpinsBeforeYield = 1000;

inline void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// std::atomic's wait and notify would do, but its wait calls sched_yield() before it sleeps, and Linux takes that for
// the rest of the thread's turn: beside a busy neighbour a worker lost 4 ms at every pause of a step.
void wait_while_equal(std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

}  // namespace

ThreadPool::ThreadPool(int num_threads, std::vector<int> cpus)
    : cpus_(std::move(cpus)), shares_(static_cast<size_t>(num_threads)), num_used_(static_cast<uint32_t>(num_threads)) {
  CHECK(cpus_.empty() || static_cast<int>(cpus_.size()) == num_threads, "a processor for each thread, or none");
  for (int i = 1; i < num_threads; ++i) {
    workers_.emplace_back([this, i] { work(i); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  use_threads(max_threads());
  begin_epoch();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::use_threads(int n) {
  CHECK(n >= 1 && n <= max_threads(), n, " threads of ", max_threads());
  const bool wakes = n > num_threads();
  num_used_.store(static_cast<uint32_t>(n), std::memory_order_seq_cst);
  if (wakes) wake_all(num_used_);
}

void ThreadPool::parallel_for(int64_t num_tasks, FunctionRef<void(int64_t, int)> fn) {
  if (num_tasks <= 0) return;
  if (pauser_ != nullptr) return run_paused(num_tasks, fn);
  run(0, num_tasks, fn);
  num_tasks_done_ += num_tasks;
}

// In pieces of as many tasks as the pauser leaves: how far a call gets depends on the pauser alone, and not on threads.
void ThreadPool::run_paused(int64_t num_tasks, FunctionRef<void(int64_t, int)> fn) {
  for (int64_t begin = 0; begin < num_tasks && !pauser_->is_dropped();) {
    const int64_t count = std::min(num_tasks - begin, pauser_->num_tasks_left());
    if (count <= 0) {
      pauser_->pause();
      continue;
    }
    run(begin, begin + count, fn);
    pauser_->count(count);
    num_tasks_done_ += count;
    begin += count;
  }
}

// Tasks [begin, end), of which there is one at least.
void ThreadPool::run(int64_t begin, int64_t end, FunctionRef<void(int64_t, int)> fn) {
  if (end - begin == 1 || num_threads() == 1) {
    for (int64_t task = begin; task < end; ++task) fn(task, 0);
    return;
  }
  job_ = &fn;
  caller_cpu_.store(cpus_.empty() ? sched_getcpu() : -1, std::memory_order_relaxed);
  hand_out(begin, end);
  joined_.store(0, std::memory_order_release);
  begin_epoch();
  run_tasks(0);
  // None joins any more; those that have are in their last tasks.
  joined_.fetch_or(kClosed, std::memory_order_acq_rel);
  for (int spins = 0; joined_.load(std::memory_order_acquire) != kClosed; ++spins) {
    if (spins < kSpinsBeforeYield) {
      pause();
    } else {
      std::this_thread::yield();
    }
  }
}

void ThreadPool::hand_out(int64_t begin, int64_t end) {
  const int64_t num_shares = num_threads(), count = end - begin;
  for (int64_t i = 0; i < num_shares; ++i) {
    Share& share = shares_[static_cast<size_t>(i)];
    share.next.store(begin + count * i / num_shares, std::memory_order_relaxed);
    share.end = begin + count * (i + 1) / num_shares;
  }
}

void ThreadPool::run_tasks(int thread) {
  const auto num_shares = static_cast<size_t>(num_threads());
  for (size_t i = 0; i < num_shares; ++i) {
    Share& share = shares_[(static_cast<size_t>(thread) + i) % num_shares];
    // Looked at first: a share that is done is not written to again.
    while (share.next.load(std::memory_order_relaxed) < share.end) {
      const int64_t task = share.next.fetch_add(1, std::memory_order_relaxed);
      if (task >= share.end) break;
      (*job_)(task, thread);
    }
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

void ThreadPool::begin_epoch() {
  // Either this thread sees the sleeper, or the sleeper's futex sees the new epoch.
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  if (num_sleeping_.load(std::memory_order_seq_cst) > 0) wake_all(epoch_);
}

void ThreadPool::wait_until_used(int thread) {
  while (true) {
    const uint32_t num_used = num_used_.load(std::memory_order_seq_cst);
    if (thread < static_cast<int>(num_used)) return;
    wait_while_equal(num_used_, num_used);
  }
}

// Returns an epoch after `seen`; `seen` itself if the thread is not used any more.
uint32_t ThreadPool::wait_for_epoch(int thread, uint32_t seen, int max_spins) {
  for (int spins = 0; spins < max_spins && is_used(thread); ++spins) {
    if (epoch_.load(std::memory_order_acquire) != seen) break;
    pause();
  }
  if (!is_used(thread)) return seen;
  while (epoch_.load(std::memory_order_acquire) == seen) {
    num_sleeping_.fetch_add(1, std::memory_order_seq_cst);
    wait_while_equal(epoch_, seen);
    num_sleeping_.fetch_sub(1, std::memory_order_relaxed);
  }
  return epoch_.load(std::memory_order_acquire);
}

// What a worker does about neighbours, between two calls.
class ThreadPool::NeighbourPolicy final {
 public:
  explicit NeighbourPolicy(int num_threads) : distance_(num_threads, num_available_cpus()) {}

  bool is_shared() const { return processor_.is_shared(); }

  // After a time in which the thread had nothing to do: what it has waited for a processor before says nothing of now.
  void forget() { processor_ = SharedProcessor(); }

  // `caller_cpu` -1: keep off none.
  void look(int caller_cpu) {
    const auto look_every = is_shared() ? kLookEveryWhenShared : kLookEvery;
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_at_ < look_every) return;
    looked_at_ = now;
    const auto rest = processor_.rest_at(times_.read());
    keep_distance(now.time_since_epoch(), caller_cpu);
    if (rest > SharedProcessor::Duration::zero()) std::this_thread::sleep_for(rest);
  }

 private:
  // Looking costs 0.7 to 2.3 us, of which the calls of a quiet machine should notice nothing. Rests need it often.
  static constexpr std::chrono::nanoseconds kLookEvery = std::chrono::milliseconds(1);
  static constexpr std::chrono::nanoseconds kLookEveryWhenShared = std::chrono::microseconds(100);

  void keep_distance(std::chrono::nanoseconds now, int caller_cpu) {
    if (!is_shared()) {
      distance_.reset();
    } else if (distance_.is_due(now)) {
      distance_.take(now, running_.count());
    }
    avoided_.set(distance_.keeps_off() ? caller_cpu : -1);
  }

  const ThreadTimes times_;
  SharedProcessor processor_;
  const RunningThreads running_;
  CallerDistance distance_;
  AvoidedCpu avoided_;
  std::chrono::steady_clock::time_point looked_at_ = std::chrono::steady_clock::now();
};

void ThreadPool::work(int thread) {
  if (!cpus_.empty()) pin_this_thread(cpus_[static_cast<size_t>(thread)]);
  NeighbourPolicy policy(max_threads());
  uint32_t seen = 0;
  while (true) {
    if (!is_used(thread)) {
      wait_until_used(thread);
      policy.forget();
    }
    const uint32_t epoch = wait_for_epoch(thread, seen, policy.is_shared() ? kSpinsWhenShared : kSpins);
    if (stopping_.load(std::memory_order_relaxed)) return;
    if (epoch == seen) continue;
    seen = epoch;
    if (!join()) continue;
    // Looked at within the call: it may be a later one than the epoch's, of fewer threads.
    if (is_used(thread)) run_tasks(thread);
    joined_.fetch_sub(1, std::memory_order_release);
    policy.look(caller_cpu_.load(std::memory_order_relaxed));
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
