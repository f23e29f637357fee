// Rows that are chosen, and rows that are added with a gate, against the formulas.
#include "ops/rows.h"
#include "ops/cpu_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

namespace transept {
namespace {

class RowsTest : public ::testing::Test {
 protected:
  // [rows, n] in rows of n + 1, of which the last column is never written: 100 row + column.
  TensorView make(std::vector<float>& memory, int64_t rows, int64_t n) {
    memory.assign(static_cast<size_t>(rows * (n + 1)), -1.0f);
    const TensorView view = TensorView(memory.data(), DType::kFloat32, {rows, n + 1}).columns(0, n);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < n; ++j) view.row(i)[j] = static_cast<float>(100 * i + j);
    }
    return view;
  }

  ThreadPool pool_{2};
  Arena arena_{4096};
  CpuDevice device_{pool_};
  Context context_{.device = device_, .arena = arena_};
  std::vector<float> from_, to_;
};

TEST_F(RowsTest, ChoosesRowsInTheirOrder) {
  const TensorView x = make(from_, 5, 7), y = make(to_, 3, 7);
  gather_rows(context_, x, std::vector<int32_t>{4, 0, 4}, y);
  for (int64_t j = 0; j < 7; ++j) {
    EXPECT_EQ(y.row(0)[j], static_cast<float>(400 + j));
    EXPECT_EQ(y.row(1)[j], static_cast<float>(j));
    EXPECT_EQ(y.row(2)[j], static_cast<float>(400 + j));
  }
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(y.row(i)[7], -1.0f);
}

// A number that every type has.
float number(int64_t row, int64_t column) { return static_cast<float>(32 * row + column % 32); }

std::vector<std::byte> table_of_numbers(int64_t num_rows, int64_t n, DType dtype) {
  std::vector<std::byte> table(static_cast<size_t>(num_rows * n) * dtype_bytes(dtype));
  for (int64_t i = 0; i < num_rows * n; ++i) {
    const float value = number(i / n, i % n);
    const uint16_t half = dtype == DType::kFloat16 ? float_to_float16(value) : float_to_bfloat16(value);
    const void* const from = dtype == DType::kFloat32 ? static_cast<const void*>(&value) : &half;
    std::memcpy(table.data() + static_cast<size_t>(i) * dtype_bytes(dtype), from, dtype_bytes(dtype));
  }
  return table;
}

// Whether row i of y is `factor` times row rows[i] of such a table, and nothing behind it was written.
void expect_looked_up(const TensorView& y, const std::vector<int32_t>& rows, float factor) {
  const int64_t n = y.dim(1);
  for (int64_t i = 0; i < y.dim(0); ++i) {
    for (int64_t j = 0; j < n; ++j) {
      ASSERT_EQ(y.row(i)[j], factor * number(rows[static_cast<size_t>(i)], j)) << i << ", " << j;
    }
    ASSERT_EQ(y.row(i)[n], -1.0f);
  }
}

TEST_F(RowsTest, LooksUpRowsOfATable) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const int64_t n : {1, 7, 5000}) {
      SCOPED_TRACE(::testing::Message() << dtype_name(dtype) << " of " << n);
      std::vector<std::byte> table = table_of_numbers(3, n, dtype);
      const TensorView there(table.data(), dtype, {3, n}), y = make(to_, 3, n);
      const std::vector<int32_t> rows{2, 0, 2};
      look_up_rows(context_, there, rows, 0.5f, y);
      expect_looked_up(y, rows, 0.5f);
      add_looked_up_rows(context_, there, rows, y);
      expect_looked_up(y, rows, 1.5f);
    }
  }
}

