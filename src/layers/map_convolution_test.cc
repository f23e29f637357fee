// Convolutions over pictures and maps, depthwise ones and attention between channels against their definitions in plain
// loops of double precision, with weights from a checkpoint; and that no dry run takes less memory than a step.
#include "layers/map_convolution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/folder_testing.h"
#include "base/random_values_testing.h"
#include "layers/channel_attention.h"
#include "layers/depthwise_conv.h"
#include "ops/cpu_device.h"
#include "weights/safetensors_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using testing::TestFolder;

std::vector<float> random_values(int64_t count, uint32_t seed, float size = 0.5f) {
  return testing::random_normals(count, seed, size);
}

TensorView view_of(std::vector<float>& values, int64_t rows) {
  return {values.data(), DType::kFloat32, {rows, std::ssize(values) / rows}};
}

class LayerTest : public ::testing::Test {
 protected:
  void add(const std::string& name, std::vector<int64_t> shape, float size = 0.5f) {
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    values_[name] = random_values(count, static_cast<uint32_t>(values_.size() + 1), size);
    tensors_.push_back({name, "F32", std::move(shape), testing::bytes_of(values_[name])});
  }
  void open() {
    folder_.write("model.safetensors", testing::safetensors_bytes(tensors_));
    weights_ = std::move(WeightMap::open(folder_.path())).value();
  }
  double value(const std::string& name, int64_t index) const {
    return static_cast<double>(values_.at(name)[static_cast<size_t>(index)]);
  }

  TestFolder folder_;
  std::vector<testing::TestTensor> tensors_;
  std::map<std::string, std::vector<float>> values_;
  std::unique_ptr<WeightMap> weights_;
  ThreadPool threads_{2};
  CpuDevice device_{threads_};
  Arena arena_{size_t{1} << 24};
  Context context_{.device = device_, .arena = arena_};
};

class MapConvolutionTest : public LayerTest {
 protected:
  static constexpr int64_t kChannels = 3, kDim = 7;

  void load(const PictureConv& shape) {
    shape_ = shape;
    add("conv.weight", {kDim, kChannels, shape.kernel, shape.kernel}, 0.2f);
    add("conv.bias", {kDim});
    open();
    conv_ = MapConvolution::load(*weights_, {"conv", kChannels, kDim, shape}, threads_).value();
  }
  // pixel(channel, row, column) is asked for places of the map alone.
  template <typename F>
  double expected(const MapSize& map, int64_t row, int64_t column, int64_t out, const F& pixel) const {
    double sum = value("conv.bias", out);
    for (int64_t channel = 0; channel < kChannels; ++channel) {
      for (int64_t i = 0; i < shape_.kernel; ++i) {
        for (int64_t j = 0; j < shape_.kernel; ++j) {
          const int64_t y = row * shape_.stride - shape_.padding + i, x = column * shape_.stride - shape_.padding + j;
          if (y < 0 || y >= map.height || x < 0 || x >= map.width) continue;
          const int64_t place = ((out * kChannels + channel) * shape_.kernel + i) * shape_.kernel + j;
          sum += value("conv.weight", place) * static_cast<double>(pixel(channel, y, x));
        }
      }
    }
    return sum;
  }

  PictureConv shape_;
  std::optional<MapConvolution> conv_;
};

constexpr MapSize kMaps[] = {{7, 7}, {9, 4}, {5, 13}, {6, 6}, {210, 160}};

TEST_F(MapConvolutionTest, IsTorchsConv2d) {
  for (const PictureConv& shape : {PictureConv{7, 4, 3}, {3, 2, 1}, {3, 1, 0}, {2, 3, 0}, {1, 1, 0}}) {
    tensors_.clear();
    load(shape);
    for (const MapSize& map : kMaps) {
      if (conv_->output(map).num_rows() == 0) continue;
      // The same picture as planes and as rows.
      const std::vector<float> planes = random_values(kChannels * map.num_rows(), 9, 1);
      std::vector<float> rows(planes.size());
      const auto pixel = [&](int64_t channel, int64_t y, int64_t x) {
        return planes[static_cast<size_t>((channel * map.height + y) * map.width + x)];
      };
      for (int64_t i = 0; i < std::ssize(rows); ++i) {
        const int64_t place = i / kChannels;
        rows[static_cast<size_t>(i)] = pixel(i % kChannels, place / map.width, place % map.width);
      }
      const MapSize output = conv_->output(map);
      std::vector<float> of_picture(static_cast<size_t>(output.num_rows() * kDim)), of_map(of_picture.size());
      conv_->forward(context_, PictureView{planes, map.height, map.width}, view_of(of_picture, output.num_rows()));
      conv_->forward(context_, map, view_of(rows, map.num_rows()), view_of(of_map, output.num_rows()));
      EXPECT_EQ(of_picture, of_map);
      for (int64_t i = 0; i < std::ssize(of_map); ++i) {
        const int64_t row = i / kDim;
        ASSERT_NEAR(of_map[static_cast<size_t>(i)],
                    expected(map, row / output.width, row % output.width, i % kDim, pixel), 2e-5)
            << "kernel " << shape.kernel << ", map " << map.height << " x " << map.width << ", " << i;
      }
    }
  }
}

