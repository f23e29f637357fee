// Matrices of 4-bit codes: bytes where nibble_panels.h says, the numbers that codes mean, products with the bits of the
// float32 matrix of these numbers at every level, and products with rounded inputs against their definition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "base/sanitized_testing.h"
#include "base/strings.h"
#include "ops/cpu_device.h"
#include "ops/gemm.h"
#include "ops/ops_testing.h"

namespace transept {
namespace {

using test_util::matrix;
using test_util::random_floats;

// What a matrix consists of, and its weights written out.
struct Codes {
  int64_t n, k;
  WeightFormat format;
  bool is_permuted = false;
  std::vector<int8_t> codes = {};
  std::vector<float> scales = {};  // [n, groups]
  std::vector<int16_t> zeros = {};
  std::vector<float> table = {};
  std::vector<int32_t> input_groups = {};  // of every input

  int64_t group() const { return format.group == 0 ? k : format.group; }
  int64_t num_groups() const { return k / group(); }

  Codes(int64_t outputs, int64_t inputs, const WeightFormat& of, bool permuted = false)
      : n(outputs), k(inputs), format(of), is_permuted(permuted) {
    std::mt19937 random(static_cast<uint32_t>(k + of.group));
    const auto below = [&](int32_t count) { return static_cast<int32_t>(random() % static_cast<uint32_t>(count)); };
    codes.resize(static_cast<size_t>(n * k));
    for (int8_t& code : codes) code = static_cast<int8_t>(below(16) - 8);
    scales.resize(static_cast<size_t>(n * num_groups()));
    for (float& scale : scales) scale = static_cast<float>(1 + below(1000)) / 7000;
    if (of.has_zero) zeros.resize(scales.size());
    for (int16_t& zero : zeros) zero = static_cast<int16_t>(below(16) - 8);
    if (!of.is_codes()) table = random_floats(16, 3);
    input_groups.resize(static_cast<size_t>(k));
    for (size_t j = 0; j < input_groups.size(); ++j) {
      input_groups[j] = static_cast<int32_t>(static_cast<int64_t>(j) / group());
    }
    if (permuted) std::shuffle(input_groups.begin(), input_groups.end(), random);
  }

  // Each step rounded to float32, as nibble_kernel.h promises.
  float weight(int64_t output, int64_t input) const {
    const int8_t code = codes[static_cast<size_t>(output * k + input)];
    const auto at = static_cast<size_t>(output * num_groups() + input_groups[static_cast<size_t>(input)]);
    const float value = table.empty() ? static_cast<float>(code) : table[static_cast<size_t>(code + 8)];
    return (value - (zeros.empty() ? 0.0f : static_cast<float>(zeros[at]))) * scales[at];
  }

  PackedMatrix packed(InputRounding inputs = InputRounding::kUsual) const {
    const NibbleMeanings meanings{
        table, is_permuted ? std::span<const int32_t>(input_groups) : std::span<const int32_t>(), num_groups()};
    PackedMatrix result(n, k, {format, inputs}, nullptr, meanings);
    const auto groups = static_cast<size_t>(num_groups());
    for (int64_t i = 0; i < n; ++i) {
      const auto first = static_cast<size_t>(i) * groups;
      result.set_nibbles(i, std::span(codes).subspan(static_cast<size_t>(i * k), static_cast<size_t>(k)),
                         std::span(scales).subspan(first, groups),
                         zeros.empty() ? std::span<const int16_t>() : std::span(zeros).subspan(first, groups));
    }
    return result;
  }

  PackedMatrix widened() const {
    std::vector<float> weights;
    for (int64_t i = 0; i < n * k; ++i) weights.push_back(weight(i / k, i % k));
    return test_util::pack(weights, n, k);
  }

