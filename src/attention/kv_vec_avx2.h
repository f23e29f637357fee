// Functions as in kv_vec_generic.h, with AVX2 and F16C.
#pragma once

#include <string.h>

#include "attention/kv_format.h"
#include "ops/vec_avx2.h"

namespace transept::avx2 {

struct KvVec : Vec {
  using Vec::load;
  using Vec::load_n;
  using Vec::store;

  static Reg load(const BFloat16* p) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
  static Reg load(const Float16* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  template <class E>
  static Reg load_n(const E* p, int n) {
    E values[kLanes] = {};
    for (int i = 0; i < n; ++i) values[i] = p[i];
    return load(values);
  }
  static void store(BFloat16* p, Reg a) {
    const __m256i bits = _mm256_castps_si256(a);
    const __m256i last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(last, _mm256_set1_epi32(0x7FFF)));
    const __m256i nan = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    const __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, nan, is_nan), 16);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
  }
  static void store(Float16* p, Reg a) {
    // In this order NaN passes.
    const Reg clamped = min(set1(kMaxFloat16), max(set1(-kMaxFloat16), a));
    const __m128i half = _mm256_cvtps_ph(clamped, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), half);
  }
  static void store(int8_t* p, Reg a) {
    const __m128i words = to_words(_mm256_cvtps_epi32(a));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
  }

  typedef __m256i Quads;
  static constexpr int kParts = 1;
  // Integers 0 and 2, and 1 and 3, in each lane: masks and shifts turn a lane's bytes into neighbours of 16 bits, in
  // place.
  struct Word {
    __m256i even, odd;
  };

  static Quads load_quads(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static Quads load_quads_n(const void* p, int n) {
    const __m256i first = _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm256_maskload_epi32(static_cast<const int*>(p), first);
  }
  static void pack_signed(void* words, int64_t /*count*/, int64_t i, Reg a) {
    const __m256i integers = _mm256_shuffle_epi32(_mm256_cvtps_epi32(a), _MM_SHUFFLE(3, 1, 2, 0));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(static_cast<int16_t*>(words) + i), to_words(integers));
  }
  static void pack_unsigned(void* words, int64_t count, int64_t i, Reg a) { pack_signed(words, count, i, a); }
  static Word word(const void* words, int64_t /*count*/, int64_t group, int /*part*/) {
    int32_t pairs[2];
    memcpy(pairs, static_cast<const char*>(words) + 8 * group, sizeof pairs);
    return {_mm256_set1_epi32(pairs[0]), _mm256_set1_epi32(pairs[1])};
  }
  static Quads zero_quads() { return _mm256_setzero_si256(); }
  static Quads add_unsigned(Quads sum, Quads q, Word w) {
    const __m256i even = _mm256_and_si256(q, _mm256_set1_epi16(255)), odd = _mm256_srli_epi16(q, 8);
    return add_pairs(sum, even, odd, w);
  }
  static Quads add_signed(Quads sum, Quads q, Word w) {
    const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(q, 8), 8), odd = _mm256_srai_epi16(q, 8);
    return add_pairs(sum, even, odd, w);
  }
  static Reg total(Quads sum, Quads /*none*/, int32_t offset) {
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(sum, _mm256_set1_epi32(offset)));
  }

 private:
  static Quads add_pairs(Quads sum, __m256i even, __m256i odd, Word w) {
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(even, w.even));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(odd, w.odd));
  }
  static __m128i to_words(__m256i integers) {
    return _mm_packs_epi32(_mm256_castsi256_si128(integers), _mm256_extracti128_si256(integers, 1));
  }
};

}  // namespace transept::avx2
