// Products of int8 inputs with int8 weights with AVX-512 (F, BW): both are widened to 16 bits. Members as in
// dot_generic.h.
#pragma once

#include "ops/vec_avx512.h"

namespace transept::TRANSEPT_AVX512_LEVEL {

struct Dot {
  static constexpr int kVecBytes = 64;  // 16 columns
  static constexpr int kTileRows = 6;
  static constexpr bool kStoresFours = false;
  static constexpr bool kRaisesInputs = false;
  static constexpr int kSums = 12;

  typedef int16_t Input;
  struct Weights {
    __m512i low, high;  // of 8 columns each
  };
  struct Sum {
    __m512i low, high;  // each column's sum as two neighbouring halves
  };

  static void store_inputs(Input* to, int64_t step, Vec::Reg rounded, int32_t /*zero*/) {
    const __m512i whole = _mm512_maskz_cvtps_epi32(Vec::kAll, rounded);
    int64_t fours[4];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(fours), _mm512_maskz_cvtepi32_epi16(Vec::kAll, whole));
    for (int i = 0; i < 4; ++i) __builtin_memcpy(to + i * step, fours + i, sizeof fours[i]);
  }
  static void clear(Sum& sum) { sum.low = sum.high = _mm512_setzero_si512(); }
  static Weights load(const int8_t* p) {
    const auto* q = reinterpret_cast<const __m256i*>(p);
    return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(q)), _mm512_cvtepi8_epi16(_mm256_loadu_si256(q + 1))};
  }
  static __m512i broadcast(const Input* q) {
    int64_t four;
    __builtin_memcpy(&four, q, sizeof four);
    return _mm512_set1_epi64(four);
  }
  static void add(Sum& sum, __m512i q, const Weights& w) {
    sum.low = _mm512_add_epi32(sum.low, _mm512_madd_epi16(q, w.low));
    sum.high = _mm512_add_epi32(sum.high, _mm512_madd_epi16(q, w.high));
  }
  static void store(int32_t* to, const Sum& sum) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    _mm512_storeu_si512(to, _mm512_add_epi32(_mm512_permutex2var_epi32(sum.low, even, sum.high),
                                             _mm512_permutex2var_epi32(sum.low, odd, sum.high)));
  }
  template <class V>
  static typename V::Reg corrected(const int32_t* sums, const int32_t* /*weight_sums*/, int32_t /*zero*/) {
    return V::load_int32(sums);
  }
  [[gnu::always_inline]] static void prefetch(const void* p) { Vec::prefetch(p); }
  [[gnu::always_inline]] static void prefetch_l2(const void* p) { Vec::prefetch_l2(p); }
};

// Members as in dot_generic.h; sums as in dot_avx2.h.
struct NibbleDot : NibbleDotBase {
  static constexpr int kTileRows = 6;
  static constexpr int kSums = 12;
  static constexpr int kMostInputs = 32;

  static void begin(Part& part, const Sum& /*sum*/) { part = _mm512_setzero_si512(); }
  static void end(Sum& sum, const Part& part) {
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(part, _mm512_set1_epi16(1)));
  }
  static void add(Part& part, const Codes& codes, const Inputs& inputs) {
    part = _mm512_add_epi16(part, _mm512_maddubs_epi16(codes.low, inputs.first));
    part = _mm512_add_epi16(part, _mm512_maddubs_epi16(codes.high, inputs.second));
  }
};

}  // namespace transept::TRANSEPT_AVX512_LEVEL
