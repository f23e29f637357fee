#include "ops/select_kernels.h"

namespace transept {
namespace {

#if defined(__x86_64__)
OpKernels with_tiles(OpKernels kernels, const TileGemmKernels& tiles) {
  kernels.tiles = &tiles;
  return kernels;
}

OpKernels with_bfloat16(OpKernels kernels, const RoundedGemmKernels& products) {
  kernels.gemm_rounded_bfloat16 = &products;
  return kernels;
}
#endif

}  // namespace

const OpKernels& op_kernels(Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::kAmx) {
    static const OpKernels kernels = with_tiles(avx512_vnni::kOpKernels, amx::kTileGemmKernels);
    return kernels;
  }
  // Processors with FP16 are Intel's so far, where pairs of bfloat16 have half the rate of floats.
  if (isa == Isa::kAvx512Bf16) {
    static const OpKernels kernels = with_bfloat16(avx512_vnni::kOpKernels, avx512_bf16::kBFloat16Kernels);
    return kernels;
  }
  if (isa >= Isa::kAvx512Vnni) return avx512_vnni::kOpKernels;
  if (isa >= Isa::kAvx512) return avx512::kOpKernels;
  if (isa >= Isa::kAvx2) return avx2::kOpKernels;
#endif
  (void)isa;
  return generic::kOpKernels;
}

}  // namespace transept
