// Kernels on a software device, as they are and with their lanes reversed, against double precision, with the bounds of
// the processor's tests. The validation layer watches: it says nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>

#include "device_vulkan/vulkan_rig_testing.h"
#include "ops/activation.h"
#include "ops/conv1d.h"
#include "ops/gemm.h"
#include "ops/ops_testing.h"

namespace transept {
namespace {

using test_util::random_floats;
using testing::VulkanRigTest;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class VulkanOpsTest : public VulkanRigTest {};

INSTANTIATE_TEST_SUITE_P(Builds, VulkanOpsTest, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "Reversed" : "Straight"; });

TEST_P(VulkanOpsTest, NormsMatchDoublePrecision) {
  for (const uint32_t n : {1u, 3u, 16u, 100u, 128u, 768u, 1030u}) {
    const uint32_t rows = 5;
    std::vector<float> x = random_floats(rows * n, n);
    for (float& value : x) value += 10;  // far from zero: the variance is no difference of squares
    const std::vector<float> weight = random_floats(n, 2), bias = random_floats(n, 3);
    const DeviceMatrix in = put_matrix(x, rows, n), normal = make(rows, n), rms = make(rows, n);
    const DeviceMatrix in_place = put_matrix(x, rows, n), rms_in_place = put_matrix(x, rows, n);
    const BufferRange w = rig().put_range(weight), b = rig().put_range(bias);
    Recorder& recorder = rig().recorder();
    record_layer_norm(recorder, in, w, b, 1e-5f, normal);
    record_layer_norm(recorder, in_place, w, b, 1e-5f, in_place);
    record_rms_norm(recorder, in, w, 1e-5f, rms);
    record_rms_norm(recorder, rms_in_place, w, 1e-5f, rms_in_place);
    rig().run();
    const std::vector<float> y = get(normal), z = get(rms);
    EXPECT_EQ(get(in_place), y);
    EXPECT_EQ(get(rms_in_place), z);
    for (uint32_t i = 0; i < rows; ++i) {
      double mean = 0, variance = 0, squares = 0;
      const float* row = &x[size_t{i} * n];
      for (uint32_t j = 0; j < n; ++j) mean += row[j] / static_cast<double>(n);
      for (uint32_t j = 0; j < n; ++j) variance += std::pow(row[j] - mean, 2) / n;
      for (uint32_t j = 0; j < n; ++j) squares += std::pow(static_cast<double>(row[j]), 2) / n;
      for (uint32_t j = 0; j < n; ++j) {
        const double expected = (row[j] - mean) / std::sqrt(variance + 1e-5) * weight[j] + bias[j];
        ASSERT_NEAR(y[size_t{i} * n + j], expected, n <= 3 ? 1e-4 : 1e-5) << n;
        ASSERT_NEAR(z[size_t{i} * n + j], row[j] / std::sqrt(squares + 1e-5) * weight[j], 1e-5) << n;
      }
    }
    rig().clear();
  }
}

// gemm_test's bound.
double tolerance(uint32_t k, Activation activation) {
  const double sum = 2e-6 + 2.4e-7 * k;
  return activation == Activation::kNone || activation == Activation::kRelu ? sum : sum * 1.2 + 1e-6;
}

struct Product {
  uint32_t m, n, k;
  DeviceFormat format = DeviceFormat::kFloat32;
  Activation activation = Activation::kNone;
  bool has_bias = true, has_residual = true;
};

constexpr WeightFormat kFormats[] = {kFloat32Format, kFloat16Format, kBFloat16Format};

class VulkanProductTest : public VulkanOpsTest {
 protected:
  DeviceWeights put_weights(const PackedMatrix& packed, DeviceFormat format, const DeviceTiling& tiling = {}) {
    const std::span<const std::byte> panels = packed.views().panels;
    return {{rig().put(panels), 0, panels.size()},
            static_cast<uint32_t>(packed.n()),
            static_cast<uint32_t>(packed.k()),
            format,
            tiling};
  }

