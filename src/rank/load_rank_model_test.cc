// What a loaded model says of its layers.
#include "rank/load_rank_model.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

// A composite model may have one side that is wide enough for int8 and one that is not: attention of the encoder is
// rounded as an encoder's rank, which has no other layers, would round it.
TEST(LoadedRankModel, AnInt8EncoderIsToldByItsOwnLayers) {
  const auto says = [](const WeightFormat& encoder, const WeightFormat& decoder) {
    LoadedRankModel loaded;
    loaded.packed_layers.push_back({.name = "encoder.layers.0.fc1.weight", .format = {encoder}});
    loaded.packed_layers.push_back({.name = "enc_to_dec_proj.weight", .format = {decoder}});
    loaded.packed_layers.push_back({.name = "decoder.layers.0.encoder_attn.q_proj.weight", .format = {decoder}});
    return loaded.has_int8_encoder();
  };
  EXPECT_TRUE(says(kInt8Format, kInt8Format));
  EXPECT_TRUE(says(kInt8Format, kFloat32Format));
  EXPECT_FALSE(says(kFloat32Format, kInt8Format));
  EXPECT_FALSE(says(kFloat16Format, kFloat16Format));
}

// BLIP's decoder is below "text_decoder.bert.encoder.".
TEST(LoadedRankModel, ATowerMayHaveAnotherName) {
  const auto says = [](const WeightFormat& tower, const WeightFormat& decoder) {
    LoadedRankModel loaded;
    loaded.packed_layers.push_back({.name = "vision_model.encoder.layers.0.mlp.fc1.weight", .format = {tower}});
    loaded.packed_layers.push_back(
        {.name = "text_decoder.bert.encoder.layer.0.output.dense.weight", .format = {decoder}});
    return loaded.has_int8_encoder();
  };
  EXPECT_TRUE(says(kInt8Format, kFloat32Format));
  EXPECT_FALSE(says(kFloat32Format, kInt8Format));
}

}  // namespace
}  // namespace transept
