// Convolutions over time, as products of windows. The input is time-major, so the rows under a kernel are one
// contiguous row of a window. Windows overlap in place; nothing is copied. Functions without state; they use the
// context's threads.
#pragma once

#include <cstdint>
#include <span>

#include "ops/gemm.h"

namespace transept {

struct Conv1dShape {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;  // rows of zeros on either side
};

// Returns the number of output rows for `length` rows: floor((length + 2 padding - kernel) / stride) + 1; 0 if a kernel
// does not fit.
constexpr int64_t conv1d_output_length(int64_t length, const Conv1dShape& shape) {
  const int64_t room = length + 2 * shape.padding - shape.kernel;
  return room < 0 ? 0 : room / shape.stride + 1;
}

// Returns the most input rows that still give `output_length` rows. May be negative.
constexpr int64_t conv1d_longest_input(int64_t output_length, const Conv1dShape& shape) {
  return output_length * shape.stride + shape.kernel - 2 * shape.padding - 1;
}

// Step memory for [length, channels] between `padding` rows of zeros on either side, valid until the enclosing scope of
// the arena ends.
struct PaddedRows {
  TensorView whole;  // the input of conv1d
  TensorView rows;   // for the caller to fill
};
PaddedRows padded_rows(Context& context, int64_t length, int64_t channels, int64_t padding);

// Views x as the windows under a kernel. x: [length + 2 padding, channels] float32, dense, from padded_rows(). Returns
// [conv1d_output_length(length, shape), kernel * channels]: by tap, then by channel. gemm() of it with weights in that
// order is torch.nn.Conv1d.
TensorView conv1d_windows(const TensorView& x, const Conv1dShape& shape);

// The oracle, in double precision. x: [length, channels] without padding; w: [out_channels, channels, kernel], the
// layout of checkpoints; y: [out rows, out_channels].
void conv1d_reference(const TensorView& x, const TensorView& w, const Conv1dShape& shape, const Epilogue& epilogue,
                      const TensorView& y);

// Sets y[t][c] = x[c][t]. x: [channels, length] dense; y: [length, channels] dense.
void to_time_major(Context& context, std::span<const float> x, const TensorView& y);

}  // namespace transept
