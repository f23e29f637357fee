#include "layers/packing.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

WeightFormat format_of(std::optional<DType> asked, DType stored, LayerInputs inputs = LayerInputs::kUsual) {
  ThreadPool threads(1);
  return make_packed(PackOptions(threads, asked, nullptr), {"a.weight", 200, 300, inputs}, stored).format();
}

TEST(PackingTest, InputsAreRoundedToBFloat16OnlyForWhoAsksForIt) {
  const WeightFormat exact = {DType::kBFloat16}, asked = {.storage = DType::kBFloat16, .bfloat16_inputs = true};
  EXPECT_EQ(format_of(std::nullopt, DType::kBFloat16), exact) << "a checkpoint's bytes are no wish";
  EXPECT_EQ(format_of(DType::kBFloat16, DType::kBFloat16), asked);
  EXPECT_EQ(format_of(DType::kBFloat16, DType::kFloat32), asked);
  EXPECT_EQ(format_of(DType::kBFloat16, DType::kFloat32, LayerInputs::kOutliers), asked);
  EXPECT_EQ(format_of(DType::kBFloat16, DType::kFloat32, LayerInputs::kRaw), exact) << "raw samples keep their bits";
  EXPECT_EQ(format_of(DType::kInt8, DType::kBFloat16, LayerInputs::kRaw), exact);
}

TEST(PackingTest, OfInt8WhatInputsAreLikeSaysHowTheyAreRounded) {
  const WeightFormat usual = {DType::kInt8}, wide = {DType::kInt8, true}, outliers = {DType::kInt8, true, true};
  EXPECT_EQ(format_of(DType::kInt8, DType::kFloat32), usual);
  EXPECT_EQ(format_of(DType::kInt8, DType::kFloat32, LayerInputs::kConvolution), wide);
  EXPECT_EQ(format_of(DType::kInt8, DType::kFloat32, LayerInputs::kOutliers), outliers);
}

}  // namespace
}  // namespace transept
