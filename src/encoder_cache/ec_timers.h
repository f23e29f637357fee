// When each of many transfers must hear that time has passed, the earliest first. Owned by a table of transfers. Not
// thread-safe.
#pragma once

#include <set>
#include <utility>

#include "encoder_cache/ec_transfer.h"

namespace transept {

class EcTimers final {
 public:
  // Moves an input's timer from where it is to `time`; TimePoint::max(): it has none.
  void move(const EcInput& input, TimePoint& timer, TimePoint time) {
    timers_.erase({timer, input});
    timer = time;
    if (time != TimePoint::max()) timers_.emplace(time, input);
  }
  // The earliest timer's; TimePoint::max(): there is none.
  TimePoint next_time() const { return timers_.empty() ? TimePoint::max() : timers_.begin()->first; }
  // REQUIRES: next_time() is not TimePoint::max(). Valid until the next move().
  const EcInput& next() const { return timers_.begin()->second; }
  bool has(const EcInput& input, TimePoint time) const { return timers_.contains({time, input}); }
  size_t size() const { return timers_.size(); }

 private:
  std::set<std::pair<TimePoint, EcInput>> timers_;
};

}  // namespace transept
