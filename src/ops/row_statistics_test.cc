// Proves what given row statistics do: those of the same rows change no bit; those of whole rows let products of parts
// of the inputs round as one product of the whole does, so that their integer sums add up exactly.
#include "ops/row_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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
    {kFloat32Format}, {kBFloat16Format, InputRounding::kBFloat16}, {kFloat16Format},
    {kInt8Format},    {kInt8Format, InputRounding::kWide},         {kInt8Format, InputRounding::kOutliers}};

class RowStatisticsTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > detect_isa()) GTEST_SKIP() << isa_name(GetParam()) << " is not present on this processor";
  }

  std::vector<RowStatistics> statistics_of(const TensorView& x) {
    std::vector<RowStatistics> found(static_cast<size_t>(x.dim(0)));
    row_statistics(context_, x, found);
    return found;
  }

  std::vector<float> product(const GemmInput& input, const PackedMatrix& w) {
    const int64_t m = input.x.dim(0);
    std::vector<float> y(static_cast<size_t>(m * w.n()));
    gemm(context_, input, w, {}, matrix(y, m, w.n()));
    return y;
  }

  ThreadPool threads_{2};
  Arena arena_{size_t{16} << 20};
  CpuDevice device_{threads_, GetParam()};
  Context context_{.device = device_, .arena = arena_};
};

INSTANTIATE_TEST_SUITE_P(Levels, RowStatisticsTest,
                         ::testing::Values(Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAmx),
                         [](const auto& param) { return std::string(isa_name(param.param)); });

TEST_P(RowStatisticsTest, AreWhatTheySay) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x(5 * 37);
  const auto at = [&](int64_t row, int64_t column) -> float& { return x[static_cast<size_t>(row * 37 + column)]; };
  at(0, 3) = 2, at(0, 36) = -3;
  at(1, 0) = 0.5f, at(1, 35) = 1.5f;  // nothing below 0
  at(2, 17) = kInfinity, at(3, 36) = std::nanf("");
  const std::vector<RowStatistics> found = statistics_of(matrix(x, 5, 37));
  const auto expect = [&](size_t row, float low, float high, float squares, float count) {
    EXPECT_EQ(found[row].low, low) << row;
    EXPECT_EQ(found[row].high, high) << row;
    EXPECT_EQ(found[row].strange, 0) << row;
    EXPECT_EQ(found[row].squares, squares) << row;
    EXPECT_EQ(found[row].count, count) << row;
  };
  expect(0, -3, 2, 13, 2);
  expect(1, 0, 1.5f, 2.5f, 2);
  expect(4, 0, 0, 0, 0);
  EXPECT_TRUE(std::isnan(found[2].strange));
  EXPECT_TRUE(std::isnan(found[3].strange));
}

TEST_P(RowStatisticsTest, OfTheSameRowsChangeNoBit) {
  for (const PackedFormat& format : kFormats) {
    for (const int64_t k : {33, 100, 512}) {
      const PackedMatrix w = pack(random_floats(70 * k, 1), 70, k, format);
      for (const int64_t m : {1, 3, 8, 37, 130}) {
        std::vector<float> rows = rows_with_outliers(m, k + 3, 2);
        const TensorView x = matrix(rows, m, k + 3).columns(0, k);
        const std::vector<RowStatistics> given = statistics_of(x);
        EXPECT_EQ(product({x, given.data()}, w), product(x, w)) << weight_format_name(format.weights) << " " << m;
      }
    }
  }
}

// Inputs [begin, end) of w, whose scales are the whole's.
PackedMatrix part_of(const PackedMatrix& w, int64_t begin, int64_t end) {
  PackedMatrix part(w.n(), end - begin, w.format());
  std::vector<int8_t> codes(static_cast<size_t>(w.k()));
  for (int64_t row = 0; row < w.n(); ++row) {
    w.get_codes(row, codes.data());
    part.set_codes(row, 1, std::span(codes).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
                   std::span(w.scales() + row, 1));
  }
  return part;
}

constexpr int64_t kOutputs = 70, kInputs = 300, kCut = 117;

