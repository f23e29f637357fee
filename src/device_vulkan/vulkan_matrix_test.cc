// Products by a device's matrix units: what shapes and epilogues are, vulkan_ops_test.cc and vulkan_int8_test.cc
// compare. Here: a row's bits among up to 64 rows at every place, numbers at the ends of float32, what two halves keep,
// and bfloat16 weights as float16. Devices without matrices have none of these tests: Mesa's driver has them from 26.1
// on
// (./dev test --devices).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <span>

#include "device_vulkan/matrix_trial.h"
#include "device_vulkan/vulkan_model_device.h"
#include "device_vulkan/vulkan_ops.h"
#include "device_vulkan/vulkan_rig_testing.h"
#include "ops/gemm.h"
#include "ops/ops_testing.h"

namespace transept {
namespace {

using test_util::random_floats;
using testing::TimelineTest;
using testing::VulkanRigTest;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class VulkanMatrixTest : public VulkanRigTest {
 protected:
  void SetUp() override {
    VulkanRigTest::SetUp();
    if (IsSkipped()) return;
    const VulkanDeviceInfo& info = rig().shared_device()->info();
    if (!info.half_tile.has_value()) {
      ASSERT_EQ(std::getenv("TRANSEPT_TEST_MATRICES"), nullptr) << info.no_matrices;
      GTEST_SKIP() << "the device has no matrices: " << info.no_matrices;
    }
    tile_ = *info.half_tile;
  }

  DeviceWeights put(const PackedMatrix& w, bool rounds_inputs = false, uint32_t exponent = 127) {
    const std::span<const std::byte> panels = w.views().panels;
    const DeviceFormat format = w.format().weights == kFloat16Format ? DeviceFormat::kFloat16 : DeviceFormat::kBFloat16;
    return {{rig().put(panels), 0, panels.size()},
            static_cast<uint32_t>(w.n()),
            static_cast<uint32_t>(w.k()),
            format,
            {tile_.m, rounds_inputs, exponent}};
  }
  std::vector<float> product(const std::vector<float>& x, uint32_t rows, const PackedMatrix& w,
                             bool rounds_inputs = false, uint32_t exponent = 127) {
    const auto n = static_cast<uint32_t>(w.n());
    const DeviceMatrix y = make(rows, n);
    record_product(rig().recorder(), put_matrix(x, rows, static_cast<uint32_t>(w.k())), put(w, rounds_inputs, exponent),
                   {}, y);
    rig().run();
    std::vector<float> values = get(y);
    rig().clear();
    return values;
  }
  // In double precision; and the sum of magnitudes.
  static std::pair<double, double> exact(const PackedMatrix& w, int64_t output, const float* x) {
    std::vector<float> row(static_cast<size_t>(w.k()));
    w.get_row(output, row.data());
    double sum = 0, magnitudes = 0;
    for (size_t t = 0; t < row.size(); ++t) {
      sum += static_cast<double>(x[t]) * row[t];
      magnitudes += std::abs(static_cast<double>(x[t]) * row[t]);
    }
    return {sum, magnitudes};
  }

  MatrixTile tile_;
};

INSTANTIATE_TEST_SUITE_P(Builds, VulkanMatrixTest, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "Reversed" : "Straight"; });

// Row i of 64 alone; then 1 to 64 rows, each of them at every place once.
TEST_P(VulkanMatrixTest, BitsDependOnTheRowAlone) {
  constexpr uint32_t kRows = 64, kInputs = 150, kOutputs = 40;
  for (const WeightFormat& format : {kFloat16Format, kBFloat16Format}) {
    const PackedMatrix packed = test_util::pack(random_floats(kOutputs * kInputs, 2), kOutputs, kInputs, {format});
    std::vector<float> x = random_floats(kRows * kInputs, 1);
    for (uint32_t i = 0; i < kRows * kInputs; ++i) x[i] = std::ldexp(x[i], static_cast<int>(i / kInputs * 5 % 30) - 15);
    x.insert(x.end(), x.begin(), x.end());  // so that any rows are neighbours
    const DeviceMatrix in = DeviceMatrix::dense(rig().put(x), 2 * kRows, kInputs),
                       alone = rig().make_matrix(kRows, kOutputs);
    const DeviceWeights w = put(packed);
    const auto record = [&](uint32_t first, uint32_t rows, const DeviceMatrix& y) {
      record_product(rig().recorder(), DeviceMatrix::dense(in.buffer, rows, kInputs, uint64_t{first} * kInputs * 4), w,
                     {}, y);
    };
    for (uint32_t row = 0; row < kRows; ++row) {
      record(row, 1, DeviceMatrix::dense(alone.buffer, 1, kOutputs, uint64_t{row} * kOutputs * 4));
    }
    std::vector<DeviceMatrix> among;
    for (uint32_t rows = 1; rows <= kRows; ++rows) {
      among.push_back(rig().make_matrix(rows, kOutputs));
      record(rows * 7 % kRows, rows, among.back());
    }
    rig().run();
    const std::vector<float> expected = rig().values(alone.buffer, uint64_t{kRows} * kOutputs);
    for (uint32_t rows = 1; rows <= kRows; ++rows) {
      const std::vector<float> is = rig().values(among[rows - 1].buffer, uint64_t{rows} * kOutputs);
      for (uint32_t i = 0; i < rows; ++i) {
        const uint32_t row = (rows * 7 + i) % kRows;
        const auto found = std::as_bytes(std::span(is).subspan(size_t{i} * kOutputs, kOutputs));
        const auto wanted = std::as_bytes(std::span(expected).subspan(size_t{row} * kOutputs, kOutputs));
        ASSERT_TRUE(std::ranges::equal(found, wanted)) << "row " << row << " at " << i << " of " << rows;
      }
    }
    rig().clear();
  }
}

// Two halves lose 2^-22 of a number, or of the row's largest 2^-38; one float16 loses 2^-11. The rest is float32's.
TEST_P(VulkanMatrixTest, TwoHalvesKeepWhatFloat32Sums) {
  constexpr uint32_t kRows = 9, kInputs = 512, kOutputs = 33;
  const PackedMatrix packed =
      test_util::pack(random_floats(kOutputs * kInputs, 2), kOutputs, kInputs, {kFloat16Format});
  std::vector<float> x = random_floats(kRows * kInputs, 1);
  for (uint32_t i = 0; i < kRows * kInputs; ++i) x[i] = std::ldexp(x[i], static_cast<int>(i / kInputs) * 12 - 48);
  const std::vector<float> halves = product(x, kRows, packed), rounded = product(x, kRows, packed, true);
  double most = 0, most_rounded = 0;
  for (uint32_t i = 0; i < kRows; ++i) {
    for (uint32_t j = 0; j < kOutputs; ++j) {
      const auto [sum, magnitudes] = exact(packed, j, &x[size_t{i} * kInputs]);
      most = std::max(most, std::abs(halves[i * kOutputs + j] - sum) / magnitudes);
      most_rounded = std::max(most_rounded, std::abs(rounded[i * kOutputs + j] - sum) / magnitudes);
    }
  }
  EXPECT_LE(most, 0x1p-21);
  EXPECT_LE(most_rounded, 0x1p-11);
  EXPECT_GE(most_rounded, 0x1p-16) << "nothing was rounded";
}

// Zeros, one number among zeros, the ends of float32, a row whose numbers are far apart, and what is not finite.
TEST_P(VulkanMatrixTest, RowsAtTheEnds) {
  constexpr uint32_t kInputs = 70;
  const float rows[][2] = {
      {0, 0},     {1, 0},         {3e38f, -3e38f}, {1e38f, 1e-30f}, {1e-37f, -2e-37f}, {0x1p-126f, 0},
      {65504, 1}, {1e-5f, 70000}, {INFINITY, 1},   {-INFINITY, 0},  {std::nanf(""), 1}};
  constexpr auto kRows = static_cast<uint32_t>(std::size(rows));
  std::vector<float> x;
  for (const auto& row : rows) {
    for (uint32_t t = 0; t < kInputs; ++t) x.push_back(row[t % 2]);
  }
  for (const WeightFormat& format : {kFloat16Format, kBFloat16Format}) {
    const PackedMatrix packed = test_util::pack(random_floats(35 * kInputs, 2, 1e-3f), 35, kInputs, {format});
    const std::vector<float> y = product(x, kRows, packed, false, format == kFloat16Format ? 127 : 140);
    for (uint32_t i = 0; i < kRows; ++i) {
      const bool is_finite = std::isfinite(rows[i][0]) && std::isfinite(rows[i][1]);
      for (uint32_t j = 0; j < 35; ++j) {
        ASSERT_EQ(std::isnan(y[i * 35 + j]), !is_finite) << "row " << i;
        if (!is_finite) continue;
        const auto [sum, magnitudes] = exact(packed, j, &x[size_t{i} * kInputs]);
        ASSERT_NEAR(y[i * 35 + j], sum, magnitudes * 0x1p-20 + 0x1p-126) << "row " << i;
      }
    }
  }
}

// A number that one row has and another row has not does not show in the other.
TEST_P(VulkanMatrixTest, ARowThatIsNotFiniteLeavesOthersAlone) {
  constexpr uint32_t kInputs = 40, kOutputs = 40, kRows = 12;
  const PackedMatrix packed =
      test_util::pack(random_floats(kOutputs * kInputs, 2), kOutputs, kInputs, {kFloat16Format});
  std::vector<float> x = random_floats(kRows * kInputs, 1);
  const std::vector<float> expected = product(x, kRows, packed);
  x[5 * kInputs + 3] = kInfinity;
  const std::vector<float> y = product(x, kRows, packed);
  for (uint32_t i = 0; i < kRows * kOutputs; ++i) {
    if (i / kOutputs == 5) {
      EXPECT_TRUE(std::isnan(y[i]));
    } else {
      ASSERT_EQ(y[i], expected[i]) << i;
    }
  }
}

// bfloat16 weights of 2^-20 to 2^-60 times a power of two: products are those of float32 weights.
TEST_P(VulkanMatrixTest, SmallBFloat16IsScaled) {
  constexpr uint32_t kInputs = 64, kOutputs = 32;
  for (const int exponent : {-60, -20, 0, 80}) {
    const std::vector<float> w = random_floats(kOutputs * kInputs, 2, std::ldexp(1.0f, exponent)),
                             x = random_floats(kInputs, 1);
    const PackedMatrix packed = test_util::pack(w, kOutputs, kInputs, {kBFloat16Format});
    // The largest is below 8 times 2^exponent.
    const std::vector<float> y = product(x, 1, packed, false, static_cast<uint32_t>(127 + 12 - exponent));
    for (uint32_t j = 0; j < kOutputs; ++j) {
      const auto [sum, magnitudes] = exact(packed, j, x.data());
      ASSERT_NEAR(y[j], sum, magnitudes * 0x1p-20) << exponent;
    }
  }
}

TEST(HalfExponent, HoldsAllNumbersOrNone) {
  const auto exponent = [](std::initializer_list<DeviceWeightRange> found) {
    return half_exponent(std::span(found.begin(), found.size()));
  };
  // 1.0 is 0x3F80, its lowest bit 2^0: it becomes 2^15.
  EXPECT_EQ(exponent({{0x3F80, 384 - 127}}), 127u + 15);
  EXPECT_EQ(exponent({{0, 0}}), 127u);
  EXPECT_EQ(exponent({{0x3F80, 384 - 127}, {0, 0}, {0x3F00, 384 - 126}}), 127u + 15);
  EXPECT_EQ(exponent({{0x3F80, 384 - (127 - 39)}}), 127u + 15) << "2^-39 becomes 2^-24";
  EXPECT_EQ(exponent({{0x3F80, 384 - (127 - 40)}}), std::nullopt);
  EXPECT_EQ(exponent({{0x7F80, 384 - 127}}), std::nullopt) << "infinity";
  EXPECT_EQ(exponent({{0x7F00, 384 - 254}}), 15u) << "2^127 becomes 2^15";
  EXPECT_EQ(exponent({{0x0080, 384 - 1}}), 253u) << "2^-126 becomes 2^0";
  EXPECT_EQ(exponent({{0x0001, 384 + 6}}), std::nullopt) << "2^-133";
}

using VulkanWeightRangeTest = TimelineTest;

// Over several groups, and in ranges that are smaller than the numbers.
TEST_F(VulkanWeightRangeTest, FindsTheLargestAndTheLowestBit) {
  const auto timeline = make({.memory = {.max_bytes = uint64_t{1} << 16}});
  std::vector<uint16_t> numbers(100000, 0x3F80);  // 1.0
  const auto find = [&] {
    std::byte* const there = timeline->allocate(numbers.size() * 2).value();
    timeline->copy_in(there, numbers.data(), numbers.size() * 2);
    const auto found = half_exponent(*timeline, there, numbers.size() * 2);
    timeline->free(there);
    EXPECT_TRUE(found.ok()) << found.status();
    return *found;
  };
  EXPECT_EQ(find(), 127u + 15);
  numbers[70001] = 0xC080;  // -4
  EXPECT_EQ(find(), 127u + 13);
  numbers[99999] = static_cast<uint16_t>((127 - 30) << 7 | 1);  // a lowest bit of 2^-37: 2^-24 at 2^13
  EXPECT_EQ(find(), 127u + 13);
  numbers[99998] = static_cast<uint16_t>((127 - 31) << 7 | 1);
  EXPECT_EQ(find(), std::nullopt);
  numbers.assign(8, 0);
  EXPECT_EQ(find(), 127u);
  numbers[3] = 0xFF80;
  EXPECT_EQ(find(), std::nullopt);
}

}  // namespace
}  // namespace transept
