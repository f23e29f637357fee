// Rotary positions against rows printed by torch from transformers 5.23's apply_rotary_pos_emb of modeling_moonshine.py
// (partial_rotary_factor 0.9, theta 10000): x[i] = i / 4 - 1 at positions 0, 1, 7 and 1249.
#include "ops/rope.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

TEST(RopeTest, MatchesTheReference) {
  constexpr int64_t kHeadDim = 9, kHeads = 300;  // enough heads that rows are shared out
  const std::vector<std::vector<float>> expected = {
      {-1.0f, -0.75f, -0.5f, -0.25f, 0.0f, 0.25f, 0.5f, 0.75f, 1.0f},
      {0.0908009f, -1.2466977f, -0.4725437f, -0.2986678f, -0.0025f, 0.2499875f, 0.4992498f, 0.7504997f, 1.0f},
      {-0.2611623f, -1.2224133f, -0.2213667f, -0.5133194f, -0.0174857f, 0.2493878f, 0.4947378f, 0.7534816f, 1.0f},
      {-0.9476467f, 0.8151476f, -0.5340399f, 0.1652313f, 0.0190742f, 0.2492713f, -0.5533661f, 0.7115378f, 1.0f}};
  const std::vector<int32_t> positions = {0, 1, 7, 1249};
  ThreadPool pool(2);
  Arena arena(4096);
  Context context{.threads = pool, .arena = arena};
  std::vector<float> x(4 * (kHeads + 1) * kHeadDim, 7.0f);  // rows with gaps: queries of a fused product
  const TensorView rows = TensorView(x.data(), DType::kFloat32, {4, (kHeads + 1) * kHeadDim});
  const TensorView heads = rows.columns(0, kHeads * kHeadDim).split_heads(kHeads);
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < kHeads * kHeadDim; ++j) rows.row(i)[j] = static_cast<float>(j % kHeadDim) / 4 - 1;
  }
  rope(context, rope_angles(context, rope_frequencies(8, 10000), positions), heads);
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < kHeads * kHeadDim; ++j) {
      ASSERT_NEAR(rows.row(i)[j], expected[static_cast<size_t>(i)][static_cast<size_t>(j % kHeadDim)], 2e-7);
    }
    for (int64_t j = 0; j < kHeadDim; ++j) ASSERT_EQ(rows.row(i)[kHeads * kHeadDim + j], 7.0f);
  }
}

TEST(RopeTest, FrequenciesAreTheReferences) {
  // MoonshineRotaryEmbedding.inv_freq for a head of 36 columns, 32 of them turned.
  const std::vector<float> frequencies = rope_frequencies(32, 10000);
  ASSERT_EQ(frequencies.size(), 16u);
  EXPECT_EQ(frequencies[0], 1.0f);
  EXPECT_FLOAT_EQ(frequencies[1], 0.5623413324356079f);
  EXPECT_FLOAT_EQ(frequencies[2], 0.3162277638912201f);
  EXPECT_FLOAT_EQ(frequencies[3], 0.17782793939113617f);
  EXPECT_EQ(rope_frequencies(7, 10000).size(), 4u);
}

}  // namespace
}  // namespace transept
