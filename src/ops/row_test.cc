// Norms, gated activations, log-sum-exp and arg-max at every level present, against double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/strings.h"
#include "ops/activation.h"
#include "ops/cpu_device.h"
#include "ops/norm.h"
#include "ops/select_kernels.h"
#include "ops/softmax.h"

namespace transept {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

class RowTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > detect_isa()) GTEST_SKIP() << isa_name(GetParam()) << " is not present on this processor";
  }
  std::vector<float> random_floats(int64_t count, float mean = 0, float deviation = 1) {
    std::normal_distribution<float> normal(mean, deviation);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal(rng_);
    return values;
  }

  // Gates and values lie side by side in wider rows; then the result takes the gates' place.
  void expect_gated_activation(Activation activation, int64_t rows, int64_t n) {
    SCOPED_TRACE(str_cat("activation ", static_cast<int>(activation), ", ", rows, " rows of ", n));
    const int64_t width = 2 * n + 3;
    std::vector<float> x = random_floats(rows * width, 0, 2), y(static_cast<size_t>(rows * (n + 1)), 7.0f);
    const TensorView x_view = TensorView(x.data(), DType::kFloat32, {rows, width}).columns(0, 2 * n);
    const TensorView y_view = TensorView(y.data(), DType::kFloat32, {rows, n + 1}).columns(0, n);
    const TensorView gates = x_view.columns(0, n), values = x_view.columns(n, 2 * n);
    gated_activation(context_, activation, gates, values, y_view);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const float gate = activate(activation, x_view.row(i)[j]);
        ASSERT_NEAR(y_view.row(i)[j], gate * x_view.row(i)[n + j], 1e-5) << "at " << i << ", " << j;
      }
      ASSERT_EQ(y_view.row(i)[n], 7.0f) << "written past the row's end";
    }
    gated_activation(context_, activation, gates, values, gates);
    for (int64_t i = 0; i < rows; ++i) {
      ASSERT_EQ(std::memcmp(x_view.row(i), y_view.row(i), static_cast<size_t>(n) * sizeof(float)), 0);
    }
  }

  std::mt19937 rng_{1};
  ThreadPool pool_{2};
  Arena arena_{4096};
  CpuDevice device_{pool_, GetParam()};
  Context context_{.device = device_, .arena = arena_};
};

INSTANTIATE_TEST_SUITE_P(Levels, RowTest, ::testing::Values(Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kAmx),
                         [](const auto& param) { return std::string(isa_name(param.param)); });

TEST_P(RowTest, LayerNormMatchesDoublePrecision) {
  for (const int64_t n : {1, 3, 16, 17, 64, 100, 768, 1030}) {
    for (const int64_t rows : {1, 3, 40}) {
      // A mean far from zero: the variance must not come from a difference of squares.
      std::vector<float> x = random_floats(rows * (n + 2), 10), y(x.size(), 7.0f);
      const std::vector<float> weight = random_floats(n), bias = random_floats(n);
      const TensorView x_view = TensorView(x.data(), DType::kFloat32, {rows, n + 2}).columns(0, n);
      const TensorView y_view = TensorView(y.data(), DType::kFloat32, {rows, n + 2}).columns(0, n);
      layer_norm(context_, x_view, weight.data(), bias.data(), 1e-5f, y_view);
      for (int64_t i = 0; i < rows; ++i) {
        double mean = 0, variance = 0;
        for (int64_t j = 0; j < n; ++j) mean += x_view.row(i)[j] / static_cast<double>(n);
        for (int64_t j = 0; j < n; ++j) variance += std::pow(x_view.row(i)[j] - mean, 2) / static_cast<double>(n);
        for (int64_t j = 0; j < n; ++j) {
          const auto c = static_cast<size_t>(j);
          const double expected = (x_view.row(i)[j] - mean) / std::sqrt(variance + 1e-5) * weight[c] + bias[c];
          // Rounding of x - mean is amplified where the variance is small.
          ASSERT_NEAR(y_view.row(i)[j], expected, n <= 3 ? 1e-4 : 1e-5) << "n " << n << " at " << i << ", " << j;
        }
        ASSERT_EQ(y_view.row(i)[n], 7.0f) << "written past the row's end";
      }
      // In place.
      layer_norm(context_, x_view, weight.data(), bias.data(), 1e-5f, x_view);
      for (int64_t i = 0; i < rows; ++i) {
        ASSERT_EQ(std::memcmp(x_view.row(i), y_view.row(i), static_cast<size_t>(n) * sizeof(float)), 0);
      }
    }
  }
}

