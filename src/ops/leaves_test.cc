// Proves the order in which products sum in leaves (ops/gemm.h), to the bit and at every level present: against the
// tree written out as a recursion over chains of fma, and over ranks that have some of the leaves each.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "base/sanitized_testing.h"
#include "ops/cpu_device.h"
#include "ops/gemm.h"
#include "ops/ops_testing.h"

namespace transept {
namespace {

using test_util::matrix;
using test_util::pack;
using test_util::random_floats;
using test_util::rows_with_outliers;

constexpr PackedFormat kFormats[] = {
    {kFloat32Format}, {kBFloat16Format}, {kBFloat16Format, InputRounding::kBFloat16}, {kFloat16Format}};
constexpr PackedFormat kInt8Formats[] = {
    {kInt8Format}, {kInt8Format, InputRounding::kWide}, {kInt8Format, InputRounding::kOutliers}};

// How a level adds a product to a sum: plain code rounds twice.
enum class Chain { kTwoRoundings, kFused, kPairs, kTiles };

Chain chain_of(const PackedFormat& format, Isa isa) {
  if (multiplies_in_bfloat16(format, isa)) return isa >= Isa::kAmx ? Chain::kTiles : Chain::kPairs;
  return isa == Isa::kGeneric ? Chain::kTwoRoundings : Chain::kFused;
}

float rounded(float x) { return bfloat16_to_float(float_to_bfloat16(x)); }

// Inputs [begin, end) of one output. Of rounded inputs vectors add those of a pair one after the other, the second one
// first (VDPBF16PS); tiles add the even and the odd ones of every 32 apart.
float leaf_as_defined(const float* x, const float* w, int64_t begin, int64_t end, Chain chain) {
  float sum = 0;
  if (chain == Chain::kPairs) {
    for (int64_t t = begin; t < end; t += 2) {
      if (t + 1 < end) sum += rounded(x[t + 1]) * w[t + 1];
      sum += rounded(x[t]) * w[t];
    }
    return sum;
  }
  if (chain != Chain::kTiles) {
    for (int64_t t = begin; t < end; ++t) sum = chain == Chain::kFused ? std::fma(x[t], w[t], sum) : x[t] * w[t] + sum;
    return sum;
  }
  for (int64_t from = begin; from < end; from += 32) {
    float even = 0, odd = 0;
    for (int64_t t = from; t < std::min(from + 32, end); ++t) {
      float& part = t % 2 == 0 ? even : odd;
      part = std::fma(rounded(x[t]), w[t], part);
    }
    sum += even + odd;
  }
  return sum;
}

// Leaves [first, last) of `leaves` of k inputs.
float tree_as_defined(const float* x, const float* w, int64_t k, int64_t leaves, int64_t first, int64_t last,
                      Chain chain) {
  if (last - first == 1) return leaf_as_defined(x, w, first * k / leaves, last * k / leaves, chain);
  const int64_t middle = (first + last) / 2;
  return tree_as_defined(x, w, k, leaves, first, middle, chain) + tree_as_defined(x, w, k, leaves, middle, last, chain);
}

std::vector<float> rows_of(const PackedMatrix& packed) {
  std::vector<float> w(static_cast<size_t>(packed.n() * packed.k()));
  for (int64_t i = 0; i < packed.n(); ++i) packed.get_row(i, w.data() + i * packed.k());
  return w;
}

class LeavesTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > detect_isa()) GTEST_SKIP() << isa_name(GetParam()) << " is not present on this processor";
  }

  std::vector<float> product(const TensorView& x, const PackedMatrix& w, int32_t leaves,
                             const Epilogue& epilogue = {}) {
    std::vector<float> y(static_cast<size_t>(x.dim(0) * w.n()));
    gemm(context_, {x, nullptr, leaves}, w, epilogue, matrix(y, x.dim(0), w.n()));
    return y;
  }

  // Each rank has the matrix of its inputs alone, and the sums of ranks are added as comm/reduce.h does.
  std::vector<float> product_over(int32_t ranks, const TensorView& rows, const PackedMatrix& w, int32_t leaves);

  ThreadPool threads_{2};
  Arena arena_{size_t{32} << 20};
  CpuDevice device_{threads_, GetParam()};
  Context context_{.device = device_, .arena = arena_};
  std::mt19937 random_{7};
};

