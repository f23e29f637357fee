// When a process that died is started again. A value; the functions are not thread-safe.
#pragma once

#include <chrono>
#include <deque>
#include <optional>

#include "base/clock.h"

namespace transept {

struct RestartLimits {
  Duration first_delay = std::chrono::seconds(1);  // doubles with each start again within the window
  Duration max_delay = std::chrono::seconds(10);
  int max_restarts = 5;  // within the window
  Duration window = std::chrono::seconds(60);
};

class RestartPolicy final {
 public:
  explicit RestartPolicy(const RestartLimits& limits) : limits_(limits) {}

  // The process died. Returns when it is to be started again; nullopt: never, it dies too often.
  std::optional<TimePoint> on_death(TimePoint now);

 private:
  RestartLimits limits_;
  std::deque<TimePoint> restarts_;  // of the last window
};

}  // namespace transept