  std::string name() const {
    return weight_format_name(format) + (is_permuted ? ", permuted, " : ", ") + std::to_string(n) + " x " +
           std::to_string(k);
  }
};

std::vector<uint32_t> bits(const std::vector<float>& values) {
  std::vector<uint32_t> result(values.size());
  std::memcpy(result.data(), values.data(), values.size() * sizeof(float));
  return result;
}

std::vector<Codes> examples() {
  return {Codes(70, 128, int4_format(32)),         Codes(33, 256, int4_format(128, true)),
          Codes(70, 192, float4_format(64)),       Codes(150, 128, int4_format(32, true), true),
          Codes(40, 128, int4_format(64), true),   Codes(90, 96, int4_format(0)),
          Codes(65, 128, float4_format(32), true), Codes(200, 512, int4_format(64, true))};
}

TEST(NibblePanels, EveryPartLiesWhereThePageSays) {
  const Codes all(70, 128, int4_format(64, true));
  const PackedMatrix packed = all.packed();
  const int64_t panel_bytes = 128 * 32 / 2 + 2 * 32 * 4 + 2 * 32 * 2;
  ASSERT_EQ(std::ssize(packed.views().panels), 3 * panel_bytes);
  for (int64_t i = 0; i < all.n; ++i) {
    const std::byte* panel = packed.panels() + i / 32 * panel_bytes;
    for (int64_t t = 0; t < all.k; ++t) {
      const auto byte = std::to_integer<int32_t>(panel[t / 8 * 128 + i % 32 * 4 + t % 4]);
      ASSERT_EQ(t % 8 < 4 ? byte & 15 : byte >> 4, all.codes[static_cast<size_t>(i * all.k + t)] + 8);
    }
    for (int64_t g = 0; g < 2; ++g) {
      float scale;
      int16_t zero;
      std::memcpy(&scale, panel + 128 * 16 + (g * 32 + i % 32) * 4, sizeof scale);
      std::memcpy(&zero, panel + 128 * 16 + 2 * 32 * 4 + (g * 32 + i % 32) * 2, sizeof zero);
      ASSERT_EQ(scale, all.scales[static_cast<size_t>(i * 2 + g)]);
      ASSERT_EQ(zero, all.zeros[static_cast<size_t>(i * 2 + g)]);
    }
  }
}

TEST(NibblePanels, RowsAreWhatTheCodesMean) {
  for (const Codes& all : examples()) {
    const PackedMatrix packed = all.packed();
    const StatusOr<PackedMatrix> view = PackedMatrix::view(all.n, all.k, packed.format(), packed.views());
    ASSERT_TRUE(view.ok()) << view.status();
    std::vector<float> row(static_cast<size_t>(all.k)), seen(row.size());
    for (int64_t i = 0; i < all.n; ++i) {
      packed.get_row(i, row.data());
      view->get_row(i, seen.data());
      EXPECT_EQ(seen, row);
      for (int64_t t = 0; t < all.k; ++t) ASSERT_EQ(row[static_cast<size_t>(t)], all.weight(i, t)) << all.name();
    }
  }
}

TEST(NibblePanels, ChosenRowsAreCopiedWithTheirScales) {
  const Codes all(70, 128, int4_format(32, true));
  const PackedMatrix packed = all.packed();
  PackedMatrix chosen(40, 128, packed.format());
  const std::vector<int32_t> rows = {69, 3, 31, 32, 64, 0};
  chosen.copy_rows(packed, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<float> row(128), expected(128);
    chosen.get_row(static_cast<int64_t>(i), row.data());
    packed.get_row(rows[i], expected.data());
    EXPECT_EQ(row, expected);
  }
}

TEST(NibblePanels, ViewsOfOtherBytesAreRefused) {
  const Codes all(70, 128, int4_format(32), true);
  const PackedMatrix packed = all.packed();
  const auto refusal = [&](int64_t n, int64_t k, const WeightFormat& format, std::span<const std::byte> panels) {
    PackedBytes bytes;
    bytes.panels = panels;
    return error_message(PackedMatrix::view(n, k, {format}, bytes).status());
  };
  const std::span<const std::byte> whole = packed.views().panels;
  EXPECT_EQ(refusal(70, 128, all.format, whole), "");
  EXPECT_NE(refusal(70, 128, all.format, whole.first(whole.size() - 4)), "");
  EXPECT_EQ(refusal(70, 128, all.format, whole.first(whole.size() - 128 * 4)), "") << "inputs in order";
  EXPECT_NE(refusal(70, 96, all.format, whole), "");
  EXPECT_NE(refusal(70, 128, int4_format(64), whole), "");
  EXPECT_NE(refusal(70, 128, float4_format(32), whole), "");
  EXPECT_NE(refusal(70, 100, all.format, whole), "");
  EXPECT_NE(refusal(int64_t{1} << 60, 128, all.format, whole), "");
  EXPECT_NE(refusal(70, 128, int4_format(24), whole), "");
  for (const int32_t group : {-1, 4}) {
    PackedMatrix other = all.packed();
    auto* groups = const_cast<int32_t*>(other.nibble_meanings().input_groups.data());
    groups[77] = group;
    EXPECT_THAT(refusal(70, 128, all.format, other.views().panels), ::testing::HasSubstr("group")) << group;
  }
}

TEST(RoundToInt4, FindsCodesOfLeastError) {
  std::vector<int8_t> codes(64);
  for (uint32_t seed = 1; seed < 50; ++seed) {
    const std::vector<float> weights = random_floats(64, seed);
    const float scale = round_to_int4(weights, codes);
    double error = 0, plain = 0, largest = 0;
    for (const float weight : weights) largest = std::max(largest, std::abs(static_cast<double>(weight)));
    for (size_t t = 0; t < weights.size(); ++t) {
      ASSERT_TRUE(codes[t] >= -8 && codes[t] <= 7);
      const double w = weights[t];
      error += std::pow(w - static_cast<double>(codes[t]) * scale, 2);
      plain += std::pow(w - std::rint(w / largest * 7) * largest / 7, 2);
      // The nearest of the codes that there are.
      const double steps = std::clamp(std::rint(w / scale), -8.0, 7.0);
      ASSERT_NEAR(static_cast<double>(codes[t]), steps, std::abs(w / scale - steps) > 0.4999 ? 1 : 0);
    }
    EXPECT_LE(error, plain * 1.0001) << seed;
  }
  EXPECT_EQ(round_to_int4(std::vector<float>(64), codes), 0);
  EXPECT_TRUE(std::isnan(round_to_int4(std::vector<float>(64, HUGE_VALF), codes)));
}

class NibbleGemmTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > detect_isa()) GTEST_SKIP() << isa_name(GetParam()) << " is not present on this processor";
  }

  std::vector<float> product(const PackedMatrix& w, std::vector<float> x, int64_t m, int32_t leaves = 1,
                             const std::vector<float>& bias = {}) {
    ThreadPool pool(2);
    Arena arena(size_t{64} << 20);
    CpuDevice device{pool, GetParam()};
    Context context{.device = device, .arena = arena};
    std::vector<float> y(static_cast<size_t>(m * w.n()), 7.0f);
    gemm(context, {matrix(x, m, w.k()), nullptr, leaves}, w,
         {.bias = bias.empty() ? nullptr : bias.data(), .activation = Activation::kRelu, .residual = {}},
         matrix(y, m, w.n()));
    return y;
  }
};

