// Products of int8 weights on a software device against the processor's: to the bit where what is not an integer is
// done in the same order, which is everywhere but in activations and in the second row of wide inputs.
#include "device_vulkan/record_int8.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "attention/kv_values.h"
#include "device_vulkan/vulkan_rig_testing.h"
#include "ops/cpu_device.h"
#include "ops/gemm.h"
#include "ops/ops_testing.h"

namespace transept {
namespace {

using test_util::random_floats;
using test_util::rows_with_outliers;
using testing::VulkanRigTest;

struct Product {
  uint32_t m, n, k;
  InputRounding inputs = InputRounding::kUsual;
  Activation activation = Activation::kNone;
  bool has_bias = true, has_residual = true;
};

class VulkanInt8Test : public VulkanRigTest {
 protected:
  DeviceInt8Weights put_weights(const PackedMatrix& w, uint32_t tile_rows) {
    const std::span<const std::byte> panels = w.views().panels;
    return {{rig().put(panels), 0, panels.size()},
            rig().put_range({w.views().scales.begin(), w.views().scales.end()}),
            {rig().put(std::as_bytes(w.views().sums)), 0, w.views().sums.size_bytes()},
            static_cast<uint32_t>(w.n()),
            static_cast<uint32_t>(w.k()),
            {.rows = tile_rows}};
  }
  DeviceRoundedRows round(const DeviceMatrix& x, InputRounding inputs) {
    const uint64_t words = DeviceRoundedRows::q_words(x.rows, x.columns, inputs);
    const DeviceRoundedRows rounded{{rig().make(words), 0, words * 4},
                                    {rig().make(uint64_t{x.rows} * 2), 0, uint64_t{x.rows} * 8},
                                    x.rows,
                                    x.columns,
                                    inputs};
    record_round_rows(rig().recorder(), x, rounded);
    return rounded;
  }

  std::vector<float> on_device(const Product& p, const std::vector<float>& x, const PackedMatrix& w,
                               const std::vector<float>& bias, const std::vector<float>& residual,
                               uint32_t tile_rows = 0) {
    const DeviceMatrix in = put_matrix(x, p.m, p.k), out = make(p.m, p.n);
    DeviceEpilogue epilogue{.activation = p.activation};
    if (p.has_bias) epilogue.bias = rig().put_range(bias);
    if (p.has_residual) epilogue.residual = put_matrix(residual, p.m, p.n);
    record_product(rig().recorder(), round(in, p.inputs), put_weights(w, tile_rows), epilogue, out);
    rig().run();
    std::vector<float> y = get(out);
    rig().clear();
    return y;
  }
  std::vector<float> on_processor(const Product& p, std::vector<float> x, const PackedMatrix& w,
                                  const std::vector<float>& bias, std::vector<float> residual) {
    std::vector<float> y(size_t{p.m} * p.n);
    Epilogue epilogue{.bias = p.has_bias ? bias.data() : nullptr, .activation = p.activation};
    if (p.has_residual) epilogue.residual = test_util::matrix(residual, p.m, p.n);
    gemm(context_, test_util::matrix(x, p.m, p.k), w, epilogue, test_util::matrix(y, p.m, p.n));
    return y;
  }

