// The values of KV elements one by one, as kv_format.h describes them and as a reader would compute them: what the
// reference backend writes and reads. (kv_vec_*.h do the same for vectors.)
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "attention/kv_format.h"
#include "tensor/dtype.h"

namespace transept {

// float16 as the cache has it: the largest there is instead of infinity.
inline uint16_t saturated_float16(float x) { return float_to_float16(std::clamp(x, -kMaxFloat16, kMaxFloat16)); }

// The int8 scale of n values: NaN if one of them is not finite.
inline float int8_scale(const float* x, int64_t n) {
  float largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::abs(x[i]));
  }
  const float scale = largest / kMaxInt8;
  return scale < kLeastScale ? 0 : scale;
}

inline int8_t float_to_int8(float x, float scale) {
  if (!(scale > 0)) return 0;
  return static_cast<int8_t>(std::clamp(std::nearbyint(x / scale), -kMaxInt8, kMaxInt8));
}

}  // namespace transept
