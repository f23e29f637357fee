// Proves that a view of a packed matrix is that matrix, and that bytes which cannot be one are refused before anybody
// reads past their end.
#include "ops/packed_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace transept {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kOutputs = 70, kInputs = 100;
constexpr PackedFormat kFormats[] = {
    {kFloat32Format}, {kBFloat16Format}, {kFloat16Format}, {kInt8Format}, {kInt8Format, InputRounding::kWide}};

PackedMatrix some_matrix(PackedFormat format) {
  std::vector<float> weights(kOutputs * kInputs);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>((i * 7919) % 201) - 100;
  PackedMatrix packed(kOutputs, kInputs, format);
  packed.set_rows(0, kOutputs, weights);
  return packed;
}

std::string refusal(int64_t n, int64_t k, PackedFormat format, const PackedBytes& bytes) {
  return error_message(PackedMatrix::view(n, k, format, bytes).status());
}

TEST(PackedMatrixView, IsTheMatrixThatItViews) {
  for (const PackedFormat format : kFormats) {
    const PackedMatrix packed = some_matrix(format);
    EXPECT_FALSE(packed.is_view());
    const StatusOr<PackedMatrix> view = PackedMatrix::view(kOutputs, kInputs, format, packed.views());
    ASSERT_TRUE(view.ok()) << view.status();
    EXPECT_TRUE(view->is_view());
    EXPECT_EQ(view->format(), format);
    EXPECT_EQ(view->bytes(), packed.bytes());
    EXPECT_EQ(view->panels(), packed.panels());
    EXPECT_EQ(view->scales(), packed.scales());
    EXPECT_EQ(view->sums(), packed.sums());
    EXPECT_EQ(view->depth(), packed.depth());
    EXPECT_EQ(view->num_panels(), packed.num_panels());
    for (int64_t row = 0; row < kOutputs; ++row) {
      std::vector<float> a(kInputs), b(kInputs, 1);
      packed.get_row(row, a.data());
      view->get_row(row, b.data());
      EXPECT_EQ(a, b) << row;
    }
  }
}

TEST(PackedMatrixCodes, AreKeptAsTheyAre) {
  const PackedMatrix rounded = some_matrix({kInt8Format});
  PackedMatrix packed(kOutputs, kInputs, {kInt8Format});
  std::vector<int8_t> codes(kInputs);
  for (int64_t row = 0; row < kOutputs; ++row) {
    rounded.get_codes(row, codes.data());
    packed.set_codes(row, 1, codes, std::span(rounded.scales() + row, 1));
  }
  EXPECT_TRUE(std::ranges::equal(packed.views().panels, rounded.views().panels));
  EXPECT_TRUE(std::ranges::equal(packed.views().scales, rounded.views().scales));
  EXPECT_TRUE(std::ranges::equal(packed.views().sums, rounded.views().sums));
  std::ranges::fill(codes, int8_t{-128});
  packed.set_codes(3, 1, codes, std::vector<float>{0.5f});
  std::vector<float> row(kInputs);
  packed.get_row(3, row.data());
  EXPECT_EQ(row, std::vector<float>(kInputs, -64));
  EXPECT_EQ(packed.sums()[3], -128 * kInputs);
}

// In pieces that begin and end within panels and within groups of inputs.
TEST(PackedMatrixInputs, GiveTheBytesOfRows) {
  std::vector<float> weights(kOutputs * kInputs);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>((i * 7919) % 2011) / 17 - 50;
  for (const PackedFormat format : {PackedFormat{kFloat32Format}, {kBFloat16Format}, {kFloat16Format}}) {
    PackedMatrix by_row(kOutputs, kInputs, format), by_input(kOutputs, kInputs, format);
    by_row.set_rows(0, kOutputs, weights);
    for (const auto& [row, num_rows] : {std::pair<int64_t, int64_t>{0, 3}, {3, 40}, {43, 27}}) {
      for (const auto& [input, num_inputs] : {std::pair<int64_t, int64_t>{0, 33}, {33, 64}, {97, 3}, {100, 0}}) {
        std::vector<float> turned;
        for (int64_t t = input; t < input + num_inputs; ++t) {
          for (int64_t r = row; r < row + num_rows; ++r)
            turned.push_back(weights[static_cast<size_t>(r * kInputs + t)]);
        }
        by_input.set_inputs(row, num_rows, input, num_inputs, turned);
      }
    }
    EXPECT_TRUE(std::ranges::equal(by_input.views().panels, by_row.views().panels))
        << weight_format_name(format.weights);
  }
}