INSTANTIATE_TEST_SUITE_P(Levels, NibbleGemmTest,
                         ::testing::Values(Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAvx512Bf16,
                                           Isa::kAvx512Fp16, Isa::kAmx),
                         [](const auto& param) { return std::string(isa_name(param.param)); });

TEST_P(NibbleGemmTest, HasTheBitsOfTheNumbersThatCodesMean) {
  for (const Codes& all : examples()) {
    const PackedMatrix packed = all.packed(), widened = all.widened();
    ASSERT_EQ(num_leaves(all.k, packed.format()), num_leaves(all.k, widened.format()));
    for (const int64_t m : {1, 2, 3, 5, 8, 9, 17, 31}) {
      const std::vector<float> x = random_floats(m * all.k, static_cast<uint32_t>(m)), bias = random_floats(all.n, 5);
      EXPECT_EQ(bits(product(packed, x, m, 1, bias)), bits(product(widened, x, m, 1, bias))) << all.name() << ", " << m;
      const int32_t leaves = num_leaves(all.k, packed.format());
      EXPECT_EQ(bits(product(packed, x, m, leaves)), bits(product(widened, x, m, leaves))) << all.name() << ", " << m;
    }
  }
}

TEST_P(NibbleGemmTest, PartsOfColumnsHaveTheSameBits) {
  const Codes in_order(2500, 64, int4_format(32, true)), permuted(2500, 64, int4_format(32), true),
      table(2500, 64, float4_format(32));
  for (const auto& [codes, inputs] :
       {std::pair(&in_order, InputRounding::kUsual), std::pair(&in_order, InputRounding::kGroups),
        std::pair(&permuted, InputRounding::kUsual), std::pair(&table, InputRounding::kUsual)}) {
    const Codes& all = *codes;
    const PackedMatrix packed = all.packed(inputs);
    for (const int64_t m : {1, 20}) {
      std::vector<float> x = random_floats(m * all.k, 3), y(static_cast<size_t>(m * all.n));
      ThreadPool pool(2);
      Arena arena(size_t{64} << 20);
      CpuDevice device{pool, GetParam()};
      Context context{.device = device, .arena = arena};
      gemm_by_columns(context, matrix(x, m, all.k), packed, nullptr, matrix(y, m, all.n), [](const ColumnPiece&) {});
      std::vector<float> whole(y.size());
      gemm(context, matrix(x, m, all.k), packed, {}, matrix(whole, m, all.n));
      EXPECT_EQ(y, whole);
      PackedMatrix part(kPartColumns, all.k, packed.format(), nullptr, packed.nibble_meanings());
      std::vector<int32_t> rows(static_cast<size_t>(kPartColumns));
      std::iota(rows.begin(), rows.end(), 1000);
      part.copy_rows(packed, rows);
      std::vector<float> chosen(static_cast<size_t>(m * kPartColumns));
      const GemmPart parts[] = {{&part, nullptr}};
      const PartedGemm products[] = {{matrix(x, m, all.k), parts, matrix(chosen, m, kPartColumns)}};
      gemm_parted(context, packed, products);
      for (int64_t i = 0; i < m * kPartColumns; ++i) {
        ASSERT_EQ(chosen[static_cast<size_t>(i)],
                  whole[static_cast<size_t>(i / kPartColumns * all.n + 1000 + i % kPartColumns)]);
      }
    }
  }
}

