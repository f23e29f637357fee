// Notices that a thread shares its processor with another busy thread, and tells it when to pause.
//
// A worker that loses its processor in the middle of a task makes its whole pool wait until it gets it back: several
// milliseconds, for the scheduler's share of the other thread. A worker that gives the processor up between two calls
// costs the pool nothing but its own work, since the others take its tasks. It is owed that time afterwards, so it is
// seldom interrupted. So beside a busy neighbour a worker works for kWork and then rests for kRest.
//
// One a thread, made and used by it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace transept {

class SharedProcessor final {
 public:
  using Duration = std::chrono::nanoseconds;

  // What the system says of a thread, since it began.
  struct Times {
    Duration now{};        // of any steady clock
    Duration used{};       // on a processor
    Duration run_delay{};  // ready, and waiting for a processor
  };

  // Measured (docs/performance.md, beside busy neighbours): longer work is interrupted more often, shorter work loses
  // more to waking up.
  static constexpr Duration kWork = std::chrono::microseconds(500), kRest = std::chrono::microseconds(300);
  // A processor counts as shared once this share of kWindowsToBegin consecutive windows was waited for, and then for
  // kMemory after the last such window. One window is not enough: the short turns of other threads of a quiet machine
  // fill one now and then, and to rest because of them costs 4 to 8 % of the tokens.
  static constexpr Duration kWindow = std::chrono::milliseconds(5), kMemory = std::chrono::milliseconds(100);
  static constexpr double kDelayShare = 0.15;
  static constexpr int kWindowsToBegin = 3;

  // Takes the times of a moment between two calls. Returns how long to rest now; zero: not at all.
  Duration rest_at(const Times& times);

  // Whether the last times said so.
  bool is_shared() const { return is_shared_; }

 private:
  std::optional<Times> window_;  // when it began
  Duration shared_until_{};
  Duration rested_at_{};  // Times::used
  int num_waited_ = 0;    // consecutive windows of which so much was waited for, up to the last
  bool is_shared_ = false;
};

// The times of the thread that made it, from /proc. Without CONFIG_SCHED_INFO in the kernel, or without /proc,
// run_delay stays zero: no processor is ever found to be shared.
class ThreadTimes final {
 public:
  ThreadTimes();
  ~ThreadTimes();
  ThreadTimes(const ThreadTimes&) = delete;
  ThreadTimes& operator=(const ThreadTimes&) = delete;

  // 0.7 to 2.3 us. REQUIRES: the calling thread made it.
  SharedProcessor::Times read() const;

 private:
  int file_;  // -1: there is none
};

}  // namespace transept
