// The values of KV elements one by one, as kv_format.h describes them and as a reader would compute them: what the
// reference backend writes and reads. (kv_vec_*.h do the same for vectors.)
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "attention/kv_format.h"
#include "tensor/dtype.h"

namespace transept {

// To the nearest multiple of the last place that x has with that many bits; ties to even.
inline float rounded_to_bits(float x, int bits, int least_exponent) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int exponent = std::max(std::ilogb(x), least_exponent);
  const double place = std::ldexp(1.0, exponent - (bits - 1));
  return static_cast<float>(std::nearbyint(static_cast<double>(x) / place) * place);
}

// The upper half of the rounded float.
inline uint16_t float_to_bfloat16(float x) {
  if (std::isnan(x)) return 0x7FC0;
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(rounded_to_bits(x, 8, -126)) >> 16);
}

inline uint16_t float_to_float16(float x) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return 0x7E00;
  const float magnitude = std::min(std::abs(rounded_to_bits(x, 11, -14)), kMaxFloat16);
  if (magnitude < 0x1p-14f) return static_cast<uint16_t>(sign | static_cast<uint16_t>(magnitude * 0x1p24f));
  const uint32_t bits = std::bit_cast<uint32_t>(magnitude) - (112u << 23);  // the exponent's bias: 127 to 15
  return static_cast<uint16_t>(sign | (bits >> 13));
}

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
