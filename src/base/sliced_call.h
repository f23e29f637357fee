// A call that runs in slices: its owner lets it do a number of tasks of the thread pool, then it stands still until the
// owner lets it do more. What a long encode needs, so that no decode step waits for the whole of it: the call itself,
// its loops and its kernels know nothing of slices, and give the same bits. Where it stands still depends on the
// numbers alone, never on a clock or on threads.
//
// The call has a thread of its own, for its stack alone: the owner sleeps while it runs, and it sleeps while the owner
// runs, so at any time one of the two computes, and one of the two uses the pool.
//
// Owned and used by one thread. A call that is dropped leaves out the tasks of the pool that it has not done, and does
// whatever else it does: so it must bear results that were not computed, and what it writes outside of tasks is
// written.
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

  // Borrows the pool. Starts no thread: the first call does.
  explicit SlicedCall(ThreadPool& pool) : pool_(pool) {}
  ~SlicedCall() override;
  SlicedCall(const SlicedCall&) = delete;
  SlicedCall& operator=(const SlicedCall&) = delete;

  // Nothing of it runs yet. REQUIRES: !is_under_way().
  void begin(std::function<void()> call);

  // Lets it do `num_tasks` tasks, and what it does between tasks. True: it has ended. REQUIRES: is_under_way(),
  // num_tasks > 0.
  bool run(int64_t num_tasks);

  // Ends it without the tasks that it has not done: whatever it computes from here on is not computed.
  void drop();

  bool is_under_way() const { return call_ != nullptr; }

 private:
  int64_t num_tasks_left() const override { return num_tasks_left_; }
  void count(int64_t num_tasks) override { num_tasks_left_ -= num_tasks; }
  void pause() override;
  bool is_dropped() const override { return is_dropped_; }

  void hand_over();
  void work();

  ThreadPool& pool_;
  std::function<void()> call_;  // null: none is under way
  std::thread thread_;
  // The thread that runs owns everything below; the semaphores hand it over.
  std::binary_semaphore turn_of_call_{0}, turn_of_owner_{0};
  int64_t num_tasks_left_ = 0;
  bool has_ended_ = false;
  bool is_dropped_ = false;
  bool is_closing_ = false;
};

}  // namespace transept
