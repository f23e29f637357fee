// Stores inputs of int8 products for tiles with AVX-512: unsigned, each row contiguous. Sums are corrected as in
// dot_vnni.h. Included with TRANSEPT_AVX512_LEVEL set (vec_avx512.h).
#pragma once

#include "ops/dot_vnni.h"

namespace transept::TRANSEPT_AVX512_LEVEL {

struct TileDot {
  typedef uint8_t Input;
  static constexpr bool kRaisesInputs = true;

  // Stores Vec::kLanes inputs of one row. REQUIRES: step is 4.
  static void store_inputs(Input* to, int64_t /*step*/, Vec::Reg rounded, int32_t zero) {
    const __m512i whole = _mm512_maskz_cvtps_epi32(Vec::kAll, rounded);
    const __m512i raised = _mm512_add_epi32(whole, _mm512_set1_epi32(zero));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_maskz_cvtepi32_epi8(Vec::kAll, raised));
  }
  template <class V>
  static typename V::Reg corrected(const int32_t* sums, const int32_t* weight_sums, int32_t zero) {
    return Dot::corrected<V>(sums, weight_sums, zero);
  }
};

}  // namespace transept::TRANSEPT_AVX512_LEVEL
