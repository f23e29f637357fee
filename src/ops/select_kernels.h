// Chooses the table of an instruction level.
#pragma once

#include "base/isa.h"
#include "ops/kernels.h"

namespace transept {

// Returns the table of the highest level with kernels of its own that `isa` includes, but for pairs of bfloat16, which
// avx512_bf16 alone multiplies. It lives as long as the process.
// Thread-safe.
const OpKernels& op_kernels(Isa isa);

}  // namespace transept