// The windows of a picture: some of their rows lie outside of it. The widest rows are shared out to threads.
TEST_F(RowsTest, RowsThatAreMissingAreZerosAndAddNothing) {
  for (const int64_t n : {1, 7, 5000}) {
    const std::vector<int32_t> rows{3, kNoRow, 0, kNoRow, 4};
    const auto count = static_cast<int64_t>(rows.size());
    std::vector<float> from, to;
    const TensorView x = make(from, 5, n), y = make(to, count, n);
    gather_rows(context_, x, rows, y);
    for (int64_t i = 0; i < count; ++i) {
      const int32_t row = rows[static_cast<size_t>(i)];
      for (int64_t j = 0; j < n; ++j) {
        ASSERT_EQ(y.row(i)[j], row == kNoRow ? 0.0f : static_cast<float>(100 * row + j)) << i << ", " << j;
      }
      ASSERT_EQ(y.row(i)[n], -1.0f);
    }
    const TensorView sums = make(to_, 5, n), added = make(from_, count, n);
    scatter_add_rows(context_, added, rows, sums);
    for (int64_t row = 0; row < 5; ++row) {
      const auto place = std::find(rows.begin(), rows.end(), row);
      for (int64_t j = 0; j < n; ++j) {
        const float before = static_cast<float>(100 * row + j);
        const float more = place == rows.end() ? 0.0f : static_cast<float>(100 * (place - rows.begin()) + j);
        ASSERT_EQ(sums.row(row)[j], before + more) << row << ", " << j;
      }
      ASSERT_EQ(sums.row(row)[n], -1.0f);
    }
    clear_missing_rows(context_, rows, added);
    for (int64_t i = 0; i < count; ++i) {
      const bool is_missing = rows[static_cast<size_t>(i)] == kNoRow;
      for (int64_t j = 0; j < n; ++j) {
        ASSERT_EQ(added.row(i)[j], is_missing ? 0.0f : static_cast<float>(100 * i + j)) << i << ", " << j;
      }
      ASSERT_EQ(added.row(i)[n], -1.0f);
    }
  }
}

TEST_F(RowsTest, AddsWithAGate) {
  for (const int64_t n : {1, 3, 5000}) {  // the widest are shared out by rows
    for (const int64_t num_gates : {int64_t{0}, int64_t{1}, n}) {
      const TensorView x = make(from_, 4, n), y = make(to_, 4, n);
      std::vector<float> gate;
      for (int64_t i = 0; i < num_gates; ++i) gate.push_back(0.5f + static_cast<float>(i));
      add_gated(context_, x, gate.data(), num_gates, y);
      for (int64_t i = 0; i < 4; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          const float value = static_cast<float>(100 * i + j);
          const float factor = gate.empty() ? 1.0f : gate[gate.size() == 1 ? 0 : static_cast<size_t>(j)];
          ASSERT_EQ(y.row(i)[j], value + factor * value) << num_gates << " gates, " << i << ", " << j;
        }
        ASSERT_EQ(y.row(i)[n], -1.0f);
      }
    }
  }
}

TEST_F(RowsTest, ADryRunTouchesNothing) {
  const TensorView nothing(nullptr, DType::kFloat32, {2, 3});
  context_.dry_run = true;
  gather_rows(context_, nothing, std::vector<int32_t>{1, 0}, nothing);
  clear_missing_rows(context_, std::vector<int32_t>{kNoRow, 0}, nothing);
  scatter_add_rows(context_, nothing, std::vector<int32_t>{1, 0}, nothing);
  add_gated(context_, nothing, nullptr, 0, nothing);
  fill_zero(context_, nothing);
  upload(context_, {}, nothing);
  const auto make_row = [](int64_t, std::span<float>) { ADD_FAILURE() << "a row is made"; };
  write_rows(context_, make_row, nothing);
  add_rows(context_, make_row, nothing);
}

// Values of two bytes, which are written out by hand: 1, -2, 0.15625, infinity.
TEST_F(RowsTest, WidensRowsOfBFloat16) {
  const std::vector<uint16_t> patterns{0x3F80, 0xC000, 0x3E20, 0x7F80};
  const std::vector<float> values{1.0f, -2.0f, 0.15625f, std::numeric_limits<float>::infinity()};
  constexpr int32_t kBlockSize = 3, kWidth = 4, kNumBlocks = 2, kPadding = 2;
  std::vector<uint16_t> memory(kNumBlocks * (kBlockSize * kWidth + kPadding), 0xFFFF);
  TensorView cache(memory.data(), DType::kBFloat16, {kNumBlocks, kBlockSize * kWidth + kPadding});
  // Slot 5 is the last row of the second block.
  std::copy(patterns.begin(), patterns.end(), memory.begin() + (kBlockSize * kWidth + kPadding) + 2 * kWidth);
  const TensorView y = make(to_, 3, kWidth);
  read_row_slots(context_, cache, std::vector<int64_t>{5}, kBlockSize, std::vector<int32_t>{1}, y);
  for (int64_t j = 0; j < kWidth; ++j) {
    EXPECT_EQ(y.row(0)[j], static_cast<float>(j));
    EXPECT_EQ(y.row(1)[j], values[static_cast<size_t>(j)]);
    EXPECT_EQ(y.row(2)[j], static_cast<float>(200 + j));
  }
}

}  // namespace
}  // namespace transept
