// Tensors whose elements do not lie in row-major order: transposed, cut out of others, repeated. Strides count elements
// and are 0 or more, one for each dimension of the shape. Pure functions, and a source that borrows its bytes:
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "weights/matrix_source.h"
#include "weights/weight_view.h"

namespace transept {

// nullopt: overflow. REQUIRES: dimensions of 0 or more.
std::optional<int64_t> num_elements(std::span<const int64_t> shape);

// Elements from the first to the last, both included; 0 without any. nullopt: overflow. REQUIRES: shape and strides of
// one size, all 0 or more.
std::optional<int64_t> strided_span(std::span<const int64_t> shape, std::span<const int64_t> strides);

// Whether elements lie in row-major order without gaps. REQUIRES: as strided_span, which does not overflow.
bool is_dense(std::span<const int64_t> shape, std::span<const int64_t> strides);

// Writes the elements in row-major order. data: those of strided_span, of `width` bytes each, at most 8. threads: may
// be null. REQUIRES: the size of `out`.
void gather(std::span<const std::byte> data, size_t width, std::span<const int64_t> shape,
            std::span<const int64_t> strides, std::span<std::byte> out, ThreadPool* threads);

// Such a tensor of floats as a matrix, gathered when it is packed. Its first axis are the outputs, the others together
// the inputs. Reading allocates nothing.
class StridedMatrix final : public MatrixSource {
 public:
  // tensor.data: the elements of strided_span.
  StridedMatrix(WeightView tensor, std::vector<int64_t> strides);

  void read_rows(int64_t begin, int64_t count, IndexRange columns, std::span<float> out) const override;
  void release_rows(int64_t begin, int64_t count) const override;
  // Rows of a transposed matrix lie in the same lines.
  int64_t rows_at_once() const override;
  bool is_by_input() const override { return strides_.front() == 1 && n() > 1; }
  void read_inputs(int64_t begin, int64_t count, IndexRange rows, std::span<float> out) const override;
  void release_inputs(int64_t begin, int64_t count) const override;

 private:
  WeightView tensor_;
  std::vector<int64_t> strides_;
};

}  // namespace transept
