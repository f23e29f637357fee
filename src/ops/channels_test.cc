// Sums by channel against plain loops in double precision; and that threads change no bit.
#include "ops/channels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random_values_testing.h"
#include "ops/cpu_device.h"

namespace transept {
namespace {

std::vector<float> random_values(int64_t count, uint32_t seed) { return testing::random_normals(count, seed); }

// A matrix in rows that are longer than it: what stands behind is kept.
class Matrix final {
 public:
  Matrix(int64_t rows, int64_t n, uint32_t seed) : values_(random_values(rows * (n + kGap), seed)) {
    view = TensorView(values_.data(), DType::kFloat32, {rows, n + kGap}).columns(0, n);
  }
  double at(int64_t i, int64_t j) const { return static_cast<double>(view.row(i)[j]); }
  const std::vector<float>& values() const { return values_; }

  TensorView view;

 private:
  static constexpr int64_t kGap = 3;
  std::vector<float> values_;
};

TensorView dense(std::vector<float>& values, int64_t rows, int64_t n) {
  return {values.data(), DType::kFloat32, {rows, n}};
}

// Calls test(context) with one thread and with several.
template <typename F>
void with_threads(const F& test) {
  for (const int num_threads : {1, 3}) {
    ThreadPool threads(num_threads);
    CpuDevice device(threads);
    Arena arena(1 << 20);
    Context context{.device = device, .arena = arena};
    test(context);
    EXPECT_EQ(arena.num_overflows(), 0);
  }
}

// The neighbours of row i that are in the map, weighted: of one channel.
double weighted_neighbours(const Matrix& x, int64_t height, int64_t width, const std::vector<float>& weight, int64_t n,
                           int64_t i, int64_t c) {
  double sum = 0;
  for (int64_t tap = 0; tap < 9; ++tap) {
    const int64_t row = i / width + tap / 3 - 1, column = i % width + tap % 3 - 1;
    if (row < 0 || row >= height || column < 0 || column >= width) continue;
    sum += static_cast<double>(weight[static_cast<size_t>(tap * n + c)]) * x.at(row * width + column, c);
  }
  return sum;
}

TEST(DepthwiseConv, IsTheSumOfNineNeighbours) {
  for (const auto& [height, width, n] : {std::tuple(1, 1, 5), {1, 7, 3}, {6, 1, 1}, {5, 4, 33}, {70, 61, 16}}) {
    const Matrix x(height * width, n, 1);
    const std::vector<float> weight = random_values(9 * n, 2), bias = random_values(n, 3);
    with_threads([&, height = height, width = width, n = n](Context& context) {
      const Matrix y(height * width, n, 4);
      add_depthwise_conv(context, x.view, height, width, weight.data(), bias.data(), y.view);
      for (int64_t i = 0; i < height * width; ++i) {
        for (int64_t c = 0; c < n; ++c) {
          const double sum = x.at(i, c) + static_cast<double>(bias[static_cast<size_t>(c)]) +
                             weighted_neighbours(x, height, width, weight, n, i, c);
          ASSERT_NEAR(y.at(i, c), sum, 2e-6 * 12) << i << ", " << c;
        }
      }
    });
  }
}

TEST(ChannelProducts, AreSumsOverRowsWithinGroups) {
  for (const auto& [rows, n, width] : {std::tuple(1, 6, 3), {5, 6, 6}, {129, 24, 12}, {1000, 20, 10}, {300, 4, 1}}) {
    const Matrix q(rows, n, 1), k(rows, n, 2);
    std::vector<std::vector<float>> results;
    with_threads([&, rows = rows, n = n, width = width](Context& context) {
      std::vector<float> sums = random_values(n * width, 3);
      const std::vector<float> before = sums;
      add_channel_products(context, q.view, k.view, dense(sums, n, width));
      for (int64_t c = 0; c < n; ++c) {
        for (int64_t d = 0; d < width; ++d) {
          const auto place = static_cast<size_t>(c * width + d);
          double sum = static_cast<double>(before[place]);
          for (int64_t i = 0; i < rows; ++i) sum += q.at(i, c) * k.at(i, c / width * width + d);
          ASSERT_NEAR(sums[place], sum, 4e-6 * std::sqrt(rows) * 10) << c << ", " << d;
        }
      }
      results.push_back(std::move(sums));
    });
    EXPECT_EQ(results[0], results[1]);
  }
}

TEST(ChannelProducts, LongSumsStayExact) {
  constexpr int64_t kRows = 40'000;
  std::vector<float> ones(kRows, 1.1f), sums(1);
  with_threads([&](Context& context) {
    sums[0] = 0;
    add_channel_products(context, dense(ones, kRows, 1), dense(ones, kRows, 1), dense(sums, 1, 1));
    EXPECT_NEAR(sums[0] / (1.1 * 1.1 * kRows), 1, 2e-6);
  });
}

TEST(SoftmaxOfRows, IsScaledFirst) {
  for (const auto& [rows, n] : {std::pair(1, 1), {7, 5}, {200, 32}}) {
    with_threads([rows = rows, n = n](Context& context) {
      const Matrix x(rows, n, 1), before(rows, n, 1);
      x.view.row(0)[0] = before.view.row(0)[0] = 3e4f;  // would be infinity
      softmax_rows(context, 0.7f, x.view);
      for (int64_t i = 0; i < rows; ++i) {
        double sum = 0, most = before.at(i, 0);
        for (int64_t j = 0; j < n; ++j) most = std::max(most, before.at(i, j));
        for (int64_t j = 0; j < n; ++j) sum += std::exp(0.7 * (before.at(i, j) - most));
        for (int64_t j = 0; j < n; ++j) {
          ASSERT_NEAR(x.at(i, j), std::exp(0.7 * (before.at(i, j) - most)) / sum, 1e-6) << i << ", " << j;
        }
      }
    });
  }
}

// Of the channels of c's group in row i.
double mixed(const Matrix& v, const std::vector<float>& weights, int64_t width, int64_t i, int64_t c) {
  double sum = 0;
  for (int64_t d = 0; d < width; ++d) {
    sum += static_cast<double>(weights[static_cast<size_t>(c * width + d)]) * v.at(i, c / width * width + d);
  }
  return sum;
}

TEST(MixedChannels, AreSumsOverAGroup) {
  for (const auto& [rows, n, width] : {std::tuple(1, 6, 3), {5, 6, 6}, {129, 24, 12}, {1000, 20, 10}, {300, 4, 1}}) {
    const Matrix v(rows, n, 1);
    std::vector<float> weights = random_values(n * width, 2);
    std::vector<std::vector<float>> results;
    with_threads([&, rows = rows, n = n, width = width](Context& context) {
      const Matrix y(rows, n, 3);
      mix_channels(context, v.view, dense(weights, n, width), y.view);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t c = 0; c < n; ++c) {
          ASSERT_NEAR(y.at(i, c), mixed(v, weights, width, i, c), 1e-5) << i << ", " << c;
        }
      }
      results.push_back(y.values());
    });
    EXPECT_EQ(results[0], results[1]);
  }
}

