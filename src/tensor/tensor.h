// Views of tensors: an address of the device's memory (tensor/device.h), an element type, a shape and strides. A view
// owns nothing: the maker of the memory decides its lifetime. Cheap to copy. A value; thread-safe as the memory that it
// views.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "base/check.h"
#include "tensor/dtype.h"

namespace transept {

template <typename T>
using View = std::span<const T>;

struct TensorView {
  static constexpr int kMaxRank = 4;

  void* raw = nullptr;
  DType dtype = DType::kFloat32;
  int rank = 0;
  std::array<int64_t, kMaxRank> shape{};
  std::array<int64_t, kMaxRank> stride{};  // in elements; 0 broadcasts

  TensorView() = default;
  // Dense, row-major. REQUIRES: at most kMaxRank dims.
  TensorView(void* data, DType type, std::initializer_list<int64_t> dims) : raw(data), dtype(type) {
    CHECK(dims.size() <= kMaxRank);
    for (const int64_t dim : dims) shape[static_cast<size_t>(rank++)] = dim;
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; --i) {
      stride[static_cast<size_t>(i)] = step;
      step *= shape[static_cast<size_t>(i)];
    }
  }

  bool empty() const { return raw == nullptr || num_elements() == 0; }
  int64_t dim(int i) const { return shape[static_cast<size_t>(i)]; }
  int64_t num_elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dim(i);
    return n;
  }
  // REQUIRES: float32.
  float* f32() const {
    DCHECK(dtype == DType::kFloat32);
    return static_cast<float*>(raw);
  }
  // Row i of a float32 tensor, along its first axis.
  float* row(int64_t i) const { return f32() + i * stride[0]; }

  // Rows [begin, end) along the first axis.
  TensorView rows(int64_t begin, int64_t end) const {
    DCHECK(rank > 0 && begin >= 0 && begin <= end && end <= dim(0));
    TensorView part = *this;
    part.raw = static_cast<char*>(raw) + begin * stride[0] * static_cast<int64_t>(dtype_bytes(dtype));
    part.shape[0] = end - begin;
    return part;
  }
  // Columns [begin, end) of a matrix, e.g. K of a fused QKV.
  TensorView columns(int64_t begin, int64_t end) const {
    DCHECK(rank == 2 && begin >= 0 && begin <= end && end <= dim(1));
    TensorView part = *this;
    part.raw = static_cast<char*>(raw) + begin * stride[1] * static_cast<int64_t>(dtype_bytes(dtype));
    part.shape[1] = end - begin;
    return part;
  }
  // Views [tokens, heads * head_dim] as [tokens, heads, head_dim]. REQUIRES: dense columns, divisible by num_heads.
  TensorView split_heads(int64_t num_heads) const {
    DCHECK(rank == 2 && stride[1] == 1 && num_heads > 0 && dim(1) % num_heads == 0);
    TensorView part = *this;
    part.rank = 3;
    part.shape = {dim(0), num_heads, dim(1) / num_heads, 0};
    part.stride = {stride[0], part.shape[2], 1, 0};
    return part;
  }
};

}  // namespace transept
