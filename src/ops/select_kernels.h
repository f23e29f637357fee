// Which table serves a level.
#pragma once

#include "base/isa.h"
#include "ops/kernels.h"

namespace transept {

const OpKernels& op_kernels(Isa isa);

}  // namespace transept