TEST_P(RowTest, GroupNormIsOverAllRows) {
  for (const int64_t n : {1, 17, 288}) {
    for (const int64_t rows : {1, 2, 33, 300}) {
      std::vector<float> x = random_floats(rows * n, 4), y(x.size());
      const std::vector<float> weight = random_floats(n), bias = random_floats(n);
      const TensorView x_view(x.data(), DType::kFloat32, {rows, n}), y_view(y.data(), DType::kFloat32, {rows, n});
      group_norm(context_, x_view, weight.data(), bias.data(), 1e-5f, y_view);
      double mean = 0, variance = 0;
      for (const float value : x) mean += value / static_cast<double>(x.size());
      for (const float value : x) variance += std::pow(value - mean, 2) / static_cast<double>(x.size());
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          const auto c = static_cast<size_t>(j);
          const double expected = (x_view.row(i)[j] - mean) / std::sqrt(variance + 1e-5) * weight[c] + bias[c];
          ASSERT_NEAR(y_view.row(i)[j], expected, rows * n <= 3 ? 1e-3 : 1e-5) << rows << " x " << n;
        }
      }
      // Whatever the number of threads; and in place.
      ThreadPool one(1);
      CpuDevice alone_device{one, GetParam()};
      Context alone{.device = alone_device, .arena = arena_};
      group_norm(alone, x_view, weight.data(), bias.data(), 1e-5f, x_view);
      ASSERT_EQ(std::memcmp(x.data(), y.data(), x.size() * sizeof(float)), 0);
    }
  }
}

TEST_P(RowTest, RmsNormMatchesAPlainLoop) {
  for (const int64_t n : {1, 3, 16, 17, 64, 100, 768, 1030}) {
    for (const int64_t rows : {1, 3, 40}) {
      std::vector<float> x = random_floats(rows * (n + 2), 1, 3), y(x.size(), 7.0f);
      const std::vector<float> weight = random_floats(n);
      const TensorView x_view = TensorView(x.data(), DType::kFloat32, {rows, n + 2}).columns(0, n);
      const TensorView y_view = TensorView(y.data(), DType::kFloat32, {rows, n + 2}).columns(0, n);
      rms_norm(context_, x_view, weight.data(), 1e-6f, y_view);
      for (int64_t i = 0; i < rows; ++i) {
        double square = 0;
        for (int64_t j = 0; j < n; ++j) square += std::pow(x_view.row(i)[j], 2) / static_cast<double>(n);
        for (int64_t j = 0; j < n; ++j) {
          const double expected = x_view.row(i)[j] / std::sqrt(square + 1e-6) * weight[static_cast<size_t>(j)];
          ASSERT_NEAR(y_view.row(i)[j], expected, 1e-6 * (1 + std::abs(expected)))
              << "n " << n << " at " << i << ", " << j;
        }
        ASSERT_EQ(y_view.row(i)[n], 7.0f) << "written past the row's end";
      }
      rms_norm(context_, x_view, weight.data(), 1e-6f, x_view);
      for (int64_t i = 0; i < rows; ++i) {
        ASSERT_EQ(std::memcmp(x_view.row(i), y_view.row(i), static_cast<size_t>(n) * sizeof(float)), 0);
      }
    }
  }
  // A row of zeros is divided by the root of epsilon alone.
  std::vector<float> zeros(20), weight(20, 1.0f);
  const TensorView view(zeros.data(), DType::kFloat32, {1, 20});
  rms_norm(context_, view, weight.data(), 1e-6f, view);
  EXPECT_EQ(zeros, std::vector<float>(20));
}

TEST_P(RowTest, GatedActivationsMatchTheirDefinition) {
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                                      Activation::kSilu, Activation::kTanh, Activation::kQuickGelu}) {
    for (const int64_t n : {1, 5, 16, 40, 2048, 9001}) {
      for (const int64_t rows : {1, 3, 30}) expect_gated_activation(activation, rows, n);
    }
  }
}

TEST_P(RowTest, LogSumExpMatchesDoublePrecision) {
  for (const int64_t n : {1, 2, 15, 16, 17, 33, 1000, 50265}) {
    std::vector<float> x = random_floats(n, -5, 6);
    if (n > 10) x[4] = -kInfinity;
    double sum = 0;
    for (const float value : x) sum += std::exp(static_cast<double>(value));
    EXPECT_NEAR(log_sum_exp(context_, x), std::log(sum), 2e-6 * (1 + std::abs(std::log(sum)))) << n;
  }
}

