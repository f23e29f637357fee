#define TRANSEPT_AVX512_LEVEL avx512_vnni
#include "ops/dot_vnni.h"
#include "ops/kernel_table.h"
#include "ops/vec_avx512.h"

namespace transept::avx512_vnni {

constexpr OpKernels kOpKernels = make_op_kernels<Vec, Dot, NibbleDot>();

}  // namespace transept::avx512_vnni
