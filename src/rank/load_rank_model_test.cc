// What a loaded model says of its layers.
#include "rank/load_rank_model.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

// A composite model may have one side that is wide enough for int8 and one that is not: attention of the encoder is
// rounded as an encoder's rank, which has no other layers, would round it.
TEST(LoadedRankModel, WhatTheEncodersAttentionRoundsToIsToldByItsOwnLayers) {
  const auto says = [](const PackedFormat& encoder, const PackedFormat& decoder) {
    LoadedRankModel loaded;
    loaded.packed_layers.push_back({.name = "encoder.layers.0.fc1.weight", .format = encoder});
    loaded.packed_layers.push_back({.name = "enc_to_dec_proj.weight", .format = decoder});
    loaded.packed_layers.push_back({.name = "decoder.layers.0.encoder_attn.q_proj.weight", .format = decoder});
    return loaded.encoder_kv_dtype();
  };
  const PackedFormat float32 = {kFloat32Format}, float16 = {kFloat16Format}, int8 = {kInt8Format};
  const PackedFormat int4 = {int4_format(32), InputRounding::kGroups}, codes = {int4_format(32)};
  const PackedFormat bfloat16 = {kBFloat16Format, InputRounding::kBFloat16}, stored_bfloat16 = {kBFloat16Format};
  EXPECT_EQ(says(int8, int8), DType::kInt8);
  EXPECT_EQ(says(int8, float32), DType::kInt8);
  EXPECT_EQ(says(float32, int8), DType::kFloat32);
  EXPECT_EQ(says(float16, float16), DType::kFloat32);
  EXPECT_EQ(says(int4, float32), DType::kFloat32);
  EXPECT_EQ(says(int4, int8), DType::kFloat32);
  EXPECT_EQ(says(codes, int4), DType::kFloat32) << "4-bit codes whose inputs stay as they are";
  EXPECT_EQ(says(bfloat16, float32), DType::kBFloat16);
  EXPECT_EQ(says(stored_bfloat16, bfloat16), DType::kFloat32) << "bfloat16 weights whose inputs stay as they are";
}

// BLIP's decoder is below "text_decoder.bert.encoder.".
TEST(LoadedRankModel, ATowerMayHaveAnotherName) {
  const auto says = [](const WeightFormat& tower, const WeightFormat& decoder) {
    LoadedRankModel loaded;
    loaded.packed_layers.push_back({.name = "vision_model.encoder.layers.0.mlp.fc1.weight", .format = {tower}});
    loaded.packed_layers.push_back(
        {.name = "text_decoder.bert.encoder.layer.0.output.dense.weight", .format = {decoder}});
    return loaded.encoder_kv_dtype();
  };
  EXPECT_EQ(says(kInt8Format, kFloat32Format), DType::kInt8);
  EXPECT_EQ(says(kFloat32Format, kInt8Format), DType::kFloat32);
}

}  // namespace
}  // namespace transept