// The definition in double precision: inputs of a group in 127 steps on either side of 0.
std::vector<double> rounded_in_groups(const Codes& all, const float* inputs) {
  std::vector<double> rounded;
  for (int64_t g = 0; g < all.num_groups(); ++g, inputs += all.group()) {
    float largest = 0;
    for (int64_t t = 0; t < all.group(); ++t) largest = std::max(largest, std::abs(inputs[t]));
    for (int64_t t = 0; t < all.group(); ++t) {
      rounded.push_back(largest == 0 ? 0 : std::nearbyint(inputs[t] * (127 / largest)) * (largest / 127.0));
    }
  }
  return rounded;
}

void expect_row_of_groups(const Codes& all, const float* inputs, const float* outputs) {
  const std::vector<double> rounded = rounded_in_groups(all, inputs);
  for (int64_t i = 0; i < all.n; ++i) {
    double sum = 0, size = 0;
    for (int64_t t = 0; t < all.k; ++t) {
      const double term = rounded[static_cast<size_t>(t)] * all.weight(i, t);
      sum += term, size += std::abs(term);
    }
    ASSERT_NEAR(outputs[i], std::max(sum, 0.0), 1e-6 * size + 1e-12) << "output " << i;
  }
}

TEST_P(NibbleGemmTest, InputsAreRoundedInGroupsAsDefined) {
  for (const Codes& all : examples()) {
    if (all.is_permuted || !all.format.is_codes()) continue;
    const PackedMatrix packed = all.packed(InputRounding::kGroups);
    for (const int64_t m : {1, 2, 3, 4, 6, 7, 8, 9, 17, 33}) {
      if (kSanitized && (m % 2 == 0 || m > 9)) continue;
      std::vector<float> x = random_floats(m * all.k, static_cast<uint32_t>(m) + 9);
      std::fill_n(x.begin(), all.group(), 0.0f);  // a group of zeros
      x[static_cast<size_t>(all.k) - 1] = 40;
      const std::vector<float> y = product(packed, x, m);
      for (int64_t row = 0; row < m; ++row) {
        SCOPED_TRACE(str_cat(all.name(), ", row ", row, " of ", m));
        ASSERT_NO_FATAL_FAILURE(expect_row_of_groups(all, x.data() + row * all.k, y.data() + row * all.n));
      }
    }
  }
}

