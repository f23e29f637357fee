// Decides whether a worker beside a busy neighbour should keep off the processor of the thread that calls it. Linux
// wakes a worker where its caller runs: there it takes the caller's time, while the neighbour has the other processor
// for itself. Off that processor it takes the neighbour's. With as many neighbours as processors no place is better,
// and Linux chooses.
#pragma once

#include <chrono>

namespace transept {

// A value; used by one thread.
class CallerDistance final {
 public:
  using Duration = std::chrono::nanoseconds;  // of any steady clock

  static constexpr Duration kLookEvery = std::chrono::milliseconds(1);
  static constexpr int kLooksToBegin = 4;

  // Of the pool's threads, the caller among them, and the processors that they may run on.
  CallerDistance(int num_threads, int num_cpus) : num_own_(num_threads), limit_(num_threads + num_cpus - 0.5) {}

  // Whether take() wants a count.
  bool is_due(Duration now) const { return num_looks_ == 0 || now - looked_at_ >= kLookEvery; }
  // Takes the number of threads that want a processor, on the whole machine, while the pool's threads do.
  void take(Duration now, int num_running);
  // Forgets the counts: the processor is no longer shared.
  void reset() { num_looks_ = 0; }
  // Whether there are neighbours, and fewer than processors.
  bool keeps_off() const { return num_looks_ >= kLooksToBegin && mean_ > num_own_ && mean_ < limit_; }

 private:
  int num_own_;
  double limit_;
  double mean_ = 0;  // of the last counts, older ones less
  int num_looks_ = 0;
  Duration looked_at_{};
};

// The number of threads that run or wait for a processor, on the whole machine, from /proc/loadavg.
class RunningThreads final {
 public:
  RunningThreads();
  ~RunningThreads();
  RunningThreads(const RunningThreads&) = delete;
  RunningThreads& operator=(const RunningThreads&) = delete;

  int count() const;  // 0: the system does not say. Takes 2 us

 private:
  int file_;  // -1: there is none
};

}  // namespace transept
