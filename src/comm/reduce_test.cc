#include "comm/reduce.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "comm/ranks_testing.h"

namespace transept {
namespace {

using testing::kPatient;
using testing::make_group;
using testing::run_ranks;

constexpr size_t kOutboxBytes = size_t{1} << 20;

// Magnitudes apart, so that the order of additions shows in the bits.
std::vector<float> random_floats(int64_t count, uint32_t seed) {
  std::mt19937 draw(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    value = std::ldexp(static_cast<float>(static_cast<int32_t>(draw())) / 2147483648.0F, static_cast<int>(draw() % 20));
  }
  return values;
}

// The sum of `parts` as section 2 of the design has it, written as recursion: halves first, then their sum.
float tree(const std::vector<std::vector<float>>& parts, size_t begin, size_t end, size_t i) {
  if (end - begin == 1) return parts[begin][i];
  const size_t middle = begin + (end - begin) / 2;
  return tree(parts, begin, middle, i) + tree(parts, middle, end, i);
}

struct Shape {
  int64_t rows, columns;
};
// On both sides of 32 KiB, with rows that ranks do not share evenly, and columns on both sides of a piece.
constexpr Shape kShapes[] = {{1, 1},    {1, 384},  {3, 255},   {8, 1024}, {8, 1025},
                             {33, 257}, {7, 1536}, {192, 512}, {9, 8193}};

// Sums of a shape, and what they must be. The residual stands where the sum goes.
class Sums final {
 public:
  Sums(int num_ranks, const Shape& shape)
      : shape_(shape),
        stride_(shape.columns + 3),
        bias_(random_floats(shape.columns, 100)),
        residual_(random_floats(shape.rows * stride_, 101)) {
    parts_.reserve(static_cast<size_t>(num_ranks));
    for (int rank = 0; rank < num_ranks; ++rank) {
      parts_.push_back(random_floats(shape.rows * shape.columns, static_cast<uint32_t>(rank) + 1));
    }
  }

  // The sum that this rank gets.
  std::vector<float> sum(Communicator& ranks, bool has_epilogue) const {
    ThreadPool threads(2);
    const std::vector<float>& own = parts_[static_cast<size_t>(ranks.rank())];
    std::memcpy(ranks.outbox(own.size() * 4).data(), own.data(), own.size() * 4);
    std::vector<float> y = residual_;
    SumEpilogue epilogue;
    if (has_epilogue) epilogue = {.bias = bias_.data(), .residual = y.data(), .residual_stride = stride_};
    EXPECT_EQ(sum_over_ranks(ranks, threads, shape_.rows, shape_.columns, epilogue, y.data(), stride_), ok_status());
    return y;
  }

  int64_t num_wrong(const std::vector<float>& y, bool has_epilogue) const {
    int64_t count = 0;
    for (int64_t i = 0; i < std::ssize(y); ++i) {
      const auto bits = std::bit_cast<uint32_t>(wanted(i / stride_, i % stride_, has_epilogue));
      count += std::bit_cast<uint32_t>(y[static_cast<size_t>(i)]) != bits ? 1 : 0;
    }
    return count;
  }

 private:
  float wanted(int64_t row, int64_t column, bool has_epilogue) const {
    const float residual = residual_[static_cast<size_t>(row * stride_ + column)];
    if (column >= shape_.columns) return residual;  // between rows: as it was
    const float sum = tree(parts_, 0, parts_.size(), static_cast<size_t>(row * shape_.columns + column));
    return has_epilogue ? (sum + bias_[static_cast<size_t>(column)]) + residual : sum;
  }

  Shape shape_;
  int64_t stride_;
  std::vector<float> bias_, residual_;
  std::vector<std::vector<float>> parts_;
};

TEST(SumOverRanks, HasTheBitsOfTheTree) {
  for (const int num_ranks : {1, 2, 4, 8}) {
    const auto group = make_group(num_ranks, kOutboxBytes);
    for (const Shape& shape : kShapes) {
      const Sums sums(num_ranks, shape);
      run_ranks(*group, kPatient, [&](Communicator& ranks) {
        for (const bool has_epilogue : {false, true}) {
          EXPECT_EQ(sums.num_wrong(sums.sum(ranks, has_epilogue), has_epilogue), 0)
              << num_ranks << " ranks, " << shape.rows << " x " << shape.columns;
        }
      });
    }
  }
}

TEST(SumOverRanks, OfIntegers) {
  for (const int num_ranks : {1, 2, 4, 8}) {
    const auto group = make_group(num_ranks, kOutboxBytes);
    for (const int64_t count : {1, 4095, 8192, 8193, 100'003}) {
      run_ranks(*group, kPatient, [&](Communicator& ranks) {
        ThreadPool threads(2);
        const auto own = std::as_writable_bytes(ranks.outbox(static_cast<size_t>(count) * 4));
        auto* part = reinterpret_cast<int32_t*>(own.data());
        for (int64_t i = 0; i < count; ++i)
          part[i] = static_cast<int32_t>((i * 7919 + ranks.rank() * 104'729) % 1'000'003) - 500'000;
        std::vector<int32_t> y(static_cast<size_t>(count), -1);
        ASSERT_TRUE(sum_over_ranks(ranks, threads, count, y.data()).ok());
        int num_wrong = 0;
        for (int64_t i = 0; i < count; ++i) {
          int64_t wanted = 0;
          for (int rank = 0; rank < num_ranks; ++rank) wanted += (i * 7919 + rank * 104'729) % 1'000'003 - 500'000;
          num_wrong += y[static_cast<size_t>(i)] != wanted ? 1 : 0;
        }
        EXPECT_EQ(num_wrong, 0) << num_ranks << " ranks, " << count;
      });
    }
  }
}

TEST(SumOverRanks, TheOrderShowsInTheBits) {
  // Else the test above would pass with any order.
  std::vector<std::vector<float>> parts;
  parts.reserve(4);
  for (uint32_t rank = 0; rank < 4; ++rank) parts.push_back(random_floats(1000, rank + 1));
  int num_others = 0;
  for (size_t i = 0; i < 1000; ++i) {
    const float chain = ((parts[0][i] + parts[1][i]) + parts[2][i]) + parts[3][i];
    num_others += chain != tree(parts, 0, 4, i) ? 1 : 0;
  }
  EXPECT_GT(num_others, 100);
}

TEST(SumOverRanks, ErrorsAreTheGroups) {
  const auto group = make_group(2, kOutboxBytes);
  run_ranks(*group, kPatient, [&](Communicator& ranks) {
    ThreadPool threads(1);
    std::vector<float> y(4);
    if (ranks.rank() == 1) return ranks.fail(invalid_argument("gone"));
    EXPECT_EQ(sum_over_ranks(ranks, threads, 1, 4, {}, y.data(), 4), invalid_argument("gone"));
  });
}

}  // namespace
}  // namespace transept
