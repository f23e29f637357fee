// Summarises many measurements. Pure functions: thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace transept {

struct Statistics {
  size_t count = 0;  // 0: the numbers below are meaningless
  double mean = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
};

Statistics statistics_of(std::vector<double> values);

// Interpolates linearly between the two nearest ranks, as numpy does by default. REQUIRES: sorted, not empty; percent
// 0..100.
double percentile(std::span<const double> sorted, double percent);

}  // namespace transept
