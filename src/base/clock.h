// Time as a dependency: the scheduler, the engine and the server take a Clock, so that tests control deadlines and
// durations. Timings of the apps and timeouts of waits and sockets read std::chrono::steady_clock themselves:
// steady_now().
#pragma once

#include <atomic>
#include <chrono>

namespace transept {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

inline TimePoint steady_now() { return std::chrono::steady_clock::now(); }

// Implementations are thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

class SteadyClock final : public Clock {
 public:
  TimePoint now() const override { return steady_now(); }
};

// For tests. Any thread may call now() while one thread, the test's, calls advance().
class FakeClock final : public Clock {
 public:
  TimePoint now() const override { return now_.load(); }
  void advance(Duration by) { now_.store(now_.load() + by); }

 private:
  std::atomic<TimePoint> now_{TimePoint{}};
};

inline double seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace transept
