#include "machine_peaks.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace transept {
namespace {

struct Halves {
  using Vec = __m512h;
  static Vec begin() { return _mm512_set1_ph(1); }
  static Vec first_factor() { return _mm512_set1_ph(static_cast<_Float16>(0.5f)); }
  static Vec second_factor() { return _mm512_set1_ph(1); }
  static Vec add_product(Vec sum, Vec a, Vec b) { return _mm512_fmadd_ph(sum, a, b); }
  static Vec add(Vec a, Vec b) { return _mm512_add_ph(a, b); }
  static float first_lane(Vec a) { return static_cast<float>(_mm512_cvtsh_h(a)); }
};

}  // namespace

float multiply_fp16() { return multiply_in_registers<Halves>(); }

}  // namespace transept
#endif
