// Runs a call in slices: the owner grants a number of tasks of the thread pool, and the call pauses when they are done.
// Long encodes run this way, so that no decode step waits for a whole encode. The call, its loops and its kernels know
// nothing of slices, and compute the same bits. Where it pauses depends on the granted numbers alone, never on a clock
// or on threads.
//
// The call has a thread of its own, only for its stack: either the owner or the call runs, never both, so one thread at
// a time uses the pool.
//
// Owned and used by one thread. A dropped call skips the tasks of the pool that are left and runs everything else to
// its end: it must tolerate results that were not computed, and its writes outside of tasks happen. The call must not
// throw.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <semaphore>
#include <thread>

#include "base/thread_pool.h"

namespace transept {

class SlicedCall final : private ThreadPool::Pauser {
 public:
  static constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

  // Borrows the pool. begin() starts the thread, at the first call. If the system gives none, the call runs whole on
  // the owner's thread, in its first run(), and the next begin() tries again.
  explicit SlicedCall(ThreadPool& pool) : pool_(pool) {}
  // Drops the call that is under way, and joins the thread.
  ~SlicedCall() override;
  SlicedCall(const SlicedCall&) = delete;
  SlicedCall& operator=(const SlicedCall&) = delete;

  // Sets the call; run() starts it. REQUIRES: !is_under_way().
  void begin(std::function<void()> call);

  // Runs `num_tasks` tasks of the call and the code between them. Returns true if the call has ended. REQUIRES:
  // is_under_way(), num_tasks > 0.
  bool run(int64_t num_tasks);

  // Ends the call without its remaining tasks. No effect if none is under way.
  void drop();

  bool is_under_way() const { return call_ != nullptr; }

 private:
  int64_t num_tasks_left() const override { return num_tasks_left_; }
  void count(int64_t num_tasks) override { num_tasks_left_ -= num_tasks; }
  void pause() override;
  bool is_dropped() const override { return is_dropped_; }

  void start_thread();
  void hand_over();
  void work();

  ThreadPool& pool_;
  std::function<void()> call_;  // null: no call is under way
  std::thread thread_;
  // The running thread owns everything below; the semaphores hand it over.
  std::binary_semaphore turn_of_call_{0}, turn_of_owner_{0};
  int64_t num_tasks_left_ = 0;
  bool has_ended_ = false;
  bool is_dropped_ = false;
  bool is_closing_ = false;
};

}  // namespace transept
