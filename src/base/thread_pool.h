// The one pool of compute threads. parallel_for is fork and join: a spinning barrier of well under a microsecond while
// steps follow each other, sleeping threads when nothing has come for a while. A worker that the system does not run
// just now is not waited for: the others do its tasks, so a busy machine slows a step down by its share and no more.
//
// Thread-safety: one thread at a time may call parallel_for (the engine thread); tasks may not call it again.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/function_ref.h"

namespace transept {

class ThreadPool final {
 public:
  // Lets calls of parallel_for stand still between tasks (SlicedCall). All functions are called by parallel_for's
  // thread, while no task runs.
  class Pauser {
   public:
    virtual ~Pauser() = default;
    // Tasks that may run before the next pause.
    virtual int64_t num_tasks_left() const = 0;
    // `num_tasks` were done, at most num_tasks_left().
    virtual void count(int64_t num_tasks) = 0;
    // None is left: returns when there are some again, or when the call is dropped.
    virtual void pause() = 0;
    // True: no task runs any more.
    virtual bool is_dropped() const = 0;
  };

  // num_threads counts the calling thread: 1 starts none. `cpus` are the processors that they are pinned to, one for
  // each; empty: the system moves them as it likes. The calling thread is pinned by pin_caller().
  explicit ThreadPool(int num_threads, std::vector<int> cpus = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }
  // For the thread that calls parallel_for from here on; nothing, if the pool was given no processors.
  void pin_caller() const;

  // Calls fn(task, thread) for every task in [0, num_tasks), thread in [0, num_threads()); returns when all are done.
  // Each thread begins with an even share of neighbouring tasks, so that what it wrote in one job it finds in its own
  // cache in the next, and then helps the others. So which thread runs which task is not fixed, and a task's result
  // must not depend on it. Allocates nothing.
  void parallel_for(int64_t num_tasks, FunctionRef<void(int64_t task, int thread)> fn);

  // Of the calls of parallel_for from here on; null: none. Borrowed.
  void set_pauser(Pauser* pauser) { pauser_ = pauser; }

  // Tasks of all calls of parallel_for so far. On parallel_for's thread.
  int64_t num_tasks_done() const { return num_tasks_done_; }

 private:
  static constexpr uint32_t kClosed = uint32_t{1} << 31;

  // Tasks [next, end) that no thread has taken yet, of those that a thread begins with.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void work(int thread);
  bool join();
  void run(int64_t begin, int64_t end, FunctionRef<void(int64_t, int)> fn);
  void run_paused(int64_t num_tasks, FunctionRef<void(int64_t, int)> fn);
  void hand_out(int64_t begin, int64_t end);
  void run_tasks(int thread);

  const std::vector<int> cpus_;
  std::vector<std::thread> workers_;
  const FunctionRef<void(int64_t, int)>* job_ = nullptr;
  std::vector<Share> shares_;  // of each thread
  Pauser* pauser_ = nullptr;
  int64_t num_tasks_done_ = 0;
  alignas(64) std::atomic<uint32_t> epoch_{0};  // one more for each job, and for the end
  // How many workers are in the job, or kClosed: none may join. The job's fields change only while it is closed.
  alignas(64) std::atomic<uint32_t> joined_{kClosed};
  std::atomic<bool> stopping_{false};
};

// Processors that this process may run on.
int num_available_cpus();

}  // namespace transept
