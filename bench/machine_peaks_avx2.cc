#include "machine_peaks.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace transept {
namespace {

// sum * a + b, which stays near where it began.
struct Floats {
  using Vec = __m256;
  static Vec begin() { return _mm256_set1_ps(1.0f); }
  static Vec first_factor() { return _mm256_set1_ps(0.999f); }
  static Vec second_factor() { return _mm256_set1_ps(0.001f); }
  static Vec add_product(Vec sum, Vec a, Vec b) { return _mm256_fmadd_ps(sum, a, b); }
  static Vec add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
  static float first_lane(Vec a) { return _mm256_cvtss_f32(a); }
};

}  // namespace

float multiply_avx2() { return multiply_in_registers<Floats>(); }

}  // namespace transept
#endif