  // Wide rows: a multiply-add more, which a device may round twice. Activations: theirs, too. gemm_test's bound.
  void expect_alike(const Product& p, const std::vector<float>& x) {
    SCOPED_TRACE(str_cat("m ", p.m, " n ", p.n, " k ", p.k, " inputs ", static_cast<int>(p.inputs), " activation ",
                         static_cast<int>(p.activation)));
    const PackedMatrix w = test_util::pack(random_floats(p.n * p.k, 2), p.n, p.k, {kInt8Format, p.inputs});
    const std::vector<float> bias = random_floats(p.n, 3), residual = random_floats(p.m * p.n, 4);
    const std::vector<float> there = on_device(p, x, w, bias, residual), here = on_processor(p, x, w, bias, residual);
    const bool is_exact =
        p.inputs == InputRounding::kUsual && (p.activation == Activation::kNone || p.activation == Activation::kRelu);
    const double bound = is_exact ? 0 : (2e-6 + 2.4e-7 * p.k) * 1.2 + 1e-6;
    for (size_t i = 0; i < here.size(); ++i) {
      ASSERT_EQ(std::isnan(there[i]), std::isnan(here[i])) << "at " << i / p.n << ", " << i % p.n;
      if (!std::isnan(here[i])) {
        ASSERT_NEAR(there[i], here[i], bound) << "at " << i / p.n << ", " << i % p.n;
      }
    }
    expect_same_by_matrices(p, x, w, bias, residual, there);
  }
  // Where the device has matrices of int8: they give the bits that shader cores give.
  void expect_same_by_matrices(const Product& p, const std::vector<float>& x, const PackedMatrix& w,
                               const std::vector<float>& bias, const std::vector<float>& residual,
                               const std::vector<float>& expected) {
    const std::optional<MatrixTile>& tile = rig().shared_device()->info().int8_tile;
    if (!tile.has_value()) return;
    const std::vector<float> y = on_device(p, x, w, bias, residual, tile->m);
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(expected[i]))
          << "by matrices at " << i / p.n << ", " << i % p.n;
    }
  }

  ThreadPool pool_{1};
  Arena arena_{size_t{8} << 20};
  CpuDevice device_{pool_};
  Context context_{.device = device_, .arena = arena_};
};

INSTANTIATE_TEST_SUITE_P(Builds, VulkanInt8Test, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "Reversed" : "Straight"; });