TEST_P(RowTest, LogSumExpOfInfinitiesAndNan) {
  EXPECT_EQ(log_sum_exp(context_, {}), -kInfinity);
  EXPECT_EQ(log_sum_exp(context_, std::vector<float>(20, -kInfinity)), -kInfinity);
  EXPECT_EQ(log_sum_exp(context_, std::vector<float>{1, kInfinity, 2}), kInfinity);
  EXPECT_TRUE(std::isnan(log_sum_exp(context_, std::vector<float>{1, kNan, 2})));
  EXPECT_NEAR(log_sum_exp(context_, std::vector<float>{1000, 1000}), 1000 + std::log(2.0), 1e-4);
  EXPECT_NEAR(log_sum_exp(context_, std::vector<float>{-1000, -1000}), -1000 + std::log(2.0), 1e-4);
}

TEST_P(RowTest, MaxSaysWhetherEntriesAreStrange) {
  const auto max = [&](const std::vector<float>& x) {
    bool has_strange = false;
    const float most = op_kernels(GetParam()).max(x.data(), static_cast<int64_t>(x.size()), &has_strange);
    return std::pair(most, has_strange);
  };
  EXPECT_EQ(max({}), std::pair(-kInfinity, false));
  EXPECT_EQ(max(std::vector<float>(40, -kInfinity)), std::pair(-kInfinity, false));
  EXPECT_EQ(max(std::vector<float>(40, kNan)), std::pair(-kInfinity, true));
  for (const int64_t n : {1, 5, 16, 31, 100, 1000}) {
    for (size_t at = 0; at < static_cast<size_t>(n); at += 1 + static_cast<size_t>(n) / 37) {
      std::vector<float> x(static_cast<size_t>(n), -3.0f);
      for (size_t i = 0; i < x.size(); i += 3) x[i] = -kInfinity;
      x[at] = -1.5f;
      EXPECT_EQ(max(x), std::pair(-1.5f, false)) << n;
      x[at] = kInfinity;
      EXPECT_EQ(max(x), std::pair(kInfinity, true)) << n;
      x[at] = kNan;
      EXPECT_TRUE(max(x).second) << n;
    }
  }
}

TEST_P(RowTest, ArgMaxTakesTheLowestOfEqualsAndNeverNan) {
  EXPECT_EQ(arg_max(context_, {}), -1);
  EXPECT_EQ(arg_max(context_, std::vector<float>(40, kNan)), -1);
  EXPECT_EQ(arg_max(context_, std::vector<float>(40, -kInfinity)), 0);
  EXPECT_EQ(arg_max(context_, std::vector<float>{kNan, -kInfinity, kNan}), 1);
  EXPECT_EQ(arg_max(context_, std::vector<float>{-0.0f, 0.0f}), 0);
  for (const int64_t n : {1, 5, 16, 31, 100, 1000}) {
    for (int64_t at = 0; at < n; at += 1 + n / 37) {
      std::vector<float> x(static_cast<size_t>(n), -3.0f);
      for (size_t i = 0; i < x.size(); i += 3) x[i] = kNan;
      for (size_t i = static_cast<size_t>(at); i < x.size(); i += 5) x[i] = -1.5f;
      EXPECT_EQ(arg_max(context_, x), at) << n;
    }
  }
}

TEST_P(RowTest, FindsWhatIsAboveAndWhatIsEqual) {
  const OpKernels& kernels = op_kernels(GetParam());
  for (const int32_t n : {0, 1, 15, 16, 17, 100, 513}) {
    std::vector<float> x = random_floats(n);
    for (size_t i = 0; i < x.size(); i += 7) x[i] = kNan;
    for (size_t i = 3; i < x.size(); i += 11) x[i] = 0.5f;
    for (const float bound : {-kInfinity, -1.0f, 0.5f, 2.0f, kInfinity}) {
      std::vector<int32_t> expected, places(x.size() + 1, -7);
      for (int32_t i = 0; i < n; ++i) {
        if (x[static_cast<size_t>(i)] > bound) expected.push_back(i);
      }
      const int32_t count = kernels.find_above(x.data(), n, bound, places.data());
      EXPECT_EQ(std::vector<int32_t>(places.begin(), places.begin() + count), expected) << n << " above " << bound;
      EXPECT_EQ(places.back(), -7) << "written past the end";
    }
    EXPECT_EQ(kernels.find_equal(x.data(), n, 0.5f), n > 3 ? 3 : -1) << n;
    EXPECT_EQ(kernels.find_equal(x.data(), n, 77.0f), -1) << n;
  }
}

}  // namespace
}  // namespace transept
