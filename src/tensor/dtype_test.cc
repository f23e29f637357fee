// Half-precision widening against the definitions of IEEE 754 binary16 and bfloat16, over all 65,536 patterns.
#include "tensor/dtype.h"

#include <cmath>

#include "gtest/gtest.h"

namespace transept {
namespace {

// sign, then `exponent_bits`, then the fraction: the number that the pattern stands for.
double value_of(uint16_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

void expect_same(float got, double wanted, int bits) {
  if (std::isnan(wanted)) {
    ASSERT_TRUE(std::isnan(got)) << bits;
  } else {
    ASSERT_EQ(static_cast<double>(got), wanted) << bits;
    ASSERT_EQ(std::signbit(got), std::signbit(wanted)) << bits;
  }
}

TEST(DType, EveryFloat16) {
  for (int bits = 0; bits < 65536; ++bits) {
    expect_same(float16_to_float(static_cast<uint16_t>(bits)), value_of(static_cast<uint16_t>(bits), 5), bits);
  }
}

TEST(DType, EveryBFloat16) {
  for (int bits = 0; bits < 65536; ++bits) {
    expect_same(bfloat16_to_float(static_cast<uint16_t>(bits)), value_of(static_cast<uint16_t>(bits), 8), bits);
  }
}

TEST(DType, SizesAndNames) {
  const std::pair<DType, size_t> sizes[] = {{DType::kFloat32, 4}, {DType::kBFloat16, 2}, {DType::kFloat16, 2},
                                            {DType::kInt32, 4},   {DType::kInt64, 8},    {DType::kInt8, 1},
                                            {DType::kUInt8, 1}};
  for (const auto& [dtype, bytes] : sizes) {
    EXPECT_EQ(dtype_bytes(dtype), bytes);
    EXPECT_FALSE(dtype_name(dtype).empty());
  }
}

}  // namespace
}  // namespace transept
