#include "layers/packing.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

PackedFormat format_of(std::optional<WeightFormat> asked, WeightFormat stored,
                       LayerInputs inputs = LayerInputs::kUsual) {
  ThreadPool threads(1);
  return choose_format(PackOptions(threads, asked, nullptr), {"a.weight", 200, 300, inputs}, stored);
}

TEST(PackingTest, InputsAreRoundedToBFloat16OnlyForWhoAsksForIt) {
  const PackedFormat exact = {kBFloat16Format}, asked = {kBFloat16Format, InputRounding::kBFloat16};
  EXPECT_EQ(format_of(std::nullopt, kBFloat16Format), exact) << "a checkpoint's bytes are no wish";
  EXPECT_EQ(format_of(kBFloat16Format, kBFloat16Format), asked);
  EXPECT_EQ(format_of(kBFloat16Format, kFloat32Format), asked);
  EXPECT_EQ(format_of(kBFloat16Format, kFloat32Format, LayerInputs::kOutliers), asked);
  EXPECT_EQ(format_of(kBFloat16Format, kFloat32Format, LayerInputs::kRaw), exact) << "raw samples keep their bits";
  EXPECT_EQ(format_of(kInt8Format, kBFloat16Format, LayerInputs::kRaw), exact);
}

TEST(PackingTest, OfInt8WhatInputsAreLikeSaysHowTheyAreRounded) {
  const PackedFormat usual = {kInt8Format}, wide = {kInt8Format, InputRounding::kWide},
                     outliers = {kInt8Format, InputRounding::kOutliers};
  EXPECT_EQ(format_of(kInt8Format, kFloat32Format), usual);
  EXPECT_EQ(format_of(kInt8Format, kFloat32Format, LayerInputs::kConvolution), wide);
  EXPECT_EQ(format_of(kInt8Format, kFloat32Format, LayerInputs::kOutliers), outliers);
}

}  // namespace
}  // namespace transept