// x holds multiples of 1/64 from -100/64 to 155/64, both there: the row's scale is 1/64. All scales are powers of two
// and all sums are below 2^24, so no float rounds.
TEST_P(RowStatisticsTest, SumsOfPartsAreTheWholeToTheBitWhereFloatsAreExact) {
  PackedMatrix w(kOutputs, kInputs, {kInt8Format});
  for (int64_t row = 0; row < kOutputs; ++row) {
    std::vector<int8_t> codes(kInputs);
    for (size_t t = 0; t < codes.size(); ++t)
      codes[t] = static_cast<int8_t>((row * 31 + static_cast<int64_t>(t) * 77) % 256 - 128);
    const float scale = std::ldexp(1.0f, static_cast<int>(row % 7) - 10);
    w.set_codes(row, 1, codes, std::span(&scale, 1));
  }
  const PackedMatrix first = part_of(w, 0, kCut), second = part_of(w, kCut, kInputs);
  for (const int64_t m : {1, 6, 41}) {
    std::vector<float> rows(static_cast<size_t>(m * kInputs));
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i] = static_cast<float>(static_cast<int64_t>(i * 7919 % 256) - 100) / 64;
    for (int64_t row = 0; row < m; ++row) {
      rows[static_cast<size_t>(row * kInputs + 5)] = -100.0f / 64;           // in the first part alone
      rows[static_cast<size_t>(row * kInputs + kInputs - 1)] = 155.0f / 64;  // in the second
    }
    const TensorView x = matrix(rows, m, kInputs), left = x.columns(0, kCut), right = x.columns(kCut, kInputs);
    std::vector<RowStatistics> given = statistics_of(left);
    const std::vector<RowStatistics> others = statistics_of(right);
    for (size_t row = 0; row < given.size(); ++row) given[row] = merged(given[row], others[row]);
    const std::vector<float> whole = product(x, w), a = product({left, given.data()}, first);
    const std::vector<float> b = product({right, given.data()}, second);
    for (size_t i = 0; i < whole.size(); ++i) ASSERT_EQ(a[i] + b[i], whole[i]) << m << " at " << i;
  }
}

// Of any numbers: sums that are found again by dividing through both scales. They are below 10^6, where three roundings
// of float32 move them by less than a quarter.
TEST_P(RowStatisticsTest, IntegerSumsOfPartsAddUpToTheWholes) {
  const PackedMatrix w = pack(random_floats(kOutputs * kInputs, 3), kOutputs, kInputs, {kInt8Format});
  const PackedMatrix first = part_of(w, 0, kCut), second = part_of(w, kCut, kInputs);
  for (const int64_t m : {1, 4, 41}) {
    std::vector<float> rows = rows_with_outliers(m, kInputs, 4);
    const TensorView x = matrix(rows, m, kInputs), left = x.columns(0, kCut), right = x.columns(kCut, kInputs);
    const std::vector<RowStatistics> given = statistics_of(x);
    const std::vector<float> whole = product(x, w), a = product({left, given.data()}, first);
    const std::vector<float> b = product({right, given.data()}, second);
    for (size_t i = 0; i < whole.size(); ++i) {
      const size_t row = i / kOutputs, output = i % kOutputs;
      const double scale = static_cast<double>((given[row].high - given[row].low) / 255) * w.scales()[output];
      const auto sum_of = [&](float y) {
        const double sum = y / scale;
        EXPECT_NEAR(sum, std::nearbyint(sum), 0.25);
        EXPECT_LT(std::abs(sum), 1e6);
        return std::llrint(sum);
      };
      ASSERT_EQ(sum_of(a[i]) + sum_of(b[i]), sum_of(whole[i])) << m << " at " << i;
    }
  }
}

// Wide inputs have two integers a sum, and which rows are wide is judged by the whole row.
TEST_P(RowStatisticsTest, PartsOfWideInputsAddUp) {
  for (const InputRounding inputs : {InputRounding::kWide, InputRounding::kOutliers}) {
    const PackedMatrix w = pack(random_floats(kOutputs * kInputs, 5), kOutputs, kInputs, {kInt8Format, inputs});
    const PackedMatrix first = part_of(w, 0, kCut), second = part_of(w, kCut, kInputs);
    std::vector<float> rows = rows_with_outliers(9, kInputs, 6);
    const TensorView x = matrix(rows, 9, kInputs), left = x.columns(0, kCut), right = x.columns(kCut, kInputs);
    const std::vector<RowStatistics> given = statistics_of(x);
    const std::vector<float> whole = product(x, w), a = product({left, given.data()}, first);
    const std::vector<float> b = product({right, given.data()}, second);
    // Sums of up to 60 here; a row that is rounded otherwise moves by more than 1e-3.
    for (size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(a[i] + b[i], whole[i], 2e-5) << i;
  }
}

TEST_P(RowStatisticsTest, MergedAreThoseOfTheWholeRow) {
  std::vector<float> rows = rows_with_outliers(20, kInputs, 7);
  const TensorView x = matrix(rows, 20, kInputs);
  const std::vector<RowStatistics> whole = statistics_of(x), a = statistics_of(x.columns(0, kCut)),
                                   b = statistics_of(x.columns(kCut, kInputs));
  for (size_t row = 0; row < whole.size(); ++row) {
    const RowStatistics both = merged(a[row], b[row]);
    EXPECT_EQ(both.low, whole[row].low);
    EXPECT_EQ(both.high, whole[row].high);
    EXPECT_EQ(both.strange, whole[row].strange);
    EXPECT_EQ(both.count, whole[row].count);
    EXPECT_NEAR(both.squares, whole[row].squares, 1e-5 * whole[row].squares);
  }
}

}  // namespace
}  // namespace transept
