#include "machine_peaks.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace transept {

float multiply_fp16() {
  __m512h sums[kChains];
  for (__m512h& sum : sums) sum = _mm512_set1_ph(1);
  const __m512h factor = _mm512_set1_ph(static_cast<_Float16>(0.5f)), addend = _mm512_set1_ph(1);
  for (int64_t i = 0; i < kRounds; ++i) {
    for (__m512h& sum : sums) sum = _mm512_fmadd_ph(sum, factor, addend);
  }
  __m512h total = sums[0];
  for (int i = 1; i < kChains; ++i) total = _mm512_add_ph(total, sums[i]);
  alignas(64) _Float16 lanes[32];
  _mm512_store_ph(lanes, total);
  return static_cast<float>(lanes[0]);
}

}  // namespace transept
#endif
