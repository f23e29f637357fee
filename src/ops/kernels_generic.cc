#include "ops/kernel_table.h"
#include "ops/vec_generic.h"

namespace transept::generic {

constexpr OpKernels kOpKernels = make_op_kernels<Vec>();

}  // namespace transept::generic
