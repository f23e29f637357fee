// Names of formats read back as the format they name, and nothing else reads as one.
#include "tensor/weight_format.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

constexpr WeightFormat codes(int32_t bits, int32_t group, bool has_zero) {
  return {WeightLayout::kCodes, bits, group, has_zero};
}

TEST(WeightFormat, NamesReadBack) {
  const std::pair<WeightFormat, const char*> names[] = {
      {kFloat32Format, "float32"},         {kFloat16Format, "float16"},
      {kBFloat16Format, "bfloat16"},       {kInt8Format, "int8"},
      {kFloat8Format, "float8"},           {kFloat4Format, "float4"},
      {codes(4, 128, false), "int4-g128"}, {codes(4, 32, true), "int4-g32-zeros"},
      {codes(8, 0, true), "int8-zeros"},   {float4_format(64), "float4-g64"}};
  for (const auto& [format, name] : names) {
    EXPECT_EQ(weight_format_name(format), name);
    EXPECT_EQ(parse_weight_format(name), format);
  }
}

TEST(WeightFormat, OtherTextsAreNone) {
  for (const char* text : {"",
                           "int",
                           "int0",
                           "int9",
                           "int08",
                           "int64",
                           "INT8",
                           "float",
                           "float2",
                           "bfloat8",
                           "bfloat32",
                           "int4-",
                           "int4-g",
                           "int4-g0",
                           "int4-g-1",
                           "int4-g99999999999",
                           "int4-zeros-g32",
                           "int4-g32-zeros-zeros",
                           "int4-g32-",
                           "float4-g64-zeros",
                           "float8-g64",
                           "float4-64",
                           "I8"}) {
    EXPECT_EQ(parse_weight_format(text), std::nullopt) << text;
  }
}

TEST(PackedFormat, InputsAreRoundedAsTheWeightsAllow) {
  for (const WeightFormat& weights : {kFloat32Format, kFloat16Format, kBFloat16Format, kInt8Format}) {
    EXPECT_TRUE(PackedFormat{weights}.is_consistent());
    EXPECT_EQ((PackedFormat{weights, InputRounding::kWide}.is_consistent()), weights == kInt8Format);
    EXPECT_EQ((PackedFormat{weights, InputRounding::kOutliers}.is_consistent()), weights == kInt8Format);
    EXPECT_EQ((PackedFormat{weights, InputRounding::kBFloat16}.is_consistent()), weights == kBFloat16Format);
    EXPECT_FALSE((PackedFormat{weights, InputRounding::kGroups}.is_consistent()));
  }
  EXPECT_TRUE((PackedFormat{int4_format(32, true), InputRounding::kGroups}.is_consistent()));
  EXPECT_FALSE((PackedFormat{float4_format(32), InputRounding::kGroups}.is_consistent()));
  EXPECT_FALSE((PackedFormat{int4_format(32), InputRounding::kWide}.is_consistent()));
}

}  // namespace
}  // namespace transept
