// Proves that patches of a picture are multiplied as torch.nn.Conv2d does, against its definition in plain loops; and
// that step memory is bounded and no dry run touches a picture.
#include "layers/patch_embedding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/folder_testing.h"
#include "base/random_values_testing.h"
#include "ops/cpu_device.h"
#include "weights/safetensors_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using testing::TestFolder;

std::vector<float> random_values(int64_t count, uint32_t seed) { return testing::random_normals(count, seed, 0.3f); }

// Channels, a patch that is not square, and outputs that fill no panel.
constexpr int64_t kChannels = 3, kHeight = 4, kWidth = 5, kPatchDim = 7;
constexpr int64_t kPixels = kChannels * kHeight * kWidth;

class PatchEmbeddingTest : public ::testing::Test {
 protected:
  PatchEmbeddingTest() {
    write({kPatchDim, kChannels, kHeight, kWidth});
    weights_ = std::move(WeightMap::open(folder_.path())).value();
  }

  void write(const std::vector<int64_t>& shape) {
    folder_.write("model.safetensors",
                  testing::safetensors_bytes({{"conv.weight", "F32", shape, bytes_of(weight_)},
                                              {"conv.bias", "F32", {kPatchDim}, bytes_of(bias_)}}));
  }
  static std::string bytes_of(const std::vector<float>& values) { return testing::bytes_of(values); }

  StatusOr<PatchEmbedding> load(bool pads) {
    const PatchEmbedding::Options options{
        .prefix = "conv", .channels = kChannels, .dim = kPatchDim, .height = kHeight, .width = kWidth, .pads = pads};
    return PatchEmbedding::load(*weights_, options, threads_);
  }

  // Conv2d(kernel = stride) by its definition, over zeros beyond the picture.
  std::vector<double> expected(const std::vector<float>& picture, int64_t height, int64_t width,
                               const PatchGrid& grid) const {
    std::vector<double> y;
    for (int64_t i = 0; i < grid.rows; ++i) {
      for (int64_t j = 0; j < grid.columns; ++j) {
        for (int64_t out = 0; out < kPatchDim; ++out) y.push_back(one(picture, height, width, i, j, out));
      }
    }
    return y;
  }

  double one(const std::vector<float>& picture, int64_t height, int64_t width, int64_t i, int64_t j,
             int64_t out) const {
    double sum = bias_[static_cast<size_t>(out)];
    for (int64_t c = 0; c < kChannels; ++c) {
      for (int64_t dy = 0; dy < kHeight; ++dy) {
        for (int64_t dx = 0; dx < kWidth; ++dx) {
          const int64_t row = i * kHeight + dy, column = j * kWidth + dx;
          if (row >= height || column >= width) continue;
          sum += static_cast<double>(picture[static_cast<size_t>((c * height + row) * width + column)]) *
                 weight_[static_cast<size_t>(((out * kChannels + c) * kHeight + dy) * kWidth + dx)];
        }
      }
    }
    return sum;
  }

  TestFolder folder_;
  std::vector<float> weight_ = random_values(kPatchDim * kPixels, 1), bias_ = random_values(kPatchDim, 2);
  std::unique_ptr<WeightMap> weights_;
  ThreadPool threads_{2};
  CpuDevice device_{threads_, detect_isa()};
  Arena arena_{1 << 22};
  Context context_{device_, arena_};
};

TEST_F(PatchEmbeddingTest, IsAConvolutionWhoseStrideIsItsKernel) {
  struct Case {
    int64_t height, width;
    bool pads;
    int64_t rows, columns;
  };
  for (const Case& c : {Case{8, 15, false, 2, 3}, Case{8, 15, true, 2, 3}, Case{11, 19, false, 2, 3},
                        Case{11, 19, true, 3, 4}, Case{9, 16, true, 3, 4}, Case{160, 200, false, 40, 40}}) {
    SCOPED_TRACE(str_cat(c.height, " by ", c.width, c.pads ? " padded" : ""));
    const auto layer = load(c.pads);
    ASSERT_TRUE(layer.ok()) << layer.status();
    const PatchGrid grid = layer->grid(c.height, c.width);
    ASSERT_EQ(grid.rows, c.rows);
    ASSERT_EQ(grid.columns, c.columns);
    const std::vector<float> picture = random_values(kChannels * c.height * c.width, 3);
    const std::vector<double> sums = expected(picture, c.height, c.width, grid);
    std::vector<float> residual = random_values(grid.size() * kPatchDim, 4), y = residual;
    const TensorView out(y.data(), DType::kFloat32, {grid.size(), kPatchDim});
    layer->forward(context_, {picture, c.height, c.width}, out, out);
    for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], sums[i] + static_cast<double>(residual[i]), 1e-5) << i;
    layer->forward(context_, {picture, c.height, c.width}, {}, out);
    for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], sums[i], 1e-5) << i;
  }
}

// Of a large picture no more patches lie in memory than at once; a dry run goes by the rows of y alone.
TEST_F(PatchEmbeddingTest, StepMemoryIsBoundedAndMeasuredWithoutAPicture) {
  const auto layer = load(false);
  const auto memory = [&](int64_t rows, bool dry) {
    Arena arena = dry ? Arena::measuring() : Arena(1 << 22);
    Context context{device_, arena, dry};
    const std::vector<float> picture(dry ? 0 : static_cast<size_t>(kPixels * rows));
    std::vector<float> y(static_cast<size_t>(rows * kPatchDim));
    layer->forward(context, {picture, dry ? 0 : kHeight * rows, dry ? 0 : kWidth}, {},
                   TensorView(y.data(), DType::kFloat32, {rows, kPatchDim}));
    EXPECT_EQ(arena.num_overflows(), 0);
    return arena.high_water_bytes();
  };
  constexpr int64_t kMost = PatchEmbedding::kPatchesAtOnce;
  for (const int64_t rows : {int64_t{1}, int64_t{6}, kMost, kMost + 1, 3 * kMost + 5}) {
    EXPECT_EQ(memory(rows, true), memory(rows, false)) << rows;
  }
  EXPECT_LT(memory(6, true), memory(kMost, true));
  EXPECT_EQ(memory(kMost, true), memory(5 * kMost, true));
}

TEST_F(PatchEmbeddingTest, RefusesAnotherShapeByName) {
  write({kPatchDim, kChannels, kWidth, kHeight});
  weights_ = std::move(WeightMap::open(folder_.path())).value();
  EXPECT_THAT(error_message(load(false).status()), HasSubstr("conv.weight"));
}

}  // namespace
}  // namespace transept
