#include "attention/cpu_int8_kernel.h"
#include "attention/cpu_kernel.h"
#include "attention/cpu_write_kernel.h"
#include "attention/kv_vec_avx2.h"

namespace transept::avx2 {

const KvKernels kKvKernels = kv_kernels<KvVec>();

}  // namespace transept::avx2
