// Element types of tensors and files, and conversions of 16-bit floats. Pure functions: thread-safe.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace transept {

enum class DType : uint8_t { kFloat32, kBFloat16, kFloat16, kInt32, kInt64, kInt8, kUInt8 };

constexpr size_t dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kInt32: return 4;
    case DType::kBFloat16:
    case DType::kFloat16: return 2;
    case DType::kInt64: return 8;
    case DType::kInt8:
    case DType::kUInt8: return 1;
  }
  return 0;
}

constexpr std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return "float32";
    case DType::kBFloat16: return "bfloat16";
    case DType::kFloat16: return "float16";
    case DType::kInt32: return "int32";
    case DType::kInt64: return "int64";
    case DType::kInt8: return "int8";
    case DType::kUInt8: return "uint8";
  }
  return "";
}

// Exact: bfloat16 is the upper half of a float32.
inline float bfloat16_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Exact: IEEE 754 binary16, with subnormals, infinities and NaN.
inline float float16_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t rest = bits & 0x7FFFu;
  if (rest >= 0x7C00u) return std::bit_cast<float>(sign | 0x7F800000u | ((rest & 0x3FFu) << 13));
  // Scaling by 2^112 moves the exponent's bias from 15 to 127 and normalises subnormals.
  const float magnitude = std::bit_cast<float>(rest << 13) * std::bit_cast<float>(0x77800000u);
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

// Rounds to nearest, ties to even. NaN stays NaN.
inline uint16_t float_to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// Rounds to nearest, ties to even. 65520 and more become infinity, small values subnormal; NaN stays NaN.
inline uint16_t float_to_float16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u);
  if (magnitude >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);  // 65520 and more
  if (magnitude < 0x38800000u) {
    // Below 2^-14: adding 0.5 leaves multiples of 2^-24 in the lowest bits, rounded by the addition itself.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000u));
  }
  const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

}  // namespace transept
