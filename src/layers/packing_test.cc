#include "layers/packing.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "layers/transposed_source.h"
#include "weights/safetensors_testing.h"
#include "weights/strides.h"
#include "weights/tensor_matrix.h"

namespace transept {
namespace {

// A map without a tensor that matters: load_matrix() asks it for packed matrices alone.
std::unique_ptr<WeightMap> empty_map(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / name;
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "model.safetensors", std::ios::binary)
      << testing::safetensors_bytes({{"x", "F32", {1}, std::string(4, '\0')}});
  return std::move(WeightMap::open(folder.string())).value();
}

// One matrix of n outputs of k inputs, in row-major order and the other way round.
struct BothOrders {
  int64_t n, k;
  std::vector<float> by_output, by_input;

  BothOrders(int64_t outputs, int64_t inputs, uint64_t seed) : n(outputs), k(inputs) {
    by_output.resize(static_cast<size_t>(n * k));
    by_input.resize(by_output.size());
    for (int64_t i = 0; i < n * k; ++i) {
      const float value = static_cast<float>((static_cast<uint64_t>(i) + seed) * 2654435761u % 4001) / 64 - 31;
      by_output[static_cast<size_t>(i)] = value;
      by_input[static_cast<size_t>(i % k * n + i / k)] = value;
    }
  }

  std::unique_ptr<MatrixSource> rows() const {
    const WeightView view{"w", DType::kFloat32, {n, k}, std::as_bytes(std::span(by_output)), nullptr};
    return std::make_unique<TensorMatrix>(view, false);
  }
  std::unique_ptr<MatrixSource> strided() const {
    const WeightView view{"w", DType::kFloat32, {n, k}, std::as_bytes(std::span(by_input)), nullptr};
    return std::make_unique<StridedMatrix>(view, std::vector<int64_t>{1, n});
  }
  // As Conv1D stores it; and that, turned in its file.
  std::unique_ptr<MatrixSource> stored_by_input(bool is_turned) const {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(is_turned ? by_output : by_input));
    const WeightView view{"w", DType::kFloat32, {k, n}, bytes, nullptr};
    if (!is_turned) return std::make_unique<TransposedSource>(std::make_unique<TensorMatrix>(view, false));
    return std::make_unique<TransposedSource>(std::make_unique<StridedMatrix>(view, std::vector<int64_t>{1, k}));
  }
};

// However files hold their matrices, and whatever part is kept: the bytes of packed rows are the same.
TEST(PackingTest, MatricesByInputsAreThoseByOutputs) {
  const std::unique_ptr<WeightMap> weights = empty_map("packing_by_inputs");
  ThreadPool threads(3);
  const BothOrders first(1100, 70, 1), second(90, 70, 5);
  for (const auto& [rows, columns] : {std::pair<std::vector<IndexRange>, IndexRange>{{{0, 1190}}, {0, 70}},
                                      {{{3, 40}, {1030, 1187}}, {0, 70}},
                                      {{{0, 1190}}, {17, 66}}}) {
    for (const WeightFormat& storage : {kFloat32Format, kFloat16Format, kBFloat16Format, kInt8Format}) {
      const PackOptions options(threads, storage, nullptr);
      const MatrixToLoad wanted{"w", 1190, 70, LayerInputs::kUsual, rows, columns};
      const auto packed = [&](auto... sources) {
        return std::move(load_matrix(options, *weights, wanted,
                                     [&]() -> StatusOr<MatrixSources> {
                                       MatrixSources both;
                                       (both.push_back(std::move(sources)), ...);
                                       return both;
                                     }))
            .value();
      };
      const PackedMatrix expected = packed(first.rows(), second.rows());
      const auto same = [&](const PackedMatrix& other) {
        return std::ranges::equal(other.views().panels, expected.views().panels) &&
               std::ranges::equal(other.views().scales, expected.views().scales);
      };
      const std::string name = weight_format_name(storage);
      EXPECT_TRUE(same(packed(first.strided(), second.strided()))) << name;
      EXPECT_TRUE(same(packed(first.strided(), second.rows()))) << name;
      EXPECT_TRUE(same(packed(first.stored_by_input(false), second.stored_by_input(true)))) << name;
    }
  }
}