  // By shader cores, and where the device has them by matrices.
  void expect_right(const Product& p) {
    expect_right(p, {});
    const std::optional<MatrixTile>& tile = rig().shared_device()->info().half_tile;
    if (tile.has_value() && p.format != DeviceFormat::kFloat32) expect_right(p, {.rows = tile->m, .exponent = 130});
  }
  void expect_right(const Product& p, const DeviceTiling& tiling) {
    SCOPED_TRACE(str_cat("m ", p.m, " n ", p.n, " k ", p.k, " format ", static_cast<int>(p.format), " activation ",
                         static_cast<int>(p.activation), tiling.rows > 0 ? " by matrices" : ""));
    std::vector<float> x = random_floats(p.m * p.k, 1), b = random_floats(p.n, 3), r = random_floats(p.m * p.n, 4);
    const PackedMatrix packed =
        test_util::pack(random_floats(p.n * p.k, 2), p.n, p.k, {kFormats[static_cast<size_t>(p.format)]});
    std::vector<float> w(size_t{p.n} * p.k), expected(size_t{p.m} * p.n);
    for (uint32_t i = 0; i < p.n; ++i) packed.get_row(i, &w[size_t{i} * p.k]);
    Epilogue epilogue{.bias = p.has_bias ? b.data() : nullptr, .activation = p.activation};
    if (p.has_residual) epilogue.residual = test_util::matrix(r, p.m, p.n);
    gemm_reference(test_util::matrix(x, p.m, p.k), test_util::matrix(w, p.n, p.k), epilogue,
                   test_util::matrix(expected, p.m, p.n));

    const DeviceMatrix in = put_matrix(x, p.m, p.k), residual = put_matrix(r, p.m, p.n), out = make(p.m, p.n);
    DeviceEpilogue device{.activation = p.activation};
    if (p.has_bias) device.bias = rig().put_range(b);
    if (p.has_residual) device.residual = residual;
    record_product(rig().recorder(), in, put_weights(packed, p.format, tiling), device, out);
    rig().run();
    const std::vector<float> y = get(out);
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_NEAR(y[i], expected[i], tolerance(p.k, p.activation)) << "at " << i / p.n << ", " << i % p.n;
    }
    rig().clear();
  }
};

INSTANTIATE_TEST_SUITE_P(Builds, VulkanProductTest, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "Reversed" : "Straight"; });

