#include "layers/feed_forward.h"

#include <gtest/gtest.h>

#include "base/folder_testing.h"
#include "base/random_values_testing.h"
#include "ops/cpu_device.h"
#include "weights/safetensors_testing.h"

namespace transept {
namespace {

constexpr int64_t kModelDim = 32, kHidden = 96;

std::vector<float> random_inputs(size_t count, uint32_t seed) {
  return testing::random_normals(static_cast<int64_t>(count), seed, 0.3f);
}

testing::TestTensor matrix(const std::string& name, int64_t out, int64_t in, uint32_t seed) {
  return {name, "F32", {out, in}, testing::bytes_of(random_inputs(static_cast<size_t>(out * in), seed))};
}

// A block of kDim by kHidden in the storage that the parameter names.
class FeedForwardTest : public ::testing::TestWithParam<WeightFormat> {
 protected:
  FeedForwardTest() {
    folder_.write("model.safetensors", testing::safetensors_bytes({matrix("up.weight", kHidden, kModelDim, 1),
                                                                   matrix("gate.weight", kHidden, kModelDim, 2),
                                                                   matrix("down.weight", kModelDim, kHidden, 3)}));
  }

  FeedForward load(bool gated) {
    weights_ = std::move(*WeightMap::open(folder_.path()));
    FeedForward::Options options{.up = "up", .down = "down", .dim = kModelDim, .hidden_dim = kHidden};
    options.has_biases = false;
    if (gated) options.gate = "gate";
    return *FeedForward::load(*weights_, options, PackOptions(threads_, GetParam(), nullptr));
  }

  std::vector<float> run(const FeedForward& block, const std::vector<float>& x) {
    std::vector<float> in = x, y = x;  // y is the residual too
    const auto rows = static_cast<int64_t>(x.size()) / kModelDim;
    Arena arena(size_t{8} << 20);
    CpuDevice device{threads_, detect_isa()};
    Context context{device, arena};
    const TensorView out(y.data(), DType::kFloat32, {rows, kModelDim});
    block.forward(context, {in.data(), DType::kFloat32, {rows, kModelDim}}, out, out);
    return y;
  }

  size_t memory_of(const FeedForward& block, int64_t rows) {
    Arena arena = Arena::measuring();
    CpuDevice device{threads_, detect_isa()};
    Context context{device, arena, true};
    const TensorView x = arena.tensor(DType::kFloat32, {rows, kModelDim});
    const size_t before = arena.high_water_bytes();
    block.forward(context, x, x, x);
    return arena.high_water_bytes() - before;
  }

  testing::TestFolder folder_;
  ThreadPool threads_{2};
  std::unique_ptr<WeightMap> weights_;
};

TEST_P(FeedForwardTest, ARowIsTheSameAmongManyAsAlone) {
  constexpr int64_t kRows = 1030;  // two whole slices and a short one
  const std::vector<float> x = random_inputs(static_cast<size_t>(kRows * kModelDim), 7);
  for (const bool gated : {false, true}) {
    const FeedForward block = load(gated);
    const std::vector<float> together = run(block, x);
    ASSERT_NE(together, x);
    for (const int64_t row : {0, 1, 511, 512, 513, 1023, 1024, 1029}) {
      const auto begin = row * kModelDim;
      const std::vector<float> alone = run(block, {x.begin() + begin, x.begin() + begin + kModelDim});
      EXPECT_EQ(alone, std::vector<float>(together.begin() + begin, together.begin() + begin + kModelDim))
          << "row " << row << (gated ? ", gated" : "");
    }
  }
}

TEST_P(FeedForwardTest, ManyRowsWantNoMoreMemoryThanASlice) {
  const FeedForward block = load(false);
  size_t most = 0;
  for (const int64_t rows : {1, 100, 511, 512}) {
    const size_t bytes = memory_of(block, rows);
    EXPECT_GE(bytes, static_cast<size_t>(rows * kHidden) * sizeof(float));
    EXPECT_GE(bytes, most) << "start-up measures the most rows that a step may have";
    most = bytes;
  }
  for (const int64_t rows : {513, 1024, 3000}) EXPECT_EQ(memory_of(block, rows), most) << rows << " rows";
}

INSTANTIATE_TEST_SUITE_P(Storages, FeedForwardTest,
                         ::testing::Values(kFloat32Format, kBFloat16Format, kFloat16Format, kInt8Format));

}  // namespace
}  // namespace transept
