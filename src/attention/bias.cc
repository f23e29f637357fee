#include "attention/bias.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"

namespace transept {
namespace {

// A table has two floats a head for each distance: what published models have is 128.
constexpr int64_t kMaxDistance = 1 << 14;
constexpr int64_t kMaxBuckets = 1 << 12;

}  // namespace

DistanceBias::DistanceBias(int64_t num_heads, int64_t max_distance, FunctionRef<float(int64_t, int64_t)> value,
                           DeviceMemory& memory)
    : num_heads_(num_heads), max_distance_(max_distance) {
  CHECK(num_heads > 0 && max_distance >= 0);
  const int64_t end = max_distance + kDistancePadding;
  std::vector<float> values;
  values.reserve(static_cast<size_t>(num_heads * 2 * end));
  for (int64_t head = 0; head < num_heads; ++head) {
    for (int64_t distance = -end; distance < end; ++distance) {
      values.push_back(value(head, std::clamp(distance, -max_distance, max_distance)));
    }
  }
  values_ = DeviceFloats(std::move(values), memory);
}

AttentionBias DistanceBias::bias() const {
  const int64_t end = max_distance_ + kDistancePadding;
  return {BiasKind::kByDistance, {}, values_.data() + end, num_heads_, 2 * end, max_distance_};
}

bool T5Buckets::valid(std::string* why) const {
  const int64_t num_exact = num_buckets / (bidirectional ? 4 : 2);
  if (num_buckets < 4 || num_buckets > kMaxBuckets) {
    *why = str_cat(num_buckets, " buckets; from 4 to ", kMaxBuckets, " are possible");
  } else if (max_distance <= num_exact || max_distance > kMaxDistance) {
    *why = str_cat("farthest distance ", max_distance, "; from ", num_exact + 1, " to ", kMaxDistance,
                   " is possible with ", num_buckets, " buckets");
  } else {
    return true;
  }
  return false;
}

int64_t T5Buckets::bucket(int64_t distance) const {
  const int64_t of_direction = bidirectional ? num_buckets / 2 : num_buckets;
  const int64_t first = bidirectional && distance > 0 ? of_direction : 0;
  const int64_t far = bidirectional ? std::abs(distance) : std::max<int64_t>(-distance, 0);
  const int64_t num_exact = of_direction / 2;
  if (far < num_exact) return first + far;
  // In float32, as the reference computes it: at the borders of buckets rounding decides.
  const float ratio = static_cast<float>(far) / static_cast<float>(num_exact);
  const auto range = static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(num_exact)));
  const auto step = static_cast<int64_t>(std::log(ratio) / range * static_cast<float>(of_direction - num_exact));
  return first + std::min(num_exact + step, of_direction - 1);
}

DistanceBias t5_bias(const T5Buckets& buckets, std::span<const float> table, int64_t num_heads, DeviceMemory& memory) {
  CHECK(static_cast<int64_t>(table.size()) == buckets.num_buckets * num_heads);
  const auto value = [&](int64_t head, int64_t distance) {
    return table[static_cast<size_t>(buckets.bucket(distance) * num_heads + head)];
  };
  return DistanceBias(num_heads, buckets.max_distance, value, memory);
}

}  // namespace transept
