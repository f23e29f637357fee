// Products of int8 inputs with int8 weights with AVX2: both are widened to 16 bits, so that sums do not saturate.
// Members as in dot_generic.h.
#pragma once

#include "ops/vec_avx2.h"

namespace transept::avx2 {

struct Dot {
  static constexpr int kVecBytes = 32;  // 8 columns
  static constexpr int kTileRows = 4;
  static constexpr bool kStoresFours = false;
  static constexpr bool kRaisesInputs = false;
  static constexpr int kSums = 4;

  typedef int16_t Input;
  struct Weights {
    __m256i low, high;  // of 4 columns each
  };
  struct Sum {
    __m256i low, high;  // each column's sum as two neighbouring halves
  };

  static void store_inputs(Input* to, int64_t step, Vec::Reg rounded, int32_t /*zero*/) {
    const __m256i whole = _mm256_cvtps_epi32(rounded);
    const __m128i packed = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), packed);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + step), _mm_unpackhi_epi64(packed, packed));
  }
  static void clear(Sum& sum) { sum.low = sum.high = _mm256_setzero_si256(); }
  static Weights load(const int8_t* p) {
    const auto* q = reinterpret_cast<const __m128i*>(p);
    return {_mm256_cvtepi8_epi16(_mm_loadu_si128(q)), _mm256_cvtepi8_epi16(_mm_loadu_si128(q + 1))};
  }
  static __m256i broadcast(const Input* q) {
    int64_t four;
    __builtin_memcpy(&four, q, sizeof four);
    return _mm256_set1_epi64x(four);
  }
  static void add(Sum& sum, __m256i q, const Weights& w) {
    sum.low = _mm256_add_epi32(sum.low, _mm256_madd_epi16(q, w.low));
    sum.high = _mm256_add_epi32(sum.high, _mm256_madd_epi16(q, w.high));
  }
  static void store(int32_t* to, const Sum& sum) {
    // hadd works within halves: its result has columns 0 1 4 5 2 3 6 7.
    const __m256i columns = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sum.low, sum.high), 0xD8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), columns);
  }
  template <class V>
  static typename V::Reg corrected(const int32_t* sums, const int32_t* /*weight_sums*/, int32_t /*zero*/) {
    return V::load_int32(sums);
  }
  [[gnu::always_inline]] static void prefetch(const void* p) { Vec::prefetch(p); }
  [[gnu::always_inline]] static void prefetch_l2(const void* p) { Vec::prefetch_l2(p); }
};

// Members as in dot_generic.h. Sums of pairs are of 16 bits: of 32 inputs 16 products each, of which none is past 15 *
// 127, so that nothing saturates.
struct NibbleDot {
  static constexpr int kVecBytes = 32;  // 8 columns
  static constexpr int kTileRows = 4;
  static constexpr int kSums = 4;
  static constexpr int kMostInputs = 32;

  typedef __m256i Sum;
  typedef __m256i Part;
  struct Codes {
    __m256i low, high;
  };
  struct Inputs {
    __m256i first, second;
  };

  static void start(Sum& sum, int32_t start) { sum = _mm256_set1_epi32(start); }
  static void start_with_zeros(Sum& sum, int32_t start, const int16_t* zeros) {
    const __m256i whole = _mm256_cvtepi16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(zeros)));
    sum = _mm256_add_epi32(_mm256_set1_epi32(start), _mm256_mullo_epi32(whole, _mm256_set1_epi32(start >> 3)));
  }
  static void begin(Part& part, const Sum& /*sum*/) { part = _mm256_setzero_si256(); }
  static void end(Sum& sum, const Part& part) {
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(part, _mm256_set1_epi16(1)));
  }
  static Codes load(const uint8_t* p) {
    const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), mask = _mm256_set1_epi8(15);
    return {_mm256_and_si256(both, mask), _mm256_and_si256(_mm256_srli_epi16(both, 4), mask)};
  }
  static Inputs inputs(const int8_t* q) {
    int32_t first, second;
    __builtin_memcpy(&first, q, sizeof first);
    __builtin_memcpy(&second, q + 4, sizeof second);
    return {_mm256_set1_epi32(first), _mm256_set1_epi32(second)};
  }
  static void add(Part& part, const Codes& codes, const Inputs& inputs) {
    part = _mm256_add_epi16(part, _mm256_maddubs_epi16(codes.low, inputs.first));
    part = _mm256_add_epi16(part, _mm256_maddubs_epi16(codes.high, inputs.second));
  }
  template <class V>
  static typename V::Reg to_float(const Sum& sum) {
    return _mm256_cvtepi32_ps(sum);
  }
  [[gnu::always_inline]] static void prefetch(const void* p) { Vec::prefetch(p); }
  [[gnu::always_inline]] static void prefetch_l2(const void* p) { Vec::prefetch_l2(p); }
};

}  // namespace transept::avx2
