// Proves the rows against the reference's: rows printed by torch from transformers 5.23's
// M2M100SinusoidalPositionalEmbedding.get_embedding(1003, dim, None) and
// MarianSinusoidalPositionalEmbedding(1003, dim).create_weight().
#include "layers/sinusoidal.h"

#include <gtest/gtest.h>

#include <cmath>

namespace transept {
namespace {

void expect_row(const std::vector<float>& table, int64_t position, const std::vector<float>& expected) {
  const size_t dim = expected.size();
  for (size_t i = 0; i < dim; ++i) {
    EXPECT_NEAR(table[static_cast<size_t>(position) * dim + i], expected[i], 2e-7f) << position << ", " << i;
  }
}

std::vector<float> sinusoidal_table(Sinusoid kind, int64_t num_rows, int64_t dim) {
  const SinusoidalRows rows(kind, dim);
  std::vector<float> table(static_cast<size_t>(num_rows * dim), -7.0f);
  for (int64_t i = 0; i < num_rows; ++i) {
    rows.compute(i, std::span(table).subspan(static_cast<size_t>(i * dim), static_cast<size_t>(dim)));
  }
  return table;
}

TEST(SinusoidalTable, IsM2m100sByHalf) {
  const std::vector<float> even = sinusoidal_table(Sinusoid::kByHalf, 1003, 6);
  ASSERT_EQ(even.size(), 1003u * 6u);
  expect_row(even, 0, {0, 0, 0, 1, 1, 1});
  expect_row(even, 2, {0.9092974067f, 0.0199986659f, 0.00019999998f, -0.4161468446f, 0.9998000264f, 1.0f});
  expect_row(even, 1002, {0.1672665477f, -0.5606921911f, 0.1000324041f, -0.9859117270f, -0.8280242682f, 0.9949841499f});
  const std::vector<float> odd = sinusoidal_table(Sinusoid::kByHalf, 1003, 7);
  expect_row(odd, 1002,
             {0.1672665477f, -0.5606921911f, 0.1000324041f, -0.9859117270f, -0.8280242682f, 0.9949841499f, 0});
}

TEST(SinusoidalTable, IsMariansByDim) {
  const std::vector<float> even = sinusoidal_table(Sinusoid::kByDim, 1003, 6);
  expect_row(even, 0, {0, 0, 0, 1, 1, 1});
  expect_row(even, 2, {0.909297407f, 0.092698500f, 0.004308856f, -0.416146845f, 0.995694220f, 0.999990702f});
  expect_row(even, 1002, {0.167266548f, 0.577097118f, 0.832081020f, -0.985911727f, -0.816675544f, -0.554654121f});
  const std::vector<float> odd = sinusoidal_table(Sinusoid::kByDim, 1003, 7);
  expect_row(
      odd, 1,
      {0.841470957f, 0.0719064549f, 0.00517945131f, 0.00037275936f, 0.5403022766f, 0.9974113703f, 0.9999865890f});
  expect_row(
      odd, 1002,
      {0.1672665477f, 0.1436281353f, -0.8881720304f, 0.3648809195f, -0.9859117270f, -0.9896317124f, 0.4595110714f});
}

// The formula as the papers write it, at the width and length of published checkpoints.
TEST(SinusoidalTable, IsTheFormulaAtFullSize) {
  constexpr int64_t kRows = 1026, kDim = 1024, kHalf = kDim / 2;
  const std::vector<float> by_half = sinusoidal_table(Sinusoid::kByHalf, kRows, kDim);
  const std::vector<float> by_dim = sinusoidal_table(Sinusoid::kByDim, kRows, kDim);
  for (int64_t position = 0; position < kRows; position += 41) {
    for (int64_t i = 0; i < kHalf; i += 7) {
      const double p = static_cast<double>(position), x = static_cast<double>(i);
      const double a = p * std::exp(-x * std::log(10000.0) / static_cast<double>(kHalf - 1));
      const double b = p / std::pow(10000.0, 2.0 * x / static_cast<double>(kDim));
      const size_t sine = static_cast<size_t>(position * kDim + i), cosine = sine + static_cast<size_t>(kHalf);
      // The reference rounds the angle to float: positions up to 1026 have steps of 6e-5.
      EXPECT_NEAR(by_half[sine], std::sin(a), 2e-4);
      EXPECT_NEAR(by_half[cosine], std::cos(a), 2e-4);
      EXPECT_NEAR(by_dim[sine], std::sin(b), 1e-7);
      EXPECT_NEAR(by_dim[cosine], std::cos(b), 1e-7);
    }
  }
}

}  // namespace
}  // namespace transept
