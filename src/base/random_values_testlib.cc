#include "base/random_values_testing.h"

namespace transept::testing {

void fill_with_normals(std::span<float> values, std::mt19937& random, float deviation) {
  std::normal_distribution<float> normal(0, deviation);
  for (float& value : values) value = normal(random);
}

std::vector<float> random_normals(int64_t count, uint32_t seed, float deviation) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<size_t>(count));
  fill_with_normals(values, random, deviation);
  return values;
}

}  // namespace transept::testing