// More than is in memory at a time.
TEST(PackingTest, LargeMatricesByInputsGoInSteps) {
  const std::unique_ptr<WeightMap> weights = empty_map("packing_in_steps");
  ThreadPool threads(2);
  const PackOptions options(threads);
  const BothOrders both(70'001, 67, 3);
  const MatrixToLoad wanted{"w", both.n, both.k};
  const auto packed = [&](std::unique_ptr<MatrixSource> source) {
    return std::move(load_matrix(options, *weights, wanted,
                                 [&]() -> StatusOr<MatrixSources> {
                                   MatrixSources one;
                                   one.push_back(std::move(source));
                                   return one;
                                 }))
        .value();
  };
  EXPECT_TRUE(std::ranges::equal(packed(both.strided()).views().panels, packed(both.rows()).views().panels));
}

PackedFormat format_of(std::optional<WeightFormat> asked, WeightFormat stored,
                       LayerInputs inputs = LayerInputs::kUsual) {
  ThreadPool threads(1);
  return choose_format(PackOptions(threads, asked, nullptr), {"a.weight", 200, 300, inputs}, stored);
}

TEST(PackingTest, InputsAreRoundedToBFloat16OnlyForWhoAsksForIt) {
  const PackedFormat exact = {kBFloat16Format}, asked = {kBFloat16Format, InputRounding::kBFloat16};
  EXPECT_EQ(format_of(std::nullopt, kBFloat16Format), exact) << "a checkpoint's bytes are no wish";
  EXPECT_EQ(format_of(kBFloat16Format, kBFloat16Format), asked);
  EXPECT_EQ(format_of(kBFloat16Format, kFloat32Format), asked);
  EXPECT_EQ(format_of(kBFloat16Format, kFloat32Format, LayerInputs::kOutliers), asked);
  EXPECT_EQ(format_of(kBFloat16Format, kFloat32Format, LayerInputs::kRaw), exact) << "raw samples keep their bits";
  EXPECT_EQ(format_of(kInt8Format, kBFloat16Format, LayerInputs::kRaw), exact);
}

TEST(PackingTest, OfInt8WhatInputsAreLikeSaysHowTheyAreRounded) {
  const PackedFormat usual = {kInt8Format}, wide = {kInt8Format, InputRounding::kWide},
                     outliers = {kInt8Format, InputRounding::kOutliers};
  EXPECT_EQ(format_of(kInt8Format, kFloat32Format), usual);
  EXPECT_EQ(format_of(kInt8Format, kFloat32Format, LayerInputs::kConvolution), wide);
  EXPECT_EQ(format_of(kInt8Format, kFloat32Format, LayerInputs::kOutliers), outliers);
}

TEST(PackingTest, Int4KeepsCodesAndLeavesWhatItDoesNotHoldToInt8) {
  ThreadPool threads(1);
  PackOptions options(threads, kInt4Format, nullptr);
  const auto format = [&](int64_t n, int64_t k, const WeightFormat& stored, LayerInputs inputs = LayerInputs::kUsual) {
    return choose_format(options, {"a.weight", n, k, inputs}, stored);
  };
  const PackedFormat rounded{kInt4Format, InputRounding::kGroups};
  EXPECT_EQ(format(200, 256, kFloat32Format), rounded);
  EXPECT_EQ(format(200, 256, kFloat16Format, LayerInputs::kOutliers), rounded);
  EXPECT_EQ(format(200, 256, int4_format(64, true)), (PackedFormat{int4_format(64, true), InputRounding::kGroups}));
  EXPECT_EQ(format(200, 256, float4_format(64)), PackedFormat{float4_format(64)});
  EXPECT_EQ(format(200, 300, kFloat32Format), PackedFormat{kInt8Format}) << "no whole groups";
  EXPECT_EQ(format(200, 544, kFloat32Format), PackedFormat{kInt8Format}) << "leaves of no whole bytes";
  EXPECT_EQ(format(200, 256, kFloat32Format, LayerInputs::kConvolution),
            (PackedFormat{kInt8Format, InputRounding::kWide}));
  EXPECT_EQ(format(200, 256, kFloat16Format, LayerInputs::kRaw), PackedFormat{kFloat16Format});
  options.least_int8_width = 192;
  EXPECT_EQ(format(191, 256, kFloat16Format), PackedFormat{kFloat16Format});
  EXPECT_EQ(format(191, 256, int4_format(32)), PackedFormat{int4_format(32)})
      << "codes stay, and inputs are not rounded";
}

TEST(PackingTest, CodesOf4BitsStayWhereGroupsFit) {
  for (const WeightFormat& stored : {int4_format(32), int4_format(128, true), int4_format(0), float4_format(64)}) {
    ThreadPool threads(1);
    const auto kept = [&](int64_t k) { return choose_format(PackOptions(threads), {"a", 200, k}, stored).weights; };
    EXPECT_EQ(kept(512), stored);
    EXPECT_EQ(kept(500), kFloat32Format);
    EXPECT_EQ(kept(544), kFloat32Format) << "8 leaves of 68 inputs";
  }
  EXPECT_EQ(format_of(std::nullopt, int4_format(20)), PackedFormat{kFloat32Format});
  EXPECT_EQ(format_of(std::nullopt, kFloat4Format), PackedFormat{kFloat32Format});
}

TEST(PackingTest, TheReportNamesWhatCodesAreKeptAs) {
  const std::vector<PackedLayer> layers = {{"a", {int4_format(32, true)}, 2048, 1, 1, int4_format(32, true)},
                                           {"b", {kFloat32Format}, 1 << 20, 64, 64, int4_format(20)},
                                           {"c", {float4_format(64)}, 1024, 1, 1, float4_format(64)}};
  EXPECT_EQ(storage_text(layers),
            "int4-g32-zeros 2.0 KiB in 1 matrix, float4-g64 1.0 KiB in 1 matrix, float32 1.0 MiB "
            "in 1 matrix; widened from int4-g20: 1 matrix, 2.0 KiB to 1.0 MiB");
}

}  // namespace
}  // namespace transept