TEST_F(MapConvolutionTest, ADryRunGoesByTheResult) {
  load({3, 2, 1});
  const MapSize map{300, 200};
  std::vector<float> x(static_cast<size_t>(map.num_rows() * kChannels));
  std::vector<float> y(static_cast<size_t>(conv_->output(map).num_rows() * kDim));
  Arena measuring = Arena::measuring();
  Context dry{.device = device_, .arena = measuring, .dry_run = true};
  conv_->forward(dry, {1, 1}, view_of(x, map.num_rows()), view_of(y, conv_->output(map).num_rows()));
  conv_->forward(dry, PictureView{}, view_of(y, conv_->output(map).num_rows()));
  conv_->forward(context_, map, view_of(x, map.num_rows()), view_of(y, conv_->output(map).num_rows()));
  EXPECT_GE(measuring.high_water_bytes(), arena_.high_water_bytes());
  EXPECT_LT(arena_.high_water_bytes(), size_t{4} << 20) << "memory is bounded, whatever the map";
}

TEST_F(MapConvolutionTest, RefusesAnotherShapeByName) {
  add("conv.weight", {kDim, kChannels, 3, 2});
  add("conv.bias", {kDim});
  open();
  const auto loaded = MapConvolution::load(*weights_, {"conv", kChannels, kDim, {3, 2, 1}}, threads_);
  EXPECT_THAT(error_message(loaded.status()), HasSubstr("conv.weight"));
}

using DepthwiseConvTest = LayerTest;

TEST_F(DepthwiseConvTest, ReadsTheCheckpointsTaps) {
  constexpr int64_t kDim = 5;
  constexpr MapSize kMap{4, 3};
  add("conv.weight", {kDim, 1, 3, 3});
  add("conv.bias", {kDim});
  open();
  const DepthwiseConv conv = DepthwiseConv::load(*weights_, "conv", kDim).value();
  std::vector<float> x = random_values(kMap.num_rows() * kDim, 9, 1), y(x.size());
  conv.forward(context_, kMap, view_of(x, kMap.num_rows()), view_of(y, kMap.num_rows()));
  for (int64_t i = 0; i < std::ssize(y); ++i) {
    const int64_t row = i / kDim / kMap.width, column = i / kDim % kMap.width, c = i % kDim;
    double sum = static_cast<double>(x[static_cast<size_t>(i)]) + value("conv.bias", c);
    for (int64_t down = 0; down < 3; ++down) {
      for (int64_t right = 0; right < 3; ++right) {
        const int64_t from_row = row + down - 1, from_column = column + right - 1;
        if (from_row < 0 || from_row >= kMap.height || from_column < 0 || from_column >= kMap.width) continue;
        const auto from = static_cast<size_t>((from_row * kMap.width + from_column) * kDim + c);
        sum += value("conv.weight", c * 9 + down * 3 + right) * static_cast<double>(x[from]);
      }
    }
    ASSERT_NEAR(y[static_cast<size_t>(i)], sum, 1e-5) << i;
  }
  EXPECT_THAT(error_message(DepthwiseConv::load(*weights_, "conv", kDim + 1).status()), HasSubstr("conv.weight"));
}

class ChannelAttentionTest : public LayerTest {
 protected:
  static constexpr int64_t kDim = 12, kGroups = 3, kWidth = kDim / kGroups;

