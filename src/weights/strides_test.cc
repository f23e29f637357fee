// Strided tensors against index arithmetic written out.
#include "weights/strides.h"

#include <gtest/gtest.h>

#include "weights/safetensors_testing.h"

namespace transept {
namespace {

using Dims = std::vector<int64_t>;

// By one thread and by three.
std::vector<std::byte> gather(std::span<const std::byte> data, size_t width, const Dims& shape, const Dims& strides) {
  std::vector<std::byte> alone(static_cast<size_t>(num_elements(shape).value()) * width), together(alone.size());
  transept::gather(data, width, shape, strides, alone, nullptr);
  ThreadPool threads(3);
  transept::gather(data, width, shape, strides, together, &threads);
  EXPECT_EQ(alone, together);
  return alone;
}

TEST(Strides, CountElementsAndReach) {
  EXPECT_EQ(num_elements(Dims{}), 1);
  EXPECT_EQ(num_elements(Dims{2, 3, 0}), 0);
  EXPECT_EQ(num_elements(Dims{int64_t{1} << 40, int64_t{1} << 40}), std::nullopt);
  EXPECT_EQ(strided_span(Dims{}, Dims{}), 1);
  EXPECT_EQ(strided_span(Dims{2, 3}, Dims{3, 1}), 6);
  EXPECT_EQ(strided_span(Dims{2, 3}, Dims{1, 10}), 22);
  EXPECT_EQ(strided_span(Dims{2, 0}, Dims{INT64_MAX, 1}), 0);
  EXPECT_EQ(strided_span(Dims{1}, Dims{INT64_MAX}), 1);
  EXPECT_EQ(strided_span(Dims{3}, Dims{INT64_MAX}), std::nullopt);
  EXPECT_EQ(strided_span(Dims{2}, Dims{INT64_MAX}), std::nullopt);
}

TEST(Strides, KnowDenseTensors) {
  EXPECT_TRUE(is_dense(Dims{}, Dims{}));
  EXPECT_TRUE(is_dense(Dims{2, 3}, Dims{3, 1}));
  EXPECT_TRUE(is_dense(Dims{2, 1, 3}, Dims{3, 77, 1}));
  EXPECT_TRUE(is_dense(Dims{0, 3}, Dims{9, 9}));
  EXPECT_FALSE(is_dense(Dims{2, 3}, Dims{1, 2}));
  EXPECT_FALSE(is_dense(Dims{2, 3}, Dims{4, 1}));
  EXPECT_FALSE(is_dense(Dims{2}, Dims{0}));
}

TEST(Strides, GatherInRowMajorOrder) {
  const std::vector<uint16_t> storage = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                         12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
  const Dims shape = {2, 3, 4}, strides = {1, 8, 2};
  const std::vector<std::byte> got = gather(std::as_bytes(std::span(storage)), 2, shape, strides);
  std::vector<uint16_t> want;
  for (int64_t a = 0; a < 2; ++a) {
    for (int64_t b = 0; b < 3; ++b) {
      for (int64_t c = 0; c < 4; ++c) want.push_back(storage[static_cast<size_t>(a + 8 * b + 2 * c)]);
    }
  }
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(got.data()), got.size()), testing::bytes_of(want));
  EXPECT_TRUE(gather({}, 2, Dims{0, 3}, Dims{1, 1}).empty());
  EXPECT_EQ(gather(std::as_bytes(std::span(storage)).first(2), 2, Dims{}, Dims{}).size(), 2u);
}

// Rows and columns that end within a tile, and elements that lie in either order.
TEST(Strides, GatherBeyondATile) {
  for (const auto& [shape, strides] : std::vector<std::pair<Dims, Dims>>{{{130}, {3}},
                                                                         {{130, 70}, {1, 131}},
                                                                         {{70, 130}, {300, 2}},
                                                                         {{70, 3, 50}, {1, 71, 220}},
                                                                         {{70, 50, 3}, {400, 4, 200}},
                                                                         {{66, 2, 2, 33}, {0, 7, 3, 11}},
                                                                         {{1, 65, 2}, {INT64_MAX, 1, 65}}}) {
    const int64_t span = strided_span(shape, strides).value();
    std::vector<uint16_t> storage(static_cast<size_t>(span));
    for (size_t i = 0; i < storage.size(); ++i) storage[i] = static_cast<uint16_t>(i * 40503);
    std::vector<uint16_t> want;
    for (int64_t i = 0; i < num_elements(shape).value(); ++i) {
      int64_t rest = i, element = 0;
      for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) element += rest % shape[axis] * strides[axis];
      want.push_back(storage[static_cast<size_t>(element)]);
    }
    const std::vector<std::byte> got = gather(std::as_bytes(std::span(storage)), 2, shape, strides);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(got.data()), got.size()), testing::bytes_of(want)) << shape[0];
  }
}