INSTANTIATE_TEST_SUITE_P(Levels, LeavesTest,
                         ::testing::Values(Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAvx512Bf16,
                                           Isa::kAvx512Fp16, Isa::kAmx),
                         [](const auto& param) { return std::string(isa_name(param.param)); });

std::string about(const PackedFormat& format, int64_t m, int64_t n, int64_t k, int64_t leaves) {
  return weight_format_name(format.weights) + (format.inputs == InputRounding::kBFloat16 ? ", rounded inputs" : "") +
         " m " + std::to_string(m) + " n " + std::to_string(n) + " k " + std::to_string(k) + " leaves " +
         std::to_string(leaves);
}

// Every number of rows that has a tile of its own shape, and of panels; random lengths of leaves.
TEST_P(LeavesTest, HaveTheTreesBits) {
  for (const PackedFormat& format : kFormats) {
    const Chain chain = chain_of(format, GetParam());
    const int64_t granule = format.inputs == InputRounding::kBFloat16 ? 32 : format.weights == kBFloat16Format ? 2 : 1;
    int count = 0;
    for (const int64_t m : {1, 2, 3, 5, 8, 9, 13, 14, 17, 29, 33, 45, 64, 100}) {
      for (const int32_t leaves : {1, 2, 4, 8}) {
        if (kSanitized && ++count % 3 != 0) continue;  // 3 is prime to 14 and to 4: each comes
        const auto draw = [&](int64_t least, int64_t most) {
          return std::uniform_int_distribution<int64_t>(least, most)(random_);
        };
        const int64_t n = draw(1, 140), k = leaves * granule * draw(1, std::max<int64_t>(2, 40 / granule));
        std::vector<float> x = rows_with_outliers(m, k + 3, static_cast<uint32_t>(m)), bias = random_floats(n, 3);
        std::vector<float> residual = random_floats(m * n, 4);
        const PackedMatrix packed = pack(random_floats(n * k, 2), n, k, format);
        const std::vector<float> w = rows_of(packed);
        const std::vector<float> y =
            product(matrix(x, m, k + 3).columns(0, k), packed, leaves,
                    {.bias = bias.data(), .activation = Activation::kRelu, .residual = matrix(residual, m, n)});
        for (int64_t i = 0; i < m * n; ++i) {
          const int64_t row = i / n, column = i % n;
          const float sum =
              tree_as_defined(x.data() + row * (k + 3), w.data() + column * k, k, leaves, 0, leaves, chain);
          const float expected =
              std::max(sum + bias[static_cast<size_t>(column)], 0.0f) + residual[static_cast<size_t>(i)];
          ASSERT_EQ(y[static_cast<size_t>(i)], expected)
              << about(format, m, n, k, leaves) << " at " << row << ", " << column;
        }
      }
    }
  }
}

// Many rows over blocks, and on more threads than one: against rows alone.
TEST_P(LeavesTest, DoNotDependOnTheRestOfTheBatch) {
  constexpr int64_t kRows = 230, kOutputs = 100, kInputs = 512;
  for (const PackedFormat& format : kFormats) {
    const PackedMatrix w = pack(random_floats(kOutputs * kInputs, 2), kOutputs, kInputs, format);
    std::vector<float> x = random_floats(kRows * kInputs, 1);
    const TensorView rows = matrix(x, kRows, kInputs);
    const std::vector<float> together = product(rows, w, 8);
    for (int64_t row = 0; row < kRows; row += 7) {
      const std::vector<float> alone = product(rows.rows(row, row + 1), w, 8);
      ASSERT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + row * kOutputs))
          << about(format, kRows, kOutputs, kInputs, 8) << " row " << row;
    }
    EXPECT_NE(together, product(rows, w, 4)) << "another tree has other bits";
  }
}

