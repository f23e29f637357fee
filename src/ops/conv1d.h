// Convolutions over time, as products: the input is time-major, so that the rows under a kernel lie side by side and a
// window is one long row. Windows overlap where they lie; nothing is copied.
#pragma once

#include "ops/gemm.h"

namespace transept {

struct Conv1dShape {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;  // rows of zeros on either side
};

// What comes of `length` rows: floor((length + 2 padding - kernel) / stride) + 1; 0 if a kernel does not fit.
constexpr int64_t conv1d_output_length(int64_t length, const Conv1dShape& shape) {
  const int64_t room = length + 2 * shape.padding - shape.kernel;
  return room < 0 ? 0 : room / shape.stride + 1;
}

// The most rows that still give `output_length`: the other way round.
constexpr int64_t conv1d_longest_input(int64_t output_length, const Conv1dShape& shape) {
  return output_length * shape.stride + shape.kernel - 2 * shape.padding - 1;
}

// Step memory for [length, channels] between `padding` rows of zeros on either side.
struct PaddedRows {
  TensorView whole;  // what conv1d reads
  TensorView rows;   // what the caller fills
};
PaddedRows padded_rows(Context& context, int64_t length, int64_t channels, int64_t padding);

// y = activation(conv(x, w) + bias) + residual (torch.nn.Conv1d).
// x: [length + 2 padding, channels] float32, dense; w: [out_channels, kernel * channels], the channels of a tap side by
// side; y: [conv1d_output_length(length, shape), out_channels]. Like gemm in all else.
void conv1d(Context& context, const TensorView& x, const PackedMatrix& w, const Conv1dShape& shape,
            const Epilogue& epilogue, const TensorView& y);

// The definition in double precision: x: [length, channels] without padding, w: [out_channels, channels, kernel] as
// checkpoints have it, y: [out rows, out_channels]. The oracle.
void conv1d_reference(const TensorView& x, const TensorView& w, const Conv1dShape& shape, const Epilogue& epilogue,
                      const TensorView& y);

// y[t][c] = x[c][t]. x: [channels, length] dense; y: [length, channels] dense.
void to_time_major(Context& context, std::span<const float> x, const TensorView& y);

}  // namespace transept
