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

void copy_run(const std::byte* from, size_t width, int64_t stride, int64_t count, std::byte* to) {
  if (stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * width);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + static_cast<size_t>(i) * width, from + static_cast<size_t>(i * stride) * width, width);
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

std::vector<std::byte> gather(std::span<const std::byte> data, size_t width, std::span<const int64_t> shape,
                              std::span<const int64_t> strides) {
  const int64_t count = num_elements(shape).value();
  std::vector<std::byte> out(static_cast<size_t>(count) * width);
  for_each_run(shape, strides, 0, count, [&](int64_t element, int64_t stride, int64_t size, int64_t done) {
    copy_run(data.data() + static_cast<size_t>(element) * width, width, stride, size,
             out.data() + static_cast<size_t>(done) * width);
  });
  return out;
}

StridedMatrix::StridedMatrix(WeightView tensor, std::vector<int64_t> strides)
    : MatrixSource(tensor.shape.front(), num_inputs(tensor), weights_of(tensor.dtype)),
      tensor_(std::move(tensor)),
      strides_(std::move(strides)) {}

void StridedMatrix::read_rows(int64_t begin, int64_t count, IndexRange columns, std::span<float> out) const {
  DCHECK(begin >= 0 && count >= 0 && count <= n() - begin && columns.begin >= 0 && columns.end <= k());
  DCHECK(std::ssize(out) == count * columns.size());
  const size_t width = dtype_bytes(tensor_.dtype);
  constexpr int64_t kChunk = 256;
  std::array<std::byte, kChunk * sizeof(float)> chunk;
  float* to = out.data();
  for (int64_t row = begin; row < begin + count; ++row) {
    const auto read = [&](int64_t element, int64_t stride, int64_t size, int64_t /*done*/) {
      for (int64_t i = 0; i < size; i += kChunk) {
        const int64_t part = std::min(kChunk, size - i);
        copy_run(tensor_.data.data() + static_cast<size_t>(element + i * stride) * width, width, stride, part,
                 chunk.data());
        widen_bytes(tensor_.dtype, chunk.data(), {to, static_cast<size_t>(part)});
        to += part;
      }
    };
    for_each_run(tensor_.shape, strides_, row * k() + columns.begin, columns.size(), read);
  }
}

// Rows lie among each other: their pages leave memory together.
void StridedMatrix::release_rows(int64_t begin, int64_t count) const {
  if (begin + count == n() && tensor_.file != nullptr) tensor_.file->release_pages(tensor_.data);
}

}  // namespace transept
