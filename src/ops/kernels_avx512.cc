#include "ops/dot_avx512.h"
#include "ops/kernel_table.h"
#include "ops/vec_avx512.h"

namespace transept::avx512 {

constexpr OpKernels kOpKernels = make_op_kernels<Vec, Dot, NibbleDot>();

}  // namespace transept::avx512
