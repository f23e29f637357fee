#include "weights/strides.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/mmap_file.h"

namespace transept {
namespace {

// Calls run(element, stride, count, done) for each row of elements along the last axis: `count` elements from `element`
// on, `stride` apart, the first of which is number begin + done in row-major order.
template <typename Run>
void for_each_run(std::span<const int64_t> shape, std::span<const int64_t> strides, int64_t begin, int64_t count,
                  Run run) {
  const int64_t last = shape.empty() ? 1 : shape.back(), stride = shape.empty() ? 1 : strides.back();
  for (int64_t done = 0; done < count;) {
    const int64_t column = (begin + done) % last;
    int64_t rest = (begin + done) / last, element = column * stride;
    for (size_t axis = shape.size(); axis-- > 1;) {
      element += rest % shape[axis - 1] * strides[axis - 1];
      rest /= shape[axis - 1];
    }
    const int64_t size = std::min(last - column, count - done);
    run(element, stride, size, done);
    done += size;
  }
}

// A part of a tensor seen as a matrix: its first axis are the rows, the others together the columns.
struct Block {
  IndexRange rows, columns;
};

// A block is copied in tiles that fit in a core's cache: a line of the file that holds elements of several rows is read
// once for all of them.
constexpr int64_t kTileRows = 64, kTileColumns = 64;
constexpr size_t kMaxElementBytes = 8;
constexpr int64_t kLineBytes = 64;
// Those of a transposed matrix are too far apart for the processor to guess.
constexpr int64_t kLookAhead = 16;  // columns
constexpr int64_t kInputsAhead = 8;

template <typename Element>
void copy_elements(const std::byte* from, int64_t from_stride, int64_t count, std::byte* to, int64_t to_stride) {
  for (int64_t i = 0; i < count; ++i) {
    Element element;
    std::memcpy(&element, from + i * from_stride * static_cast<int64_t>(sizeof element), sizeof element);
    std::memcpy(to + i * to_stride * static_cast<int64_t>(sizeof element), &element, sizeof element);
  }
}

// Copies `count` elements of `width` bytes; strides in elements.
void copy_elements(size_t width, const std::byte* from, int64_t from_stride, int64_t count, std::byte* to,
                   int64_t to_stride) {
  switch (width) {
    case 1: return copy_elements<uint8_t>(from, from_stride, count, to, to_stride);
    case 2: return copy_elements<uint16_t>(from, from_stride, count, to, to_stride);
    case 4: return copy_elements<uint32_t>(from, from_stride, count, to, to_stride);
    default: break;
  }
  const auto size = static_cast<int64_t>(width);
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_stride * size, from + i * from_stride * size, width);
}

// 16 bytes of elements, which every processor has registers for.
using Words = uint32_t __attribute__((vector_size(16)));
using Halves = uint16_t __attribute__((vector_size(16)));

void interleave(const Words& a, const Words& b, Words& low, Words& high) {
  low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
}

void interleave(const Halves& a, const Halves& b, Halves& low, Halves& high) {
  low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

// Copies a square of as many rows and columns as a vector has elements. `column(j)`: where those of column j lie, one
// behind the other. Rows of `to` are kTileColumns apart.
template <typename Vector, typename Column>
void transpose_square(const Column& column, std::byte* to) {
  constexpr size_t kWidth = sizeof(Vector{}[0]), kSide = sizeof(Vector) / kWidth;
  Vector lines[kSide], turned[kSide];
  for (size_t j = 0; j < kSide; ++j) std::memcpy(&lines[j], column(static_cast<int64_t>(j)), sizeof lines[j]);
  for (size_t done = 1; done < kSide; done *= 2) {
    for (size_t i = 0; i < kSide / 2; ++i) {
      interleave(lines[i], lines[i + kSide / 2], turned[2 * i], turned[2 * i + 1]);
    }
    std::copy_n(turned, kSide, lines);
  }
  for (size_t i = 0; i < kSide; ++i) std::memcpy(to + i * kTileColumns * kWidth, &lines[i], sizeof lines[i]);
}

// Fills as much of a tile as squares do, and returns which part that is. column(j): where the rows of column j lie, one
// behind the other.
template <typename Vector, typename Column>
Block transpose_squares(const Column& column, const Block& block, std::byte* tile) {
  constexpr int64_t kWidth = sizeof(Vector{}[0]), kSide = sizeof(Vector) / kWidth;
  const int64_t rows = block.rows.size() / kSide * kSide, columns = block.columns.size() / kSide * kSide;
  for (int64_t j = 0; j < columns; j += kSide) {
    const int64_t next = j + kLookAhead;
    for (int64_t ahead = next; ahead < std::min(next + kSide, block.columns.size()); ++ahead) {
      for (int64_t at = 0; at < rows * kWidth; at += kLineBytes) __builtin_prefetch(column(ahead) + at);
    }
    for (int64_t i = 0; i < rows; i += kSide) {
      transpose_square<Vector>([&](int64_t k) { return column(j + k) + i * kWidth; },
                               tile + (i * kTileColumns + j) * kWidth);
    }
  }
  return {{0, rows}, {0, columns}};
}

// Fills a tile, whose rows are kTileColumns elements apart, in the order in which the elements lie.
void read_tile(std::span<const std::byte> data, size_t width, std::span<const int64_t> shape,
               std::span<const int64_t> strides, const Block& block, std::byte* tile) {
  const auto bytes = static_cast<int64_t>(width);
  const int64_t row_stride = strides.front(), num_rows = block.rows.size(), num_columns = block.columns.size();
  const std::byte* first = data.data() + block.rows.begin * row_stride * bytes;
  std::array<int64_t, kTileColumns> offsets;  // of the columns, in bytes
  for_each_run(shape.subspan(1), strides.subspan(1), block.columns.begin, num_columns,
               [&](int64_t element, int64_t stride, int64_t size, int64_t done) {
                 for (int64_t i = 0; i < size; ++i) {
                   offsets[static_cast<size_t>(done + i)] = (element + i * stride) * bytes;
                 }
               });
  const auto column = [&](int64_t j) { return first + offsets[static_cast<size_t>(j)]; };
  if (row_stride > strides.back()) {
    for_each_run(shape.subspan(1), strides.subspan(1), block.columns.begin, num_columns,
                 [&](int64_t /*element*/, int64_t stride, int64_t size, int64_t done) {
                   for (int64_t i = 0; i < num_rows; ++i) {
                     copy_elements(width, column(done) + i * row_stride * bytes, stride, size,
                                   tile + (i * kTileColumns + done) * bytes, 1);
                   }
                 });
    return;
  }
  Block done;
  if (row_stride == 1 && width == 4) done = transpose_squares<Words>(column, block, tile);
  if (row_stride == 1 && width == 2) done = transpose_squares<Halves>(column, block, tile);
  for (int64_t j = 0; j < num_columns; ++j) {
    const int64_t i = j < done.columns.end ? done.rows.end : 0;
    copy_elements(width, column(j) + i * row_stride * bytes, row_stride, num_rows - i,
                  tile + (i * kTileColumns + j) * bytes, kTileColumns);
  }
}

// Calls take(row, column, bytes) for pieces of rows of the block, which together are all of it.
template <typename Take>
void for_each_piece(std::span<const std::byte> data, size_t width, std::span<const int64_t> shape,
                    std::span<const int64_t> strides, const Block& block, const Take& take) {
  std::array<std::byte, kTileRows * kTileColumns * kMaxElementBytes> tile;
  for (int64_t row = block.rows.begin; row < block.rows.end; row += kTileRows) {
    const IndexRange rows{row, std::min(row + kTileRows, block.rows.end)};
    for (int64_t column = block.columns.begin; column < block.columns.end; column += kTileColumns) {
      const IndexRange columns{column, std::min(column + kTileColumns, block.columns.end)};
      read_tile(data, width, shape, strides, {rows, columns}, tile.data());
      for (int64_t i = rows.begin; i < rows.end; ++i) {
        const size_t at = static_cast<size_t>((i - row) * kTileColumns) * width;
        take(i, column, std::span<const std::byte>(tile).subspan(at, static_cast<size_t>(columns.size()) * width));
      }
    }
  }
}

int64_t num_inputs(const WeightView& tensor) {
  return num_elements(std::span(tensor.shape).subspan(1)).value();  // checked when the file was read
}

}  // namespace

std::optional<int64_t> num_elements(std::span<const int64_t> shape) {
  std::optional<int64_t> count = 1;
  for (const int64_t dim : shape) {
    if (count.has_value()) count = checked_mul(*count, dim);
  }
  return count;
}

std::optional<int64_t> strided_span(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::optional<int64_t> last = 0;
  for (size_t i = 0; i < shape.size() && last.has_value(); ++i) {
    const std::optional<int64_t> reach = checked_mul(shape[i] - 1, strides[i]);
    last = reach.has_value() ? checked_add(*last, *reach) : std::nullopt;
  }
  return last.has_value() ? checked_add(*last, int64_t{1}) : std::nullopt;
}

bool is_dense(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  if (std::ranges::find(shape, 0) != shape.end()) return true;
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;  // its stride is never taken
    if (strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

void gather(std::span<const std::byte> data, size_t width, std::span<const int64_t> shape,
            std::span<const int64_t> strides, std::span<std::byte> out, ThreadPool* threads) {
  if (out.empty()) return;
  if (shape.empty()) return void(std::ranges::copy(data, out.begin()));
  const int64_t rows = shape.front(), columns = num_elements(shape.subspan(1)).value();
  CHECK(width <= kMaxElementBytes && out.size() == static_cast<size_t>(rows * columns) * width);
  const auto run = [&](int64_t task, int) {
    const IndexRange some{task * kTileRows, std::min(rows, (task + 1) * kTileRows)};
    for_each_piece(data, width, shape, strides, {some, {0, columns}},
                   [&](int64_t row, int64_t column, std::span<const std::byte> piece) {
                     std::memcpy(out.data() + static_cast<size_t>(row * columns + column) * width, piece.data(),
                                 piece.size());
                   });
  };
  const int64_t num_tasks = ceil_div(rows, kTileRows);
  if (threads != nullptr) return threads->parallel_for(num_tasks, run);
  for (int64_t task = 0; task < num_tasks; ++task) run(task, 0);
}

StridedMatrix::StridedMatrix(WeightView tensor, std::vector<int64_t> strides)
    : MatrixSource(tensor.shape.front(), num_inputs(tensor), weights_of(tensor.dtype)),
      tensor_(std::move(tensor)),
      strides_(std::move(strides)) {}

void StridedMatrix::read_rows(int64_t begin, int64_t count, IndexRange columns, std::span<float> out) const {
  DCHECK(begin >= 0 && count >= 0 && count <= n() - begin && columns.begin >= 0 && columns.end <= k());
  DCHECK(std::ssize(out) == count * columns.size());
  const size_t width = dtype_bytes(tensor_.dtype);
  for_each_piece(tensor_.data, width, tensor_.shape, strides_, {{begin, begin + count}, columns},
                 [&](int64_t row, int64_t column, std::span<const std::byte> piece) {
                   const int64_t at = (row - begin) * columns.size() + column - columns.begin;
                   widen_bytes(tensor_.dtype, piece.data(), out.subspan(static_cast<size_t>(at), piece.size() / width));
                 });
}

int64_t StridedMatrix::rows_at_once() const { return strides_.front() < strides_.back() ? kTileRows : 1; }

// Rows lie among each other: their pages leave memory together.
void StridedMatrix::release_rows(int64_t begin, int64_t count) const {
  if (begin + count == n() && tensor_.file != nullptr) tensor_.file->release_pages(tensor_.data);
}

void StridedMatrix::read_inputs(int64_t begin, int64_t count, IndexRange rows, std::span<float> out) const {
  DCHECK(is_by_input() && begin >= 0 && count >= 0 && count <= k() - begin && rows.begin >= 0 && rows.end <= n());
  DCHECK(std::ssize(out) == count * rows.size());
  const auto width = static_cast<int64_t>(dtype_bytes(tensor_.dtype));
  for_each_run(std::span(tensor_.shape).subspan(1), std::span(strides_).subspan(1), begin, count,
               [&](int64_t element, int64_t stride, int64_t size, int64_t done) {
                 for (int64_t i = 0; i < size; ++i) {
                   const std::byte* from = tensor_.data.data() + (element + i * stride + rows.begin) * width;
                   const std::byte* const ahead = from + std::min(kInputsAhead, size - 1 - i) * stride * width;
                   for (int64_t line = 0; line < rows.size() * width; line += kLineBytes)
                     __builtin_prefetch(ahead + line);
                   const auto at = static_cast<size_t>((done + i) * rows.size());
                   widen_bytes(tensor_.dtype, from, out.subspan(at, static_cast<size_t>(rows.size())));
                 }
               });
}

// Inputs of more axes than one lie among each other, too.
void StridedMatrix::release_inputs(int64_t begin, int64_t count) const {
  if (tensor_.file == nullptr || count == 0) return;
  if (tensor_.shape.size() != 2) {
    if (begin + count == k()) tensor_.file->release_pages(tensor_.data);
    return;
  }
  const auto width = static_cast<int64_t>(dtype_bytes(tensor_.dtype));
  const int64_t first = begin * strides_.back(), size = (count - 1) * strides_.back() + n();
  tensor_.file->release_pages(
      tensor_.data.subspan(static_cast<size_t>(first * width), static_cast<size_t>(size * width)));
}

}  // namespace transept