// Of all inputs, since a scale belongs to them together; outputs of zeros, of hardly more, of infinity and of NaN among
// them.
TEST(PackedMatrixInputs, GiveTheCodesOfRows) {
  std::vector<float> weights(kOutputs * kInputs);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>((i * 7919) % 2011) / 17 - 50;
  const auto set_all = [&](int64_t row, float value) { std::fill_n(weights.begin() + row * kInputs, kInputs, value); };
  set_all(2, 0);
  set_all(3, 1e-31f);
  set_all(4, -1e-29f);
  weights[5 * kInputs + 7] = -std::numeric_limits<float>::infinity();
  weights[40 * kInputs + kInputs - 1] = std::numeric_limits<float>::quiet_NaN();
  weights[6 * kInputs] = -0.0f;
  PackedMatrix by_row(kOutputs, kInputs, {kInt8Format}), by_input(kOutputs, kInputs, {kInt8Format});
  by_row.set_rows(0, kOutputs, weights);
  for (const auto& [row, num_rows] : {std::pair<int64_t, int64_t>{0, 3}, {3, 40}, {43, 27}}) {
    std::vector<float> turned;
    for (int64_t t = 0; t < kInputs; ++t) {
      for (int64_t r = row; r < row + num_rows; ++r) turned.push_back(weights[static_cast<size_t>(r * kInputs + t)]);
    }
    by_input.set_inputs(row, num_rows, 0, kInputs, turned);
  }
  EXPECT_TRUE(std::ranges::equal(by_input.views().panels, by_row.views().panels));
  EXPECT_TRUE(std::ranges::equal(by_input.views().sums, by_row.views().sums));
  const std::span<const float> scales = by_row.views().scales, others = by_input.views().scales;
  EXPECT_TRUE(std::ranges::equal(std::as_bytes(others), std::as_bytes(scales)));
  EXPECT_EQ(scales[2], 0);
  EXPECT_EQ(scales[3], 0);
  EXPECT_EQ(scales[4], 1e-29f / 127);
  EXPECT_TRUE(std::isnan(scales[5]) && std::isnan(scales[40]));
}

TEST(PackedMatrixView, SizesThatDoNotFitAreRefused) {
  for (const PackedFormat format : kFormats) {
    const PackedMatrix packed = some_matrix(format);
    const PackedBytes& whole = packed.views();
    EXPECT_THAT(refusal(kOutputs + kPanelColumns, kInputs, format, whole), HasSubstr("are not those of a matrix of"));
    EXPECT_THAT(refusal(kOutputs, kInputs + kInt8Depth, format, whole), HasSubstr("are not those of a matrix of"));
    PackedBytes cut = whole;
    cut.panels = cut.panels.first(cut.panels.size() - 1);
    EXPECT_THAT(refusal(kOutputs, kInputs, format, cut), HasSubstr("are not those of a matrix of"));
    for (const auto& [n, k] : {std::pair{INT64_MAX, INT64_MAX},
                               {INT64_MAX, int64_t{1}},
                               {int64_t{-1}, int64_t{1}},
                               {int64_t{1} << 40, int64_t{1} << 40}}) {
      EXPECT_NE(refusal(n, k, format, whole), "") << n << " x " << k;
    }
    PackedBytes crooked = whole;
    const std::vector<std::byte> elsewhere(whole.panels.size() + Arena::kAlignment + 1);
    const auto address = reinterpret_cast<uintptr_t>(elsewhere.data());
    const size_t odd = Arena::kAlignment - address % Arena::kAlignment + 1;
    crooked.panels = std::span(elsewhere).subspan(odd, whole.panels.size());
    EXPECT_THAT(refusal(kOutputs, kInputs, format, crooked), HasSubstr("not aligned"));
  }
}

TEST(PackedMatrixView, ScalesAndSumsAreInt8sAndAsManyAsOutputs) {
  const PackedFormat int8{kInt8Format};
  const PackedMatrix packed = some_matrix(int8);
  PackedBytes bytes = packed.views();
  bytes.scales = bytes.scales.first(kOutputs);
  EXPECT_THAT(refusal(kOutputs, kInputs, int8, bytes), HasSubstr("70 scales and 96 sums"));
  bytes = packed.views();
  bytes.sums = {};
  EXPECT_THAT(refusal(kOutputs, kInputs, int8, bytes), HasSubstr("0 sums"));
  const PackedMatrix floats = some_matrix({});
  bytes = floats.views();
  bytes.scales = packed.views().scales;
  EXPECT_NE(refusal(kOutputs, kInputs, {}, bytes), "");
  EXPECT_THAT(refusal(kOutputs, kInputs, {kFloat32Format, InputRounding::kWide}, floats.views()),
              HasSubstr("wide inputs"));
}

TEST(PackedMatrixView, ASumThatNoWeightsHaveIsRefused) {
  const PackedFormat int8{kInt8Format};
  const PackedMatrix packed = some_matrix(int8);
  std::vector<int32_t> sums(packed.views().sums.begin(), packed.views().sums.end());
  PackedBytes bytes = packed.views();
  bytes.sums = sums;
  sums[69] = -128 * kInputs;
  EXPECT_EQ(refusal(kOutputs, kInputs, int8, bytes), "");
  for (const int32_t sum : {128 * static_cast<int32_t>(kInputs) + 1, INT32_MIN, INT32_MAX}) {
    sums[69] = sum;
    EXPECT_THAT(refusal(kOutputs, kInputs, int8, bytes), HasSubstr("a sum of 100 weights is"));
  }
}

}  // namespace
}  // namespace transept
