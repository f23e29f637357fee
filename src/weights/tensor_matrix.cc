#include "weights/tensor_matrix.h"

#include "base/check.h"

namespace transept {
namespace {

constexpr size_t kLargeBytes = size_t{4} << 20;

int64_t num_inputs(const WeightView& tensor) {
  int64_t k = 1;
  for (const int64_t dim : std::span(tensor.shape).subspan(1)) k *= dim;
  return k;
}

}  // namespace

TensorMatrix::TensorMatrix(WeightView tensor, bool by_rows)
    : MatrixSource(tensor.shape.front(), num_inputs(tensor), weights_of(tensor.dtype)),
      tensor_(std::move(tensor)),
      reads_file_(by_rows && tensor_.file != nullptr && tensor_.data.size() >= kLargeBytes) {}

void TensorMatrix::read(int64_t element, std::span<float> out) const {
  reads_file_ ? read_to_float(tensor_, element, out) : widen_to_float(tensor_, element, out);
}

void TensorMatrix::read_rows(int64_t begin, int64_t count, IndexRange columns, std::span<float> out) const {
  DCHECK(begin >= 0 && count >= 0 && count <= n() - begin && columns.begin >= 0 && columns.end <= k());
  DCHECK(std::ssize(out) == count * columns.size());
  if (columns.size() == k()) return read(begin * k(), out);
  const auto width = static_cast<size_t>(columns.size());
  for (int64_t row = 0; row < count; ++row) {
    read((begin + row) * k() + columns.begin, out.subspan(static_cast<size_t>(row) * width, width));
  }
}

void TensorMatrix::release_rows(int64_t begin, int64_t count) const {
  release_pages(tensor_, begin * k(), count * k());
}

}  // namespace transept
