#include "load/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace transept {

double percentile(std::span<const double> sorted, double percent) {
  const double rank = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(rank);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], rank - static_cast<double>(below));
}

Statistics statistics_of(std::vector<double> values) {
  Statistics statistics;
  statistics.count = values.size();
  if (values.empty()) return statistics;
  std::sort(values.begin(), values.end());
  statistics.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  statistics.p50 = percentile(values, 50);
  statistics.p90 = percentile(values, 90);
  statistics.p95 = percentile(values, 95);
  statistics.p99 = percentile(values, 99);
  statistics.max = values.back();
  return statistics;
}

}  // namespace transept
