#pragma once

#include "tensor/context.h"
#include "tensor/tensor.h"

namespace transept {

// y = (x - mean) / sqrt(variance + epsilon) * weight + bias over the last axis (torch.nn.LayerNorm).
// x, y: [rows, n] float32, may be the same; weight, bias: [n].
void layer_norm(Context& context, const TensorView& x, const float* weight, const float* bias, float epsilon,
                const TensorView& y);

// y = (x - mean) / sqrt(variance + epsilon) * weight + bias, mean and variance over all of x: torch.nn.GroupNorm of one
// group, over channels last. Shapes as above. What comes out does not depend on the number of threads.
void group_norm(Context& context, const TensorView& x, const float* weight, const float* bias, float epsilon,
                const TensorView& y);

// y = x / sqrt(mean(x^2) + epsilon) * weight over the last axis: no mean is subtracted, nothing is added (Zhang and
// Sennrich: Root Mean Square Layer Normalization, 2019; transformers' T5LayerNorm). Shapes as above.
void rms_norm(Context& context, const TensorView& x, const float* weight, float epsilon, const TensorView& y);

}  // namespace transept
