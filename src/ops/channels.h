// What towers compute by channel over the rows of a map: a depthwise convolution, and attention between channels (Ding
// et al.: DaViT, 2022). A map's rows stand one behind another, row by row of the picture. Sums have one order, whatever
// the number of threads and the instruction level.
#pragma once

#include <cstdint>

#include "ops/op_table.h"
#include "tensor/context.h"
#include "tensor/tensor.h"

namespace transept {

// y = x + bias + the sum over the 3 by 3 places around a row, tap by tap: torch.nn.Conv2d of one group a channel, with
// zeros beyond the map, and its residual. x, y: [height * width, n] float32, not the same memory; weight: [9, n], tap
// by tap; bias: [n].
void add_depthwise_conv(Context& context, const TensorView& x, int64_t height, int64_t width, const float* weight,
                        const float* bias, const TensorView& y);

// sums[c, d] += sum over rows of q[row, c] k[row, first(c) + d], where first(c) is the first channel of c's group. q,
// k: [rows, n] float32; sums: [n, n / groups] float32, dense.
void add_channel_products(Context& context, const TensorView& q, const TensorView& k, const TensorView& sums);

// x = softmax(scale x) of each row, in place. x: [rows, n] float32.
void softmax_rows(Context& context, float scale, const TensorView& x);

// y[row, c] = sum over d of weights[c, d] v[row, first(c) + d]. v, y: [rows, n] float32, not the same memory; weights:
// as `sums`.
void mix_channels(Context& context, const TensorView& v, const TensorView& weights, const TensorView& y);

// y[0] = the mean of the rows of x. x: [rows, n], y: [1, n] float32. REQUIRES: rows > 0.
void mean_of_rows(Context& context, const TensorView& x, const TensorView& y);

}  // namespace transept
