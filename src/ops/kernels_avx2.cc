#include "ops/dot_avx2.h"
#include "ops/kernel_table.h"
#include "ops/vec_avx2.h"

namespace transept::avx2 {

constexpr OpKernels kOpKernels = make_op_kernels<Vec, Dot, NibbleDot>();

}  // namespace transept::avx2
