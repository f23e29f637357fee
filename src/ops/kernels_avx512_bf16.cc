#define TRANSEPT_AVX512_LEVEL avx512_bf16
#include "ops/bfloat16_kernel.h"
#include "ops/vec_avx512.h"

namespace transept::avx512_bf16 {

// The product of pairs of bfloat16, whose two terms are added to the sum one after the other.
struct Pairs {
  typedef __m512bh Weights;

  static Weights load(const uint16_t* p) { return reinterpret_cast<__m512bh>(_mm512_loadu_si512(p)); }
  static Weights pair(const uint16_t* p) {
    int32_t two;
    __builtin_memcpy(&two, p, sizeof two);
    return reinterpret_cast<__m512bh>(_mm512_set1_epi32(two));
  }
  static Vec::Reg add(Vec::Reg sum, Weights a, Weights b) { return _mm512_dpbf16_ps(sum, a, b); }
};

constexpr RoundedGemmKernels kBFloat16Kernels = make_bfloat16_kernels<Vec, Pairs>();

}  // namespace transept::avx512_bf16
