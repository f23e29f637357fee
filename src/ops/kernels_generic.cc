#include "ops/dot_generic.h"
#include "ops/kernel_table.h"
#include "ops/vec_generic.h"

namespace transept::generic {

constexpr OpKernels kOpKernels = make_op_kernels<Vec, Dot, NibbleDot>();

}  // namespace transept::generic
