// Inputs rounded as checkpoints define it, against the definition spelled out in double precision; every number of
// float8 against its own list; and that a row depends on itself alone.
#include "ops/round_inputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/cpu_device.h"
#include "ops/gemm.h"
#include "ops/ops_testing.h"

namespace transept {
namespace {

using test_util::matrix;
using test_util::random_floats;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
constexpr InputQuantization kInt8{.type = InputQuantization::Type::kInteger};
constexpr InputQuantization kFloat8{.type = InputQuantization::Type::kFloat8};

// The numbers of float8 e4m3 from 0 on: 8 subnormals, then 8 for each exponent but the last, which lacks its last.
std::vector<float> float8_numbers() {
  std::vector<float> list;
  for (int exponent = 0; exponent < 16; ++exponent) {
    for (int fraction = 0; fraction < (exponent == 15 ? 7 : 8); ++fraction) {
      list.push_back(exponent == 0 ? static_cast<float>(std::ldexp(fraction, -9))
                                   : static_cast<float>(std::ldexp(8 + fraction, exponent - 10)));
    }
  }
  return list;
}

// By searching the list; of two as near, the one whose place is even.
float nearest_float8(double value) {
  static const std::vector<float> kNumbers = float8_numbers();
  size_t best = 0;
  for (size_t i = 1; i < kNumbers.size(); ++i) {
    const double now = std::abs(std::abs(value) - kNumbers[best]), other = std::abs(std::abs(value) - kNumbers[i]);
    if (other < now || (other == now && i % 2 == 0)) best = i;
  }
  return std::copysign(kNumbers[best], static_cast<float>(value));
}

double nearest_even(double value) {
  const double low = std::floor(value), part = value - low;
  if (part != 0.5) return part < 0.5 ? low : low + 1;
  return std::fmod(low, 2) == 0 ? low : low + 1;
}

class RoundInputs : public ::testing::Test {
 protected:
  std::vector<float> round(std::vector<float> x, int64_t rows, const InputQuantization& inputs,
                           const RowStatistics* statistics = nullptr) {
    const auto columns = static_cast<int64_t>(x.size()) / rows;
    std::vector<float> y(x.size());
    round_inputs(context_, matrix(x, rows, columns), inputs, statistics, matrix(y, rows, columns));
    return y;
  }

  ThreadPool pool_{2};
  Arena arena_{1 << 20};
  CpuDevice device_{pool_};
  Context context_{.device = device_, .arena = arena_};
};

TEST_F(RoundInputs, ARowOfIntegersHasTheScaleOfItsLargest) {
  // The largest is 127.5 steps of 0.5: it is clamped to 127, or stays -128. Halves of steps go to the even code.
  EXPECT_EQ(round({63.75f, 0.25f, 0.75f, -0.25f, -0.75f, 1.25f, 0, 0.5f}, 1, kInt8),
            (std::vector<float>{63.5f, 0, 1, 0, -1, 1, 0, 0.5f}));
  EXPECT_EQ(round({-63.75f, 63.75f}, 1, kInt8), (std::vector<float>{-64, 63.5f}));
  // Each row its own.
  EXPECT_EQ(round({63.75f, 0.3f, 127.5f, 0.3f}, 2, kInt8), (std::vector<float>{63.5f, 0.5f, 127, 0}));
}

TEST_F(RoundInputs, AreThoseOfTheDefinition) {
  const int64_t rows = 9, k = 130;
  const std::vector<float> x = random_floats(rows * k, 3);
  for (const int32_t bits : {8, 4, 2}) {
    for (const bool is_symmetric : {true, false}) {
      InputQuantization inputs = kInt8;
      inputs.bits = bits;
      inputs.is_symmetric = is_symmetric;
      const std::vector<float> y = round(x, rows, inputs);
      const double least = -std::ldexp(1, bits - 1), most = -least - 1;
      for (int64_t i = 0; i < rows; ++i) {
        const auto begin = x.begin() + i * k;
        const auto [low, high] = std::minmax_element(begin, begin + k);
        const float scale = is_symmetric ? std::max(-*low, *high) / static_cast<float>((most - least) / 2)
                                         : (*high - *low) / static_cast<float>(most - least);
        const double zero =
            is_symmetric
                ? 0
                : nearest_even(std::clamp(static_cast<double>(static_cast<float>(least) - *low / scale), least, most));
        for (int64_t j = 0; j < k; ++j) {
          const auto at = static_cast<size_t>(i * k + j);
          const float scaled = x[at] / scale + static_cast<float>(zero);
          const double code = std::clamp(nearest_even(scaled), least, most);
          ASSERT_EQ(y[at], static_cast<float>(code - zero) * scale) << bits << is_symmetric << " " << i << ", " << j;
        }
      }
    }
  }
}

TEST_F(RoundInputs, EveryFloat8IsItselfAndEveryNumberTheNearest) {
  InputQuantization inputs = kFloat8;
  inputs.scale = 1;
  const std::vector<float> numbers = float8_numbers();
  ASSERT_EQ(numbers.size(), 127u);
  ASSERT_EQ(numbers.back(), 448);
  EXPECT_EQ(round(numbers, 1, inputs), numbers);
  std::vector<float> between;
  for (size_t i = 0; i + 1 < numbers.size(); ++i) {
    const float middle = (numbers[i] + numbers[i + 1]) / 2;  // exact
    for (const float value : {std::nextafter(middle, 0.0f), middle, std::nextafter(middle, kInfinity)}) {
      between.push_back(value);
      between.push_back(-value);
    }
  }
  const std::vector<float> y = round(between, 1, inputs);
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], nearest_float8(between[i])) << between[i];
  EXPECT_EQ(round({1000, -449, 464}, 1, inputs), (std::vector<float>{448, -448, 448}));
}

