// Normalisations of rows. Functions without state; they run on the context's threads, and results do not depend on
// their number. Rows of x and y may be strided, columns are dense; a dry run takes step memory only.
#pragma once

#include "tensor/context.h"
#include "tensor/tensor.h"

namespace transept {

// Computes y = (x - mean) / sqrt(variance + epsilon) * weight + bias over the last axis (torch.nn.LayerNorm). x, y:
// [rows, n] float32, may be the same; weight, bias: [n].
void layer_norm(Context& context, const TensorView& x, const float* weight, const float* bias, float epsilon,
                const TensorView& y);

// Computes y = (x - mean) / sqrt(variance + epsilon) * weight + bias, with mean and variance over all of x:
// torch.nn.GroupNorm of one group, over channels last. Shapes as above.
void group_norm(Context& context, const TensorView& x, const float* weight, const float* bias, float epsilon,
                const TensorView& y);

// Computes y = x / sqrt(mean(x^2) + epsilon) * weight over the last axis, without subtraction of a mean and without a
// bias (Zhang and Sennrich: Root Mean Square Layer Normalization, 2019; transformers' T5LayerNorm). Shapes as above.
void rms_norm(Context& context, const TensorView& x, const float* weight, float epsilon, const TensorView& y);

}  // namespace transept
