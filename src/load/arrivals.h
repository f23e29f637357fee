// When the requests of an open loop are due. Not thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <random>

#include "base/clock.h"

namespace transept {

class Arrivals final {
 public:
  static constexpr double kAllAtOnce = std::numeric_limits<double>::infinity();

  // A Poisson process of so many a second: gaps are independent and exponential. The same seed gives the same times on
  // every machine. REQUIRES: per_second > 0.
  Arrivals(double per_second, uint64_t seed) : per_second_(per_second), random_(seed) {}

  // The next one's distance from the start; the first comes after a gap too. kAllAtOnce: always 0.
  Duration next();

 private:
  double per_second_;
  double seconds_ = 0;
  std::mt19937_64 random_;
};

}  // namespace transept
