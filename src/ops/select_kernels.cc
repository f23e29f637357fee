#include "ops/select_kernels.h"

namespace transept {

const OpKernels& op_kernels(Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::kAvx512Vnni) return avx512_vnni::kOpKernels;
  if (isa >= Isa::kAvx512) return avx512::kOpKernels;
  if (isa >= Isa::kAvx2) return avx2::kOpKernels;
#endif
  (void)isa;
  return generic::kOpKernels;
}

}  // namespace transept
