// A pool of compute threads; a model runner owns one. parallel_for is fork and join: workers spin while calls follow
// each other, and sleep after some 50 us without one. The join waits for no worker that has not started, since the
// other threads take its tasks. Beside a busy neighbour a worker rests between calls instead of losing its processor in
// the middle of a task (base/shared_processor.h), and keeps off the caller's processor (base/caller_distance.h).
//
// One thread at a time may use the pool (the engine thread, or the SlicedCall that it runs). Tasks must not call
// parallel_for.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/function_ref.h"

namespace transept {

class ThreadPool final {
 public:
  // Pauses calls of parallel_for between tasks (SlicedCall). The thread in parallel_for calls every function, while no
  // task runs.
  class Pauser {
   public:
    virtual ~Pauser() = default;
    // Returns the number of tasks that may run before the next pause.
    virtual int64_t num_tasks_left() const = 0;
    // Called after `num_tasks` tasks, at most num_tasks_left().
    virtual void count(int64_t num_tasks) = 0;
    // Called when none is left. Returns when more may run, or when the call is dropped.
    virtual void pause() = 0;
    // True: the call skips its remaining tasks.
    virtual bool is_dropped() const = 0;
  };

  // Starts num_threads - 1 workers: num_threads counts the calling thread. Pins each worker to its processor of `cpus`,
  // which has one for each thread; the first is the caller's (pin_caller()). Empty: the system places threads.
  // REQUIRES: num_threads >= 1; `cpus` empty or of that size.
  explicit ThreadPool(int num_threads, std::vector<int> cpus = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The threads that calls use.
  int num_threads() const { return static_cast<int>(num_used_.load(std::memory_order_relaxed)); }
  // The threads that it has; calls use all of them unless use_threads() says otherwise.
  int max_threads() const { return static_cast<int>(shares_.size()); }
  // Later calls use the first `n` threads. The others sleep at once, on processors that may be wanted elsewhere. Call
  // it on the thread of parallel_for, outside of a call. REQUIRES: 1 <= n <= max_threads().
  void use_threads(int n);
  // Pins the calling thread, which should be the one that calls parallel_for, to the first processor. No effect without
  // processors, or if the system refuses.
  void pin_caller() const;

  // Calls fn(task, thread) for every task in [0, num_tasks), with thread in [0, num_threads()). Returns when all are
  // done; a dropped Pauser skips the rest. Each thread starts with an even share of neighbouring tasks, so that it
  // finds its own writes of the last call in its cache, and then helps the others. So the thread of a task is not
  // fixed, and results must not depend on it. `fn` must not throw. Allocates nothing.
  void parallel_for(int64_t num_tasks, FunctionRef<void(int64_t task, int thread)> fn);

  // For later calls of parallel_for; null: none. Borrowed.
  void set_pauser(Pauser* pauser) { pauser_ = pauser; }

  // Returns the number of tasks of all calls so far. Call it on the thread of parallel_for.
  int64_t num_tasks_done() const { return num_tasks_done_; }

 private:
  static constexpr uint32_t kClosed = uint32_t{1} << 31;

  class NeighbourPolicy;

  // The tasks [next, end) of one thread's share that no thread has taken yet.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void work(int thread);
  void begin_epoch();
  bool is_used(int thread) const { return thread < num_threads(); }
  void wait_until_used(int thread);
  uint32_t wait_for_epoch(int thread, uint32_t seen, int max_spins);
  bool join();
  void run(int64_t begin, int64_t end, FunctionRef<void(int64_t, int)> fn);
  void run_paused(int64_t num_tasks, FunctionRef<void(int64_t, int)> fn);
  void hand_out(int64_t begin, int64_t end);
  void run_tasks(int thread);

  const std::vector<int> cpus_;
  std::vector<std::thread> workers_;
  const FunctionRef<void(int64_t, int)>* job_ = nullptr;
  std::vector<Share> shares_;  // one per thread; a call deals its tasks out to those of the threads that it uses
  Pauser* pauser_ = nullptr;
  int64_t num_tasks_done_ = 0;
  alignas(64) std::atomic<uint32_t> epoch_{0};  // incremented for each call, and for the end
  std::atomic<uint32_t> num_used_;              // threads; changes while no call is in work
  std::atomic<int32_t> num_sleeping_{0};        // workers that wait in the kernel for the next epoch
  // The number of workers in the call. kClosed is set: none may join. job_ and shares_ change only while it is closed.
  alignas(64) std::atomic<uint32_t> joined_{kClosed};
  std::atomic<int> caller_cpu_{-1};  // where the last call was made; -1: of no interest, processors are given
  std::atomic<bool> stopping_{false};
};

// Returns the number of processors in the affinity of the calling thread; at least 1.
int num_available_cpus();

}  // namespace transept