// Rows longer than a tile, in every float type's width.
TEST(StridedMatrix, ReadsAnyRowsAndColumns) {
  const int64_t n = 5, rest = 300, inner = 2;  // [n, rest, inner], the last axis outermost in memory
  std::vector<float> storage;
  storage.reserve(n * rest * inner);
  for (int i = 0; i < n * rest * inner; ++i) storage.push_back(static_cast<float>(i));
  const Dims strides = {1, n, n * rest};
  const WeightView view{"w", DType::kFloat32, {n, rest, inner}, std::as_bytes(std::span(storage))};
  const StridedMatrix matrix(view, strides);
  EXPECT_EQ(matrix.n(), n);
  EXPECT_EQ(matrix.k(), rest * inner);
  const auto element = [&](int64_t row, int64_t column) {
    return storage[static_cast<size_t>(row + column / inner * n + column % inner * n * rest)];
  };
  for (const IndexRange columns : {IndexRange{0, rest * inner}, IndexRange{3, 7}, IndexRange{599, 600}}) {
    std::vector<float> out(static_cast<size_t>(3 * columns.size()));
    matrix.read_rows(1, 3, columns, out);
    for (int64_t i = 0; i < std::ssize(out); ++i) {
      const int64_t row = 1 + i / columns.size(), column = columns.begin + i % columns.size();
      ASSERT_EQ(out[static_cast<size_t>(i)], element(row, column)) << row << " " << column;
    }
  }
  matrix.release_rows(0, n);  // no file: nothing to release
  ASSERT_TRUE(matrix.is_by_input());
  for (const IndexRange rows : {IndexRange{0, n}, IndexRange{1, 3}, IndexRange{4, 5}}) {
    std::vector<float> out(static_cast<size_t>(11 * rows.size()));
    matrix.read_inputs(589, 11, rows, out);
    for (int64_t i = 0; i < std::ssize(out); ++i) {
      const int64_t row = rows.begin + i % rows.size(), column = 589 + i / rows.size();
      ASSERT_EQ(out[static_cast<size_t>(i)], element(row, column)) << row << " " << column;
    }
  }
  matrix.release_inputs(0, rest * inner);
}

// Outputs lie side by side only where neighbours are one element apart.
TEST(StridedMatrix, IsByInputWhereOutputsAreNeighbours) {
  const std::vector<float> storage(64);
  const auto is_by_input = [&](const Dims& shape, const Dims& strides) {
    return StridedMatrix({"w", DType::kFloat32, shape, std::as_bytes(std::span(storage))}, strides).is_by_input();
  };
  EXPECT_TRUE(is_by_input({4, 3}, {1, 5}));
  EXPECT_TRUE(is_by_input({4, 3, 2}, {1, 8, 4}));
  EXPECT_FALSE(is_by_input({4, 3}, {2, 8}));
  EXPECT_FALSE(is_by_input({4, 3}, {5, 1}));
  EXPECT_FALSE(is_by_input({1, 3}, {1, 2})) << "one output has no neighbour";
}

// A transposed matrix in every width, gathered and read: element (i, j) is number i + 70 j.
template <typename Element>
void expect_transposed(DType dtype) {
  const int64_t rows = 70, columns = 131;
  std::vector<Element> storage(static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < storage.size(); ++i) storage[i] = static_cast<Element>(i);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(storage));
  const std::vector<std::byte> got = gather(bytes, sizeof(Element), Dims{rows, columns}, Dims{1, rows});
  std::vector<Element> want;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) want.push_back(storage[static_cast<size_t>(i + rows * j)]);
  }
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(got.data()), got.size()), testing::bytes_of(want));
  if (sizeof(Element) != dtype_bytes(dtype)) return;
  const StridedMatrix matrix({"w", dtype, {rows, columns}, bytes}, {1, rows});
  std::vector<float> out(static_cast<size_t>(40 * 100));
  matrix.read_rows(25, 40, {30, 130}, out);
  for (int64_t i = 0; i < std::ssize(out); ++i) {
    const Element element = want[static_cast<size_t>((25 + i / 100) * columns + 30 + i % 100)];
    float value = 0;
    widen_bytes(dtype, reinterpret_cast<const std::byte*>(&element), {&value, 1});
    ASSERT_EQ(out[static_cast<size_t>(i)], value) << i;
  }
  std::vector<float> by_input(out.size());
  matrix.read_inputs(30, 100, {25, 65}, by_input);
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(by_input[i % 100 * 40 + i / 100], out[i]) << i;
}

TEST(Strides, TransposedMatricesAreWholeInEveryWidth) {
  expect_transposed<uint8_t>(DType::kFloat32);
  expect_transposed<uint16_t>(DType::kBFloat16);
  expect_transposed<float>(DType::kFloat32);
  expect_transposed<uint64_t>(DType::kFloat32);
}

TEST(StridedMatrix, WidensSixteenBits) {
  std::vector<uint16_t> storage;
  storage.reserve(2 * 700);
  for (int i = 0; i < 2 * 700; ++i) storage.push_back(static_cast<uint16_t>(0x3F80 + i));
  const WeightView view{"w", DType::kBFloat16, {2, 700}, std::as_bytes(std::span(storage))};
  const StridedMatrix matrix(view, {1, 2});
  std::vector<float> out(700);
  matrix.read_rows(1, 1, {0, 700}, out);
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], bfloat16_to_float(storage[1 + 2 * i]));
}

}  // namespace
}  // namespace transept