// Inputs [begin, end) of w.
PackedMatrix part_of(const PackedMatrix& w, int64_t begin, int64_t end) {
  PackedMatrix part(w.n(), end - begin, w.format());
  std::vector<float> row(static_cast<size_t>(w.k()));
  for (int64_t i = 0; i < w.n(); ++i) {
    w.get_row(i, row.data());
    part.set_row(i, std::span(row).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
  }
  return part;
}

// A power of two of vectors.
std::vector<float> added_in_pairs(std::vector<std::vector<float>> sums) {
  while (sums.size() > 1) {
    std::vector<std::vector<float>> pairs;
    for (size_t i = 0; i < sums.size(); i += 2) {
      pairs.push_back(sums[i]);
      for (size_t j = 0; j < sums[i].size(); ++j) pairs.back()[j] += sums[i + 1][j];
    }
    sums = std::move(pairs);
  }
  return std::move(sums.front());
}

std::vector<float> LeavesTest::product_over(int32_t ranks, const TensorView& rows, const PackedMatrix& w,
                                            int32_t leaves) {
  std::vector<std::vector<float>> sums;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const int64_t begin = w.k() * rank / ranks, end = w.k() * (rank + 1) / ranks;
    sums.push_back(product(rows.columns(begin, end), part_of(w, begin, end), leaves / ranks));
  }
  return added_in_pairs(std::move(sums));
}

TEST_P(LeavesTest, OverRanksHaveTheBitsOfOne) {
  for (const PackedFormat& format : kFormats) {
    for (const int64_t k : {256, 768}) {
      const int32_t leaves = num_leaves(k, format);
      const PackedMatrix w = pack(random_floats(70 * k, 2), 70, k, format);
      for (const int64_t m : {1, 7, 20, 60}) {
        std::vector<float> x = random_floats(m * k, 1);
        const TensorView rows = matrix(x, m, k);
        const std::vector<float> whole = product(rows, w, leaves);
        for (int32_t ranks = 2; ranks <= leaves; ranks *= 2) {
          ASSERT_EQ(product_over(ranks, rows, w, leaves), whole)
              << about(format, m, 70, k, leaves) << " over " << ranks;
        }
      }
    }
  }
}

TEST_P(LeavesTest, ChangeNoBitOfInt8) {
  for (const PackedFormat& format : kInt8Formats) {
    const PackedMatrix w = pack(random_floats(70 * 512, 2), 70, 512, format);
    for (const int64_t m : {1, 9, 40}) {
      std::vector<float> x = rows_with_outliers(m, 512, 1);
      EXPECT_EQ(product(matrix(x, m, 512), w, 8), product(matrix(x, m, 512), w, 1));
    }
  }
}

TEST(NumLeavesTest, DivideTheInputs) {
  const PackedFormat whole{kFloat32Format}, half{kFloat16Format}, pairs{kBFloat16Format},
      tiles{kBFloat16Format, InputRounding::kBFloat16};
  for (const PackedFormat& format : {whole, half, pairs, tiles}) {
    EXPECT_EQ(num_leaves(768, format), 8);
    EXPECT_EQ(num_leaves(3072, format), 8);
  }
  EXPECT_EQ(num_leaves(384, whole), 4) << "shorter leaves cost too much";
  EXPECT_EQ(num_leaves(520, whole), 8);
  EXPECT_EQ(num_leaves(520, pairs), 4);
  EXPECT_EQ(num_leaves(520, tiles), 1);
  EXPECT_EQ(num_leaves(544, tiles), 1);
  EXPECT_EQ(num_leaves(576, tiles), 2);
  EXPECT_EQ(num_leaves(519, pairs), 1);
  EXPECT_EQ(num_leaves(514, whole), 2);
  EXPECT_EQ(num_leaves(12, half), 4);
}

}  // namespace
}  // namespace transept
