#include "apps/restart_policy.h"

#include <algorithm>

namespace transept {

std::optional<TimePoint> RestartPolicy::on_death(TimePoint now) {
  while (!restarts_.empty() && restarts_.front() <= now - limits_.window) restarts_.pop_front();
  if (static_cast<int>(restarts_.size()) >= limits_.max_restarts) return std::nullopt;
  Duration delay = limits_.first_delay;
  for (size_t i = 0; i < restarts_.size() && delay < limits_.max_delay; ++i) delay *= 2;
  restarts_.push_back(now + std::min(delay, limits_.max_delay));
  return restarts_.back();
}

}  // namespace transept
