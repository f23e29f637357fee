// Rotary positions against rows printed by torch from transformers 5.23's apply_rotary_pos_emb of modeling_moonshine.py
// (partial_rotary_factor 0.9, theta 10000): x[i] = i / 4 - 1 at positions 0, 1, 7 and 1249.
#include "ops/rope.h"
#include "ops/cpu_device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>

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
  CpuDevice device{pool};
  Context context{.device = device, .arena = arena};
  std::vector<float> x(4 * (kHeads + 1) * kHeadDim, 7.0f);  // rows with gaps: queries of a fused product
  const TensorView rows = TensorView(x.data(), DType::kFloat32, {4, (kHeads + 1) * kHeadDim});
  const TensorView heads = rows.columns(0, kHeads * kHeadDim).split_heads(kHeads);
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < kHeads * kHeadDim; ++j) rows.row(i)[j] = static_cast<float>(j % kHeadDim) / 4 - 1;
  }
  apply_rope(context, rope_angles(context, {rope_frequencies(8, 10000)}, positions), heads);
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < kHeads * kHeadDim; ++j) {
      ASSERT_NEAR(rows.row(i)[j], expected[static_cast<size_t>(i)][static_cast<size_t>(j % kHeadDim)], 2e-7);
    }
    for (int64_t j = 0; j < kHeadDim; ++j) ASSERT_EQ(rows.row(i)[kHeads * kHeadDim + j], 7.0f);
  }
}

// A pair turned by an angle is a complex number multiplied by e^(i angle).
TEST(RopeTest, TurnsHalvesAndSectionsByTheirAxis) {
  constexpr int64_t kPairs = 5, kHeadDim = 2 * kPairs + 1, kRows = 3;
  Rope by_axis{rope_frequencies(2 * kPairs, 100), RopePairs::kHalves, {2, 1, 2}};
  Rope by_position{by_axis.frequencies, RopePairs::kHalves};
  const std::vector<int32_t> positions = {0, 3, 9, /*second axis*/ 5, 0, 2, /*third*/ 1, 7, 4};
  const std::vector<int64_t> axis_of_pair = {0, 0, 1, 2, 2};
  ThreadPool pool(2);
  Arena arena(1 << 16);
  CpuDevice device{pool};
  Context context{.device = device, .arena = arena};
  for (const bool has_axes : {true, false}) {
    std::vector<float> values(kRows * 2 * kHeadDim);
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
    const std::vector<float> before = values;
    const View<int32_t> of_rows = has_axes ? View<int32_t>(positions) : View<int32_t>(positions).first(kRows);
    const RopeAngles angles = rope_angles(context, has_axes ? by_axis : by_position, of_rows);
    apply_rope(context, angles, TensorView(values.data(), DType::kFloat32, {kRows, 2, kHeadDim}));
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t head = 0; head < 2; ++head) {
        const size_t at = static_cast<size_t>((row * 2 + head) * kHeadDim);
        for (size_t pair = 0; pair < kPairs; ++pair) {
          const auto axis = static_cast<size_t>(has_axes ? axis_of_pair[pair] : 0);
          const double angle = static_cast<double>(positions[axis * kRows + static_cast<size_t>(row)]) *
                               static_cast<double>(by_axis.frequencies[pair]);
          const std::complex<double> turned =
              std::complex<double>(before[at + pair], before[at + kPairs + pair]) * std::polar(1.0, angle);
          ASSERT_NEAR(values[at + pair], turned.real(), 1e-6) << row << ", " << pair;
          ASSERT_NEAR(values[at + kPairs + pair], turned.imag(), 1e-6) << row << ", " << pair;
        }
        ASSERT_EQ(values[at + kHeadDim - 1], before[at + kHeadDim - 1]);
      }
    }
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
