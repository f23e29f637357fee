// Small transpositions for packing, in plain vectors of four (ops/kernels.h has the rule for such files: all functions
// are static).
#pragma once

#include <stdint.h>
#include <string.h>

namespace transept {

typedef float Float4 __attribute__((vector_size(16)));

static inline void transpose_4x4(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  Float4 a, b, c, d;
  memcpy(&a, from, sizeof a);
  memcpy(&b, from + from_stride, sizeof b);
  memcpy(&c, from + 2 * from_stride, sizeof c);
  memcpy(&d, from + 3 * from_stride, sizeof d);
  const Float4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Float4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const Float4 columns[4] = {
      __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5), __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
      __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5), __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
  for (int i = 0; i < 4; ++i) memcpy(to + i * to_stride, &columns[i], sizeof columns[i]);
}

// Sets to[c * to_stride + r] = from[r * from_stride + c] for r < rows, c < columns. Strides are in floats.
static inline void transpose(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float* to,
                             int64_t to_stride) {
  // Four rows at a time: rows a power of two apart fall into the same few sets of the first-level cache. A stretch of
  // columns at a time: the next four rows touch the same lines of `to` again.
  constexpr int64_t kStretch = 64;
  const int64_t whole_rows = rows - rows % 4;
  for (int64_t begin = 0; begin < columns; begin += kStretch) {
    const int64_t end = begin + kStretch < columns ? begin + kStretch : columns;
    for (int64_t r = 0; r < whole_rows; r += 4) {
      int64_t c = begin;
      for (; c + 4 <= end; c += 4) {
        transpose_4x4(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
      }
      for (; c < end; ++c) {
        for (int64_t i = r; i < r + 4; ++i) to[c * to_stride + i] = from[i * from_stride + c];
      }
    }
    for (int64_t r = whole_rows; r < rows; ++r) {
      for (int64_t c = begin; c < end; ++c) to[c * to_stride + r] = from[r * from_stride + c];
    }
  }
}

}  // namespace transept
