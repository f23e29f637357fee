// Scalar activations, the definitions that fused epilogues are checked against; and the one that needs two inputs.
#pragma once

#include "ops/gemm.h"

namespace transept {

// tanh: as the name says; gelu: x/2 (1 + erf(x / sqrt 2)); gelu_tanh: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)));
// silu: x / (1 + exp(-x)).
float activate(Activation activation, float x);

// y = activation(gate) * x, element by element (Shazeer: GLU Variants Improve Transformer, 2020).
// gate, x, y: [rows, n] float32; y may be either of the others.
void gated_activation(Context& context, Activation activation, const TensorView& gate, const TensorView& x,
                      const TensorView& y);

}  // namespace transept
