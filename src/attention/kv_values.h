// Conversion of single KV elements to the types of kv_format.h: the reference backend writes and reads with it.
// (kv_vec_*.h and the kernels do the same for vectors.) Functions without state: thread-safe.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "attention/kv_format.h"
#include "tensor/dtype.h"

namespace transept {

// Returns x as float16, saturated at the largest finite value; NaN stays NaN.
inline uint16_t saturated_float16(float x) { return float_to_float16(std::clamp(x, -kMaxFloat16, kMaxFloat16)); }

// Returns the int8 scale of n values: NaN if one of them is not finite, 0 if the scale is below the smallest normal
// float.
inline float int8_scale(const float* x, int64_t n) {
  float largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::abs(x[i]));
  }
  const float scale = largest / kMaxInt8;
  return scale < kLeastScale ? 0 : scale;
}

// Returns the integer of x under the scale; 0 if the scale is 0 or NaN.
inline int8_t float_to_int8(float x, float scale) {
  if (!(scale > 0)) return 0;
  return static_cast<int8_t>(std::clamp(std::nearbyint(x / scale), -kMaxInt8, kMaxInt8));
}

}  // namespace transept