TEST_F(RoundInputs, ARowOfFloat8HasTheScaleOfItsLargest) {
  const int64_t rows = 5, k = 70;
  const std::vector<float> x = random_floats(rows * k, 4), y = round(x, rows, kFloat8);
  for (int64_t i = 0; i < rows; ++i) {
    float largest = 0;
    for (int64_t j = 0; j < k; ++j) largest = std::max(largest, std::abs(x[static_cast<size_t>(i * k + j)]));
    const float scale = largest / 448;
    for (int64_t j = 0; j < k; ++j) {
      const auto at = static_cast<size_t>(i * k + j);
      ASSERT_EQ(y[at], nearest_float8(x[at] / scale) * scale) << i << ", " << j;
    }
  }
}

TEST_F(RoundInputs, AStaticScaleIsThatOfAllRows) {
  InputQuantization inputs = kInt8;
  inputs.scale = 0.5f;
  EXPECT_EQ(round({100, 0.25f, -100, 0.75f}, 2, inputs), (std::vector<float>{63.5f, 0, -64, 1}));
  inputs.is_symmetric = false;
  inputs.zero = 28;  // codes -128 to 127 are -78 to 49.5
  EXPECT_EQ(round({100, 0.3f, -100, 49}, 2, inputs), (std::vector<float>{49.5f, 0.5f, -78, 49}));
}

TEST_F(RoundInputs, GroupsAreRowsOfTheirOwn) {
  InputQuantization inputs = kFloat8;
  inputs.group = 2;
  const std::vector<float> x = {448, 3.3f, 44.8f, 0.33f, 4480, 33, 1, 2};
  std::vector<float> wanted;
  for (size_t i = 0; i < x.size(); i += 2) {
    const std::vector<float> group = round({x[i], x[i + 1]}, 1, kFloat8);
    wanted.insert(wanted.end(), group.begin(), group.end());
  }
  EXPECT_EQ(round(x, 2, inputs), wanted);
  EXPECT_NE(round(x, 2, kFloat8), wanted);
}

TEST_F(RoundInputs, ZerosStayAndWhatIsNotFiniteShows) {
  InputQuantization zeros = kInt8;
  zeros.is_symmetric = false;
  for (const InputQuantization& inputs : {kInt8, kFloat8, zeros}) {
    EXPECT_EQ(round({0, 0, 0, 0}, 2, inputs), (std::vector<float>{0, 0, 0, 0}));
    for (const float strange : {kNaN, kInfinity, -kInfinity}) {
      const std::vector<float> y = round({1, strange, 1, 1}, 2, inputs);
      EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
      EXPECT_NEAR(y[2], 1, 0.01f) << "another row";
    }
    const std::vector<float> tiny = round({1e-40f, -1e-40f}, 1, inputs);
    EXPECT_TRUE(std::isfinite(tiny[0]) && std::isfinite(tiny[1]));
  }
  for (InputQuantization inputs : {kInt8, kFloat8}) {
    inputs.scale = 1;
    const std::vector<float> y = round({kNaN, kInfinity, 1, -kInfinity}, 2, inputs);
    const float most = inputs.type == InputQuantization::Type::kFloat8 ? 448 : 127;
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(y[1], most);
    EXPECT_EQ(y[2], 1);
    EXPECT_EQ(y[3], inputs.type == InputQuantization::Type::kFloat8 ? -448 : -128);
  }
}

TEST_F(RoundInputs, ARowsBitsAreItsOwn) {
  const int64_t rows = 600, k = 200;  // several tasks
  const std::vector<float> x = random_floats(rows * k, 5);
  for (const InputQuantization& inputs : {kInt8, kFloat8}) {
    const std::vector<float> all = round(x, rows, inputs);
    for (const int64_t row : {int64_t{0}, int64_t{163}, rows - 1}) {
      const auto begin = static_cast<size_t>(row * k), end = begin + static_cast<size_t>(k);
      const std::vector<float> one(x.begin() + static_cast<int64_t>(begin), x.begin() + static_cast<int64_t>(end));
      const std::vector<float> alone = round(one, 1, inputs);
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), all.begin() + static_cast<int64_t>(begin))) << row;
    }
  }
}

TEST_F(RoundInputs, APartOfTheInputsHasTheScaleOfTheWhole) {
  std::vector<float> x = random_floats(2 * 64, 6);
  const std::vector<float> whole = round(x, 2, kInt8);
  std::vector<RowStatistics> statistics(2);
  row_statistics(context_, matrix(x, 2, 64), statistics);
  std::vector<float> part = {x.begin(), x.begin() + 32};
  part.insert(part.end(), x.begin() + 64, x.begin() + 96);
  const std::vector<float> y = round(part, 2, kInt8, statistics.data());
  EXPECT_TRUE(std::equal(y.begin(), y.begin() + 32, whole.begin()));
  EXPECT_TRUE(std::equal(y.begin() + 32, y.end(), whole.begin() + 64));
}

}  // namespace
}  // namespace transept