TEST_P(VulkanProductTest, MatchesTheReferenceOverShapes) {
  for (const uint32_t m : {1u, 7u, 8u, 9u, 29u}) {
    for (const uint32_t n : {1u, 31u, 32u, 33u, 100u}) {
      for (const uint32_t k : {1u, 2u, 7u, 64u, 129u, 300u}) {
        for (const DeviceFormat format : {DeviceFormat::kFloat32, DeviceFormat::kFloat16, DeviceFormat::kBFloat16}) {
          expect_right({m, n, k, format, Activation::kNone, (m + n) % 2 == 0, (n + k) % 2 == 0});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(VulkanProductTest, AppliesItsEpilogue) {
  for (int activation = 0; activation <= static_cast<int>(Activation::kQuickGelu); ++activation) {
    for (const int adds : {0, 1, 2, 3}) {
      const DeviceFormat format = DeviceFormat((activation + adds) % 3);
      expect_right({3, 70, 33, format, Activation(activation), (adds & 1) != 0, (adds & 2) != 0});
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(VulkanProductTest, TheResidualMayBeTheResult) {
  const std::vector<float> x = random_floats(5 * 16, 1), r = random_floats(5 * 40, 2);
  const PackedMatrix packed = test_util::pack(random_floats(40 * 16, 3), 40, 16);
  const DeviceMatrix in = put_matrix(x, 5, 16), apart = make(5, 40), same = put_matrix(r, 5, 40);
  const DeviceWeights w = put_weights(packed, DeviceFormat::kFloat32);
  record_product(rig().recorder(), in, w, {.residual = put_matrix(r, 5, 40)}, apart);
  record_product(rig().recorder(), in, w, {.residual = same}, same);
  rig().run();
  EXPECT_EQ(get(same), get(apart));
}

TEST_P(VulkanProductTest, OfWindowsIsAConvolution) {
  const Conv1dShape shape{.kernel = 3, .stride = 2, .padding = 1};
  constexpr uint32_t kLength = 21, kChannels = 5, kOut = 34;
  std::vector<float> x = random_floats(kLength * kChannels, 1), w = random_floats(kOut * kChannels * 3, 2),
                     bias = random_floats(kOut, 3);
  const auto rows = static_cast<uint32_t>(conv1d_output_length(kLength, shape));
  std::vector<float> expected(size_t{rows} * kOut);
  conv1d_reference(test_util::matrix(x, kLength, kChannels),
                   TensorView(w.data(), DType::kFloat32, {kOut, kChannels, 3}), shape,
                   {.bias = bias.data(), .activation = Activation::kGelu}, test_util::matrix(expected, rows, kOut));
  // By tap, then by channel; channels arrive one behind the other.
  std::vector<float> by_tap(w.size()), channels_first(x.size());
  for (uint32_t o = 0; o < kOut; ++o) {
    for (uint32_t c = 0; c < kChannels; ++c) {
      for (uint32_t t = 0; t < 3; ++t) by_tap[(o * 3 + t) * kChannels + c] = w[(o * kChannels + c) * 3 + t];
    }
  }
  for (uint32_t t = 0; t < kLength; ++t) {
    for (uint32_t c = 0; c < kChannels; ++c) channels_first[c * kLength + t] = x[t * kChannels + c];
  }
  const BufferId padded = rig().make((kLength + 2) * kChannels, 0);
  record_transpose(rig().recorder(), rig().put_range(channels_first),
                   DeviceMatrix::dense(padded, kLength, kChannels, kChannels * sizeof(float)));
  const DeviceMatrix windows{padded, 0, rows, 3 * kChannels, 2 * kChannels}, out = make(rows, kOut);
  record_product(rig().recorder(), windows,
                 put_weights(test_util::pack(by_tap, kOut, 3 * kChannels), DeviceFormat::kFloat32),
                 {.bias = rig().put_range(bias), .activation = Activation::kGelu}, out);
  rig().run();
  const std::vector<float> y = get(out);
  for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], tolerance(15, Activation::kGelu));
}

TEST_P(VulkanOpsTest, GatedActivationsAndSums) {
  constexpr uint32_t kRows = 3, kColumns = 150;
  const std::vector<float> a = random_floats(kRows * kColumns, 1, 2), b = random_floats(kRows * kColumns, 2);
  const std::vector<float> gate = random_floats(kColumns, 3);
  for (int activation = 0; activation <= static_cast<int>(Activation::kQuickGelu); ++activation) {
    const DeviceMatrix g = put_matrix(a, kRows, kColumns), x = put_matrix(b, kRows, kColumns),
                       y = make(kRows, kColumns);
    record_gated_activation(rig().recorder(), Activation(activation), g, x, y);
    record_gated_activation(rig().recorder(), Activation(activation), g, x, g);
    rig().run();
    const std::vector<float> result = get(y);
    EXPECT_EQ(get(g), result);
    for (size_t i = 0; i < result.size(); ++i) {
      ASSERT_NEAR(result[i], activate(Activation(activation), a[i]) * b[i], 1e-5) << activation;
    }
    rig().clear();
  }
  for (const uint32_t gates : {0u, 1u, kColumns}) {
    const DeviceMatrix x = put_matrix(a, kRows, kColumns), y = put_matrix(b, kRows, kColumns);
    const std::vector<float> some(gate.begin(), gate.begin() + gates);
    record_add(rig().recorder(), x, gates == 0 ? BufferRange{} : rig().put_range(some), y);
    rig().run();
    const std::vector<float> result = get(y);
    for (size_t i = 0; i < result.size(); ++i) {
      const float factor = gates == 0 ? 1 : gate[gates == 1 ? 0 : i % kColumns];
      ASSERT_NEAR(result[i], static_cast<double>(b[i]) + static_cast<double>(factor) * a[i], 1e-6);
    }
    rig().clear();
  }
}

// Every value of the 16-bit types, exactly.
TEST_P(VulkanOpsTest, GathersRowsOfEveryType) {
  constexpr uint32_t kColumns = 256;
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < 65536; ++i) all[i] = static_cast<uint16_t>(i);
  all.resize(65536 + kColumns, 0x3C00);  // memory behind the table
  const std::vector<float> floats = random_floats(257 * kColumns, 1);
  std::vector<int32_t> rows;
  for (int32_t i = 255; i >= 0; --i) rows.push_back(i);
  rows.push_back(-1);
  rows.push_back(256);  // past the end
  const auto num_rows = static_cast<uint32_t>(rows.size());
  for (const DeviceFormat format : {DeviceFormat::kFloat32, DeviceFormat::kFloat16, DeviceFormat::kBFloat16}) {
    const bool is_wide = format == DeviceFormat::kFloat32;
    const BufferRange data = {is_wide ? rig().put(floats) : rig().put(all), 0, (is_wide ? 4u : 2u) * 257 * kColumns};
    const DeviceMatrix y = make(num_rows, kColumns);
    record_gather_rows(rig().recorder(), {data, 256, kColumns, format}, {rig().put(rows), 0, rows.size() * 4}, 2, y);
    rig().run();
    const std::vector<float> result = get(y);
    for (size_t i = 0; i < rows.size(); ++i) {
      for (uint32_t c = 0; c < kColumns; ++c) {
        const auto at = static_cast<size_t>(rows[i]) * kColumns + c;
        const float expected = i >= 256                           ? 0
                               : is_wide                          ? floats[at]
                               : format == DeviceFormat::kFloat16 ? float16_to_float(all[at])
                                                                  : bfloat16_to_float(all[at]);
        const float is = result[i * kColumns + c];
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(is)) << at;
        } else if (std::fpclassify(expected) != FP_SUBNORMAL && std::fpclassify(2 * expected) != FP_SUBNORMAL) {
          ASSERT_EQ(is, 2 * expected) << at;
        } else {
          // Devices may drop subnormals of float32, before they double them, too.
          ASSERT_NEAR(is, 2 * expected, 2 * std::numeric_limits<float>::min());
        }
      }
    }
    rig().clear();
  }
}

// Rows of an odd number of elements, two of 16 bits in a word; one that is none of the table's adds nothing.
TEST_P(VulkanOpsTest, AddsGatheredRows) {
  constexpr uint32_t kTableRows = 5, kColumns = 131;
  const std::vector<int32_t> rows = {4, 1, -1, 4, 5};
  const auto num_rows = static_cast<uint32_t>(rows.size());
  for (const DeviceFormat format : {DeviceFormat::kFloat32, DeviceFormat::kFloat16, DeviceFormat::kBFloat16}) {
    const std::vector<float> before = random_floats(num_rows * kColumns, 2);
    std::vector<float> table = random_floats(kTableRows * kColumns, 1);
    std::vector<uint16_t> halves(table.size() + 1);
    for (size_t i = 0; i < table.size(); ++i) {
      if (format == DeviceFormat::kFloat32) break;
      const bool is_float16 = format == DeviceFormat::kFloat16;
      halves[i] = is_float16 ? float_to_float16(table[i]) : float_to_bfloat16(table[i]);
      table[i] = is_float16 ? float16_to_float(halves[i]) : bfloat16_to_float(halves[i]);
    }
    const bool is_wide = format == DeviceFormat::kFloat32;
    const BufferRange data = {is_wide ? rig().put(table) : rig().put(halves), 0,
                              is_wide ? table.size() * 4 : halves.size() * 2};
    const DeviceMatrix y = put_matrix(before, num_rows, kColumns);
    record_add_gathered_rows(rig().recorder(), {data, kTableRows, kColumns, format},
                             {rig().put(rows), 0, rows.size() * 4}, y);
    rig().run();
    const std::vector<float> result = get(y);
    for (size_t i = 0; i < rows.size(); ++i) {
      for (uint32_t c = 0; c < kColumns; ++c) {
        const bool is_there = rows[i] >= 0 && rows[i] < static_cast<int32_t>(kTableRows);
        const float added = is_there ? table[static_cast<size_t>(rows[i]) * kColumns + c] : 0.0f;
        ASSERT_EQ(result[i * kColumns + c], before[i * kColumns + c] + added) << i << ", " << c;
      }
    }
    rig().clear();
  }
}

// A head's pairs, which lie side by side or in its halves.
void rotate(std::span<const float> cosines, std::span<const float> sines, bool halves, std::vector<double>& head) {
  for (size_t p = 0; p < cosines.size(); ++p) {
    double &u = head[halves ? p : 2 * p], &v = head[halves ? p + cosines.size() : 2 * p + 1];
    const double cosine = cosines[p], sine = sines[p];
    const double rotated = u * cosine - v * sine;
    v = v * cosine + u * sine;
    u = rotated;
  }
}

TEST_P(VulkanOpsTest, RotatesPairs) {
  constexpr uint32_t kRows = 4, kHeads = 3, kDim = 20;
  for (const bool halves : {false, true}) {
    for (const uint32_t pairs : {1u, 5u, 10u}) {
      const std::vector<float> x = random_floats(kRows * kHeads * kDim, 1);
      std::vector<float> cosines, sines;
      for (const float angle : random_floats(kRows * pairs, 2, 3)) {
        cosines.push_back(std::cos(angle));
        sines.push_back(std::sin(angle));
      }
      const DeviceMatrix in = put_matrix(x, kRows, kHeads * kDim);
      record_rope(rig().recorder(), DeviceMatrix::dense(rig().put(cosines), kRows, pairs),
                  DeviceMatrix::dense(rig().put(sines), kRows, pairs), halves, kHeads, in);
      rig().run();
      const std::vector<float> y = get(in);
      for (uint32_t row = 0; row < kRows; ++row) {
        for (uint32_t head = 0; head < kHeads; ++head) {
          std::vector<double> expected(x.begin() + (row * kHeads + head) * kDim,
                                       x.begin() + (row * kHeads + head + 1) * kDim);
          rotate(std::span(cosines).subspan(row * pairs, pairs), std::span(sines).subspan(row * pairs, pairs), halves,
                 expected);
          for (uint32_t d = 0; d < kDim; ++d) ASSERT_NEAR(y[(row * kHeads + head) * kDim + d], expected[d], 1e-6);
        }
      }
      rig().clear();
    }
  }
}

TEST_P(VulkanOpsTest, ChoosesAndSums) {
  for (const uint32_t n : {1u, 5u, 127u, 128u, 129u, 5000u}) {
    constexpr uint32_t kRows = 6;
    std::vector<float> x = random_floats(kRows * n, n, 4);
    for (uint32_t j = 0; j < n; ++j) x[n + j] = -kInfinity;         // a row of nothing
    x[2 * n + n / 2] = x[2 * n + n - 1] = 50;                       // a tie
    for (uint32_t j = 0; j < n; j += 2) x[3 * n + j] = -kInfinity;  // bans
    x[4 * n + n / 3] = std::nanf("");                               // the sum is none
    for (uint32_t j = 0; j < n; ++j) x[5 * n + j] = std::nanf("");
    const DeviceMatrix in = put_matrix(x, kRows, n);
    const BufferId out = rig().make(kRows * 3);
    record_choose(rig().recorder(), in, {out, 0, kRows * sizeof(DeviceChoice)});
    rig().run();
    const auto choices = rig().values<DeviceChoice>(out, kRows);
    for (uint32_t i = 0; i < kRows; ++i) {
      SCOPED_TRACE(str_cat("n ", n, " row ", i));
      int32_t best = -1;
      double sum = 0;
      for (uint32_t j = 0; j < n; ++j) {
        const float value = x[i * n + j];
        if (!std::isnan(value) && (best < 0 || value > x[i * n + static_cast<uint32_t>(best)])) {
          best = static_cast<int32_t>(j);
        }
      }
      const float highest = best < 0 ? -kInfinity : x[i * n + static_cast<uint32_t>(best)];
      for (uint32_t j = 0; j < n; ++j) {
        if (x[i * n + j] != -kInfinity) sum += std::exp(static_cast<double>(x[i * n + j]) - highest);
      }
      EXPECT_EQ(choices[i].id, best);
      EXPECT_EQ(best < 0 ? highest : choices[i].value, highest);
      const double expected = sum == 0 ? -kInfinity : highest + std::log(sum);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(choices[i].log_sum_exp));
      } else if (std::isinf(expected)) {
        EXPECT_EQ(choices[i].log_sum_exp, expected);
      } else {
        EXPECT_NEAR(choices[i].log_sum_exp, expected, 1e-5);
      }
    }
    rig().clear();
  }
}

}  // namespace
}  // namespace transept