  ChannelAttentionTest() {
    add("a.qkv.weight", {3 * kDim, kDim}, 0.3f);
    add("a.qkv.bias", {3 * kDim});
    add("a.proj.weight", {kDim, kDim}, 0.3f);
    add("a.proj.bias", {kDim});
    add("norm.weight", {kDim}, 1);
    add("norm.bias", {kDim});
    open();
    const ChannelAttention::Options options{
        .qkv = "a.qkv", .out = "a.proj", .norm = "norm", .dim = kDim, .num_groups = kGroups};
    attention_ = ChannelAttention::load(*weights_, options, threads_).value();
  }

  using Row = std::vector<double>;

  Row qkv(std::span<const float> x) const {
    double mean = 0, variance = 0;
    for (const float one : x) mean += static_cast<double>(one) / kDim;
    for (const float one : x) variance += std::pow(static_cast<double>(one) - mean, 2) / kDim;
    Row out(3 * kDim);
    for (int64_t i = 0; i < 3 * kDim; ++i) {
      double& sum = out[static_cast<size_t>(i)] = value("a.qkv.bias", i);
      for (int64_t j = 0; j < kDim; ++j) {
        const double normed = (static_cast<double>(x[static_cast<size_t>(j)]) - mean) / std::sqrt(variance + 1e-5);
        sum += value("a.qkv.weight", i * kDim + j) * (normed * value("norm.weight", j) + value("norm.bias", j));
      }
    }
    return out;
  }

  // What channel c of each row is before the projection.
  double mixed(const std::vector<Row>& rows, size_t row, size_t c) const {
    const size_t first = c / kWidth * kWidth;
    Row scores(kWidth);
    double most = -1e300, sum = 0, out = 0;
    for (size_t d = 0; d < kWidth; ++d) {
      for (const Row& one : rows) scores[d] += one[c] * one[kDim + first + d];
      scores[d] /= std::sqrt(static_cast<double>(rows.size()));
      most = std::max(most, scores[d]);
    }
    for (double& score : scores) sum += score = std::exp(score - most);
    for (size_t d = 0; d < kWidth; ++d) out += scores[d] / sum * rows[row][2 * kDim + first + d];
    return out;
  }

  std::optional<ChannelAttention> attention_;
};

TEST_F(ChannelAttentionTest, IsItsDefinition) {
  for (const int64_t num_rows : {1, 2, 30, 150}) {
    const std::vector<float> before = random_values(num_rows * kDim, 9, 1);
    std::vector<float> x = before, values(x.size());
    attention_->forward(context_, view_of(x, num_rows), view_of(values, num_rows));
    std::vector<Row> rows;
    for (int64_t i = 0; i < num_rows; ++i)
      rows.push_back(qkv(std::span(before).subspan(static_cast<size_t>(i * kDim), kDim)));
    for (int64_t i = 0; i < num_rows; ++i) {
      Row mix;
      for (size_t c = 0; c < kDim; ++c) mix.push_back(mixed(rows, static_cast<size_t>(i), c));
      for (int64_t o = 0; o < kDim; ++o) {
        double sum = static_cast<double>(before[static_cast<size_t>(i * kDim + o)]) + value("a.proj.bias", o);
        for (int64_t j = 0; j < kDim; ++j) sum += value("a.proj.weight", o * kDim + j) * mix[static_cast<size_t>(j)];
        ASSERT_NEAR(x[static_cast<size_t>(i * kDim + o)], sum, 3e-5) << num_rows << ": " << i << ", " << o;
      }
    }
  }
}

// So many rows that they come in parts.
TEST_F(ChannelAttentionTest, MemoryIsBoundedAndADryRunTakesIt) {
  constexpr int64_t kRows = 100'000;
  std::vector<float> x = random_values(kRows * kDim, 9, 1), values(x.size());
  attention_->forward(context_, view_of(x, kRows), view_of(values, kRows));
  Arena measuring = Arena::measuring();
  Context dry{.device = device_, .arena = measuring, .dry_run = true};
  attention_->forward(dry, view_of(x, kRows), view_of(values, kRows));
  EXPECT_GE(measuring.high_water_bytes(), arena_.high_water_bytes());
  EXPECT_EQ(arena_.num_overflows(), 0);
  ThreadPool one(1);
  CpuDevice device(one);
  Context alone{.device = device, .arena = arena_};
  std::vector<float> again = random_values(kRows * kDim, 9, 1);
  attention_->forward(alone, view_of(again, kRows), view_of(values, kRows));
  EXPECT_EQ(again, x) << "threads change no bit";
}

}  // namespace
}  // namespace transept
