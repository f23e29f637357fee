#pragma once

#include "tensor/context.h"
#include "tensor/tensor.h"

namespace transept {

// y = (x - mean) / sqrt(variance + epsilon) * weight + bias over the last axis (torch.nn.LayerNorm).
// x, y: [rows, n] float32, may be the same; weight, bias: [n].
void layer_norm(Context& context, const TensorView& x, const float* weight, const float* bias, float epsilon,
                const TensorView& y);

}  // namespace transept
