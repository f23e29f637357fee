// Time as a dependency: everything that asks for the time is given a Clock, so that tests decide what time it is.
#pragma once

#include <atomic>
#include <chrono>

namespace transept {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

// Thread-safe.
class SteadyClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
};

// For tests. Thread-safe: the test moves it while the engine thread reads it.
class FakeClock final : public Clock {
 public:
  TimePoint now() const override { return now_.load(); }
  void advance(Duration by) { now_.store(now_.load() + by); }

 private:
  std::atomic<TimePoint> now_{TimePoint{}};
};

inline double seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace transept