TEST_P(NibbleGemmTest, ARowOfRoundedGroupsHasTheBitsThatItHasAlone) {
  for (const Codes& all : examples()) {
    if (all.is_permuted || !all.format.is_codes()) continue;
    const PackedMatrix packed = all.packed(InputRounding::kGroups);
    constexpr int64_t kRows = 29;
    const std::vector<float> x = random_floats(kRows * all.k, 8);
    const std::vector<float> together = product(packed, x, kRows);
    for (int64_t row = 0; row < kRows; ++row) {
      const auto from = x.begin() + row * all.k;
      const std::vector<float> alone = product(packed, {from, from + all.k}, 1);
      ASSERT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + row * all.n)) << all.name() << row;
    }
  }
}

TEST_P(NibbleGemmTest, ExtremeCodesAndInputsDoNotSaturate) {
  for (const bool is_low : {true, false}) {
    Codes all(40, 256, int4_format(128, true));
    std::ranges::fill(all.codes, static_cast<int8_t>(is_low ? -8 : 7));
    std::ranges::fill(all.zeros, static_cast<int16_t>(is_low ? 7 : -8));
    std::ranges::fill(all.scales, 1.0f);
    for (const float sign : {-1.0f, 1.0f}) {
      const std::vector<float> x(static_cast<size_t>(all.k), 127 * sign);
      const float expected = std::max(0.0f, 256 * 127 * sign * (is_low ? -15.0f : 15.0f));
      EXPECT_THAT(product(all.packed(InputRounding::kGroups), x, 1), ::testing::Each(expected));
    }
  }
}

TEST_P(NibbleGemmTest, StrangeInputsShow) {
  const Codes all(40, 128, int4_format(32));
  for (const float strange : {NAN, HUGE_VALF}) {
    std::vector<float> x(static_cast<size_t>(all.k), 1.0f);
    x[70] = strange;
    for (const float y : product(all.packed(InputRounding::kGroups), x, 1)) EXPECT_FALSE(y > -1e30f) << y;
  }
}

TEST_P(NibbleGemmTest, SumsOfRoundedGroupsAreTreesOfLeaves) {
  const Codes all(70, 256, int4_format(32));
  const PackedMatrix packed = all.packed(InputRounding::kGroups);
  const int32_t leaves = num_leaves(all.k, packed.format());
  ASSERT_EQ(leaves, 4);
  for (const int64_t m : {1, 11}) {
    const std::vector<float> x = random_floats(m * all.k, 8);
    std::vector<std::vector<float>> sums;
    for (int64_t leaf = 0; leaf < leaves; ++leaf) {
      // Only this leaf's inputs: the others' groups add nothing.
      std::vector<float> some(x.size(), 0.0f);
      for (int64_t i = 0; i < std::ssize(x); ++i) {
        if (i % all.k / (all.k / leaves) == leaf) some[static_cast<size_t>(i)] = x[static_cast<size_t>(i)];
      }
      ThreadPool pool(1);
      Arena arena(size_t{8} << 20);
      CpuDevice device{pool, GetParam()};
      Context context{.device = device, .arena = arena};
      std::vector<float> y(static_cast<size_t>(m * all.n));
      gemm(context, matrix(some, m, all.k), packed, {}, matrix(y, m, all.n));
      sums.push_back(y);
    }
    const std::vector<float> y = product(packed, x, m, leaves);
    for (size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(y[i], std::max(0.0f, (sums[0][i] + sums[1][i]) + (sums[2][i] + sums[3][i])));
    }
  }
}

}  // namespace
}  // namespace transept
