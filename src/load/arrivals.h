// Draws the times at which the requests of an open loop are due. Not thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <random>

#include "base/clock.h"

namespace transept {

class Arrivals final {
 public:
  static constexpr double kAllAtOnce = std::numeric_limits<double>::infinity();

  // A Poisson process of `per_second` requests: gaps are independent and exponential. The same seed gives the same
  // times on every machine. REQUIRES: per_second > 0.
  Arrivals(double per_second, uint64_t seed) : per_second_(per_second), random_(seed) {}

  // Returns the time of the next request after the start; a gap precedes the first, too. kAllAtOnce: always 0.
  Duration next();

 private:
  double per_second_;
  double seconds_ = 0;
  std::mt19937_64 random_;
};

}  // namespace transept
