// Norms over whole maps, and what towers compute by channel, on a software device against plain loops in double
// precision. The validation layer watches: it says nothing.
#include "device_vulkan/record_channels.h"

#include <gtest/gtest.h>

#include <cmath>

#include "device_vulkan/vulkan_rig_testing.h"
#include "ops/ops_testing.h"

namespace transept {
namespace {

using test_util::random_floats;
using testing::VulkanRigTest;

// A matrix of the device, and its values here.
struct Matrix {
  DeviceMatrix there;
  std::vector<float> values;

  double at(uint32_t row, uint32_t column) const {
    return static_cast<double>(values[size_t{row} * there.columns + column]);
  }
};

class VulkanChannelsTest : public VulkanRigTest {
 protected:
  Matrix put(uint32_t rows, uint32_t columns, uint32_t seed, float offset = 0) {
    std::vector<float> values = random_floats(size_t{rows} * columns, seed);
    for (float& value : values) value += offset;
    return {put_matrix(values, rows, columns), values};
  }
};

INSTANTIATE_TEST_SUITE_P(Builds, VulkanChannelsTest, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "Reversed" : "Straight"; });

TEST_P(VulkanChannelsTest, AGroupNormIsOverTheWholeMap) {
  const std::pair<uint32_t, uint32_t> shapes[] = {{1, 1}, {5, 3}, {40, 129}, {700, 32}};
  for (const auto& [rows, n] : shapes) {
    SCOPED_TRACE(str_cat(rows, " x ", n));
    const Matrix x = put(rows, n, rows, 10), in_place = put(rows, n, rows, 10), y = put(rows, n, 1);
    const std::vector<float> weight = random_floats(n, 2), bias = random_floats(n, 3);
    const BufferRange w = rig().put_range(weight), b = rig().put_range(bias);
    const uint64_t floats = group_norm_scratch(rows);
    const BufferRange scratch{rig().make(floats), 0, floats * 4};
    record_group_norm(rig().recorder(), x.there, w, b, 1e-5f, scratch, y.there);
    record_group_norm(rig().recorder(), in_place.there, w, b, 1e-5f, scratch, in_place.there);
    rig().run();
    double mean = 0, variance = 0;
    const double count = static_cast<double>(x.values.size());
    for (const float value : x.values) mean += value / count;
    for (const float value : x.values) variance += std::pow(value - mean, 2) / count;
    const std::vector<float> result = get(y.there);
    EXPECT_EQ(get(in_place.there), result);
    for (uint32_t i = 0; i < rows; ++i) {
      for (uint32_t c = 0; c < n; ++c) {
        const double expected = (x.at(i, c) - mean) / std::sqrt(variance + 1e-5) * weight[c] + bias[c];
        ASSERT_NEAR(result[size_t{i} * n + c], expected, 2e-5) << i << ", " << c;
      }
    }
    rig().clear();
  }
}

TEST_P(VulkanChannelsTest, ADepthwiseConvolutionSeesTheMapsNeighbours) {
  const std::pair<uint32_t, uint32_t> maps[] = {{1, 1}, {1, 4}, {3, 1}, {4, 5}};
  for (const auto& [height, width] : maps) {
    for (const uint32_t n : {1u, 130u}) {
      SCOPED_TRACE(str_cat(height, " x ", width, " of ", n));
      const Matrix x = put(height * width, n, 1), y = put(height * width, n, 2);
      const std::vector<float> weight = random_floats(9 * n, 3), bias = random_floats(n, 4);
      record_depthwise_conv(rig().recorder(), x.there, height, width, rig().put_range(weight), rig().put_range(bias),
                            y.there);
      rig().run();
      const std::vector<float> result = get(y.there);
      for (int row = 0; row < static_cast<int>(height); ++row) {
        for (int column = 0; column < static_cast<int>(width); ++column) {
          const auto at = static_cast<uint32_t>(row) * width + static_cast<uint32_t>(column);
          for (uint32_t c = 0; c < n; ++c) {
            double expected = x.at(at, c) + bias[c];
            for (int tap = 0; tap < 9; ++tap) {
              const int down = row + tap / 3 - 1, right = column + tap % 3 - 1;
              if (down < 0 || down >= static_cast<int>(height) || right < 0 || right >= static_cast<int>(width))
                continue;
              expected += static_cast<double>(weight[static_cast<uint32_t>(tap) * n + c]) *
                          x.at(static_cast<uint32_t>(down) * width + static_cast<uint32_t>(right), c);
            }
            ASSERT_NEAR(result[size_t{at} * n + c], expected, 1e-5);
          }
        }
      }
      rig().clear();
    }
  }
}

TEST_P(VulkanChannelsTest, ChannelsAttendToThoseOfTheirGroup) {
  const std::pair<uint32_t, uint32_t> shapes[] = {{1, 1}, {4, 2}, {6, 6}, {264, 132}};  // channels, of a group
  for (const auto& [n, size] : shapes) {
    for (const uint32_t rows : {1u, 130u, 300u}) {
      SCOPED_TRACE(str_cat(rows, " rows of ", n, " by ", size));
      const Matrix q = put(rows, n, 1), k = put(rows, n, 2), sums = put(n, size, 3), y = put(rows, n, 4);
      const Matrix weights = put(n, size, 5), soft = put(n, size, 6), mean = put(1, n, 7);
      Recorder& recorder = rig().recorder();
      record_channel_products(recorder, q.there, k.there, sums.there);
      record_softmax_rows(recorder, 0.5f, soft.there);
      record_mix_channels(recorder, q.there, weights.there, y.there);
      record_mean_of_rows(recorder, k.there, mean.there);
      rig().run();
      const std::vector<float> products = get(sums.there), mixed = get(y.there), shares = get(soft.there),
                               means = get(mean.there);
      for (uint32_t c = 0; c < n; ++c) {
        const uint32_t first = c / size * size;
        double total = 0, average = 0;
        for (uint32_t d = 0; d < size; ++d) total += std::exp(0.5 * soft.at(c, d));
        for (uint32_t i = 0; i < rows; ++i) average += k.at(i, c) / rows;
        ASSERT_NEAR(means[c], average, 1e-5);
        for (uint32_t d = 0; d < size; ++d) {
          double expected = sums.at(c, d);
          for (uint32_t i = 0; i < rows; ++i) expected += q.at(i, c) * k.at(i, first + d);
          ASSERT_NEAR(products[size_t{c} * size + d], expected, 1e-4) << c << ", " << d;
          ASSERT_NEAR(shares[size_t{c} * size + d], std::exp(0.5 * soft.at(c, d)) / total, 1e-6) << c << ", " << d;
        }
      }
      for (uint32_t i = 0; i < rows; i += 37) {
        for (uint32_t c = 0; c < n; ++c) {
          double expected = 0;
          for (uint32_t d = 0; d < size; ++d) expected += weights.at(c, d) * q.at(i, c / size * size + d);
          ASSERT_NEAR(mixed[size_t{i} * n + c], expected, 1e-4) << i << ", " << c;
        }
      }
      rig().clear();
    }
  }
}

}  // namespace
}  // namespace transept