TEST_P(VulkanInt8Test, HasTheProcessorsBitsOverShapes) {
  for (const uint32_t m : {1u, 7u, 8u, 9u, 29u}) {
    for (const uint32_t n : {1u, 31u, 32u, 33u, 100u}) {
      for (const uint32_t k : {1u, 2u, 7u, 63u, 64u, 65u, 129u, 260u}) {
        expect_alike({m, n, k, InputRounding::kUsual, Activation::kNone, (m + n) % 2 == 0, (n + k) % 2 == 0},
                     random_floats(m * k, k));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(VulkanInt8Test, AppliesItsEpilogue) {
  for (int activation = 0; activation <= static_cast<int>(Activation::kQuickGelu); ++activation) {
    for (const int adds : {0, 1, 2, 3}) {
      expect_alike({3, 70, 33, InputRounding::kUsual, Activation(activation), (adds & 1) != 0, (adds & 2) != 0},
                   random_floats(3 * 33, 1));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(VulkanInt8Test, RoundsWideInputsTwice) {
  for (const InputRounding inputs : {InputRounding::kWide, InputRounding::kOutliers}) {
    for (const uint32_t m : {1u, 9u, 16u}) {
      for (const uint32_t k : {5u, 64u, 300u}) {
        expect_alike({m, 40, k, inputs}, random_floats(m * k, k));
        expect_alike({m, 40, k, inputs}, rows_with_outliers(m, k, k));
        if (HasFatalFailure()) return;
      }
    }
  }
}

// The second rounding makes rows far nearer to the exact product: were it left out, the bound above might not tell.
TEST_P(VulkanInt8Test, RowsOfOutliersLoseLittle) {
  constexpr uint32_t kRows = 4, kOutputs = 40, kInputs = 300;
  const std::vector<float> x = rows_with_outliers(kRows, kInputs, 1);
  const Product p{kRows, kOutputs, kInputs, InputRounding::kOutliers, Activation::kNone, false, false};
  const PackedMatrix w =
      test_util::pack(random_floats(kOutputs * kInputs, 2), kOutputs, kInputs, {kInt8Format, InputRounding::kOutliers});
  const std::vector<float> y = on_device(p, x, w, {}, {});
  for (uint32_t i = 0; i < kRows; i += 2) {
    for (uint32_t j = 0; j < kOutputs; ++j) {
      std::vector<float> row(kInputs);
      w.get_row(j, row.data());
      double exact = 0;
      for (uint32_t t = 0; t < kInputs; ++t) exact += static_cast<double>(x[i * kInputs + t]) * row[t];
      // Each input is off by at most half a step of 2 / 127 / 254, and weights are 0.8 in the mean.
      ASSERT_NEAR(y[i * kOutputs + j], exact, 3.1e-5 * 0.8 * std::sqrt(kInputs) * 4) << i << ", " << j;
    }
  }
}

// The largest sums there can be, zeros, rows of one sign, what is not finite, and numbers at the ends of float32.
TEST_P(VulkanInt8Test, RowsAtTheEnds) {
  constexpr uint32_t kInputs = 2048;
  const float rows[][2] = {{3, 3},         {-3, -3},       {0, 0},   {1e-31f, -1e-31f}, {2e-30f, 1e-30f}, {1e38f, 0},
                           {3e38f, 3e38f}, {-2.5f, 4.25f}, {NAN, 1}, {INFINITY, 1},     {-INFINITY, 0}};
  std::vector<float> x;
  for (const auto& row : rows) {
    for (uint32_t i = 0; i < kInputs; ++i) x.push_back(row[i % 2]);
  }
  constexpr auto kRows = static_cast<uint32_t>(std::size(rows));
  for (const InputRounding inputs : {InputRounding::kUsual, InputRounding::kWide, InputRounding::kOutliers}) {
    const PackedMatrix w =
        test_util::pack(std::vector<float>(size_t{33} * kInputs, -0.01f), 33, kInputs, {kInt8Format, inputs});
    const Product p{kRows, 33, kInputs, inputs, Activation::kNone, false, false};
    const std::vector<float> there = on_device(p, x, w, {}, {}), here = on_processor(p, x, w, {}, {});
    for (size_t i = 0; i < here.size(); ++i) {
      ASSERT_EQ(std::isnan(there[i]), std::isnan(here[i])) << "row " << i / 33 << " of " << static_cast<int>(inputs);
      if (!std::isnan(here[i])) {
        ASSERT_FLOAT_EQ(there[i], here[i]) << "row " << i / 33;
      }
    }
    expect_same_by_matrices(p, x, w, {}, {}, there);
  }
}

// A row alone, and in any place among others.
TEST_P(VulkanInt8Test, BitsDependOnTheRowAlone) {
  constexpr uint32_t kInputs = 130, kOutputs = 70;
  for (const InputRounding inputs : {InputRounding::kUsual, InputRounding::kWide, InputRounding::kOutliers}) {
    const PackedMatrix w =
        test_util::pack(random_floats(kOutputs * kInputs, 2), kOutputs, kInputs, {kInt8Format, inputs});
    const std::vector<float> all = rows_with_outliers(17, kInputs, 3);
    Product p{17, kOutputs, kInputs, inputs, Activation::kNone, false, false};
    const std::vector<float> together = on_device(p, all, w, {}, {});
    for (uint32_t row = 0; row < 17; ++row) {
      p.m = 1;
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(row) * kInputs;
      const std::vector<float> alone = on_device(p, {from, from + kInputs}, w, {}, {});
      ASSERT_EQ(std::memcmp(alone.data(), &together[size_t{row} * kOutputs], alone.size() * sizeof(float)), 0) << row;
    }
  }
}

TEST_P(VulkanInt8Test, HeadsBecomeWhatTheirIntegersMean) {
  for (const uint32_t dim : {1u, 5u, 37u, 64u, 256u}) {
    constexpr uint32_t kRows = 5, kHeads = 3;
    const std::vector<float> x = random_floats(kRows * kHeads * dim, dim);
    std::vector<float> with_zeros = x;
    std::fill_n(with_zeros.begin(), dim, 0.0f);
    const DeviceMatrix y = make(kRows, kHeads * dim);
    record_round_heads(rig().recorder(), put_matrix(with_zeros, kRows, kHeads * dim), kHeads, y);
    rig().run();
    const std::vector<float> is = get(y);
    for (size_t head = 0; head < size_t{kRows} * kHeads; ++head) {
      const float* from = &with_zeros[head * dim];
      const float scale = int8_scale(from, dim);
      for (size_t d = 0; d < dim; ++d) {
        ASSERT_EQ(is[head * dim + d], scale * static_cast<float>(float_to_int8(from[d], scale))) << head << ", " << d;
      }
    }
    rig().clear();
  }
}

}  // namespace
}  // namespace transept
