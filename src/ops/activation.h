// Scalar activations, the definitions that fused epilogues are tested against, and the gated activation of two inputs.
// Functions without state: thread-safe.
#pragma once

#include "ops/gemm.h"

namespace transept {

// Returns activation(x), computed in double precision. kNone: x; kRelu: max(x, 0); kGelu: x/2 (1 + erf(x / sqrt 2));
// kGeluTanh: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); kSilu: x / (1 + exp(-x)); kTanh: tanh(x);
// kQuickGelu: x / (1 + exp(-1.702 x)).
float activate(Activation activation, float x);

// Computes y = activation(gate) * x, element by element, on the context's threads (Shazeer: GLU Variants Improve
// Transformer, 2020). gate, x, y: [rows, n] float32, rows may be strided, columns dense; y may be gate or x.
void gated_activation(Context& context, Activation activation, const TensorView& gate, const TensorView& x,
                      const TensorView& y);

}  // namespace transept
