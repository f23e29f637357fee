// Time as a dependency: everything that asks for the time is given a Clock, so that tests decide what time it is.
#pragma once

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

// For tests. Not thread-safe.
class FakeClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{};
};

inline double seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace transept
