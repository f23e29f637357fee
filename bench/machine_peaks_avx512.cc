#include "machine_peaks.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace transept {
namespace {

struct FloatSums {
  using Vec = __m512;
  static Vec begin() { return _mm512_set1_ps(1.0f); }
  static Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
  static float first_lane(Vec a) { return _mm512_cvtss_f32(a); }
};

// sum * a + b, which stays near where it began.
struct Floats : FloatSums {
  static Vec first_factor() { return _mm512_set1_ps(0.999f); }
  static Vec second_factor() { return _mm512_set1_ps(0.001f); }
  static Vec add_product(Vec sum, Vec a, Vec b) { return _mm512_fmadd_ps(sum, a, b); }
};

struct Bfloats : FloatSums {
  static __m512bh first_factor() { return _mm512_cvtne2ps_pbh(begin(), begin()); }
  static __m512bh second_factor() { return first_factor(); }
  static Vec add_product(Vec sum, __m512bh a, __m512bh b) { return _mm512_dpbf16_ps(sum, a, b); }
};

struct Bytes {
  using Vec = __m512i;
  static Vec begin() { return _mm512_setzero_si512(); }
  static Vec first_factor() { return _mm512_set1_epi8(3); }
  static Vec second_factor() { return _mm512_set1_epi8(-2); }
  static Vec add_product(Vec sum, Vec a, Vec b) { return _mm512_dpbusd_epi32(sum, a, b); }
  static Vec add(Vec a, Vec b) { return _mm512_add_epi32(a, b); }
  static float first_lane(Vec a) { return static_cast<float>(_mm512_cvtsi512_si32(a)); }
};

}  // namespace

float multiply_avx512() { return multiply_in_registers<Floats>(); }
float multiply_bf16() { return multiply_in_registers<Bfloats>(); }
float multiply_int8() { return multiply_in_registers<Bytes>(); }

}  // namespace transept
#endif
