#include "load/arrivals.h"

#include <cmath>

namespace transept {

Duration Arrivals::next() {
  if (std::isinf(per_second_)) return Duration::zero();
  // Not std::exponential_distribution: every library draws it in its own way.
  const double uniform = static_cast<double>(random_() >> 11) * 0x1p-53;
  seconds_ -= std::log1p(-uniform) / per_second_;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds_));
}

}  // namespace transept
