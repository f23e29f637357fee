// Scalar activations: the definitions that fused epilogues are checked against.
#pragma once

#include "ops/gemm.h"

namespace transept {

// gelu: x/2 (1 + erf(x / sqrt 2)); gelu_tanh: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); silu: x / (1 + exp(-x)).
float activate(Activation activation, float x);

}  // namespace transept