TEST(MeanOfRows, IsTheMean) {
  for (const int64_t rows : {1, 2, 577}) {
    const Matrix x(rows, 9, 1);
    with_threads([&](Context& context) {
      const Matrix y(1, 9, 2);
      mean_of_rows(context, x.view, y.view);
      for (int64_t j = 0; j < 9; ++j) {
        double sum = 0;
        for (int64_t i = 0; i < rows; ++i) sum += x.at(i, j);
        ASSERT_NEAR(y.at(0, j), sum / static_cast<double>(rows), 1e-7 + 1e-6 * std::abs(sum)) << j;
      }
    });
  }
}

// What is not a column of a matrix keeps its values.
TEST(Channels, WriteNothingBehindARow) {
  with_threads([](Context& context) {
    const Matrix x(6, 4, 1), y(6, 4, 2), untouched(6, 4, 2);
    std::vector<float> weights = random_values(36, 3);
    add_depthwise_conv(context, x.view, 2, 3, weights.data(), weights.data(), y.view);
    mix_channels(context, x.view, dense(weights, 4, 2), y.view);
    softmax_rows(context, 1, y.view);
    for (int64_t i = 0; i < 6; ++i) {
      for (int64_t j = 4; j < 7; ++j) EXPECT_EQ(y.view.row(i)[j], untouched.view.row(i)[j]);
    }
  });
}

}  // namespace
}  // namespace transept
