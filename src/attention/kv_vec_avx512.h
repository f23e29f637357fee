// Functions as in kv_vec_generic.h. Masked forms: see ops/vec_avx512.h. KvLoads is compiled with VNNI's flags too. It
// consists of intrinsics alone, so the compiler cannot turn any of it into VNNI instructions.
#pragma once

#include <string.h>

#include "attention/kv_format.h"
#include "ops/vec_avx512.h"

namespace transept::avx512 {

// Loads and stores of 16-bit values, and of integers.
struct KvLoads : Vec {
  using Vec::load;
  using Vec::load_n;
  using Vec::store;

  static Reg load(const BFloat16* p) { return widen(p, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  static Reg load(const Float16* p) { return widen(p, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  template <class E>
  static Reg load_n(const E* p, int n) {
    return widen(p, _mm256_maskz_loadu_epi16(first_lanes(n), p));
  }
  static void store(BFloat16* p, Reg a) {
    const __m512i bits = _mm512_castps_si512(a);
    const __m512i last = _mm512_and_si512(_mm512_maskz_srli_epi32(kAll, bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(last, _mm512_set1_epi32(0x7FFF)));
    const __m512i result =
        _mm512_mask_or_epi32(rounded, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), bits, _mm512_set1_epi32(0x400000));
    const __m512i high = _mm512_maskz_srli_epi32(kAll, result, 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_maskz_cvtepi32_epi16(kAll, high));
  }
  static void store(Float16* p, Reg a) {
    // In this order NaN passes.
    const Reg clamped = min(set1(kMaxFloat16), max(set1(-kMaxFloat16), a));
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_maskz_cvtps_ph(kAll, clamped, kNearest));
  }
  static void store(int8_t* p, Reg a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_maskz_cvtepi32_epi8(kAll, to_int(a)));
  }

  typedef __m512i Quads;
  static Quads load_quads(const void* p) { return _mm512_loadu_si512(p); }
  static Quads load_quads_n(const void* p, int n) { return _mm512_maskz_loadu_epi32(first_lanes(n), p); }

 protected:
  static __m512i to_int(Reg a) { return _mm512_maskz_cvtps_epi32(kAll, a); }

 private:
  static __mmask16 first_lanes(int n) { return static_cast<__mmask16>((1u << n) - 1); }
  static Reg widen(const BFloat16* /*type*/, __m256i bits) {
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, _mm512_maskz_cvtepu16_epi32(kAll, bits), 16));
  }
  static Reg widen(const Float16* /*type*/, __m256i bits) { return _mm512_maskz_cvtph_ps(kAll, bits); }
};

struct KvVec : KvLoads {
  static constexpr int kParts = 1;
  // Integers 0 and 2, and 1 and 3, in each lane: masks and shifts turn a lane's bytes into neighbours of 16 bits, in
  // place.
  struct Word {
    __m512i even, odd;
  };

  static void pack_signed(void* words, int64_t /*count*/, int64_t i, Reg a) {
    const __m512i integers = _mm512_maskz_shuffle_epi32(kAll, to_int(a), _MM_PERM_DBCA);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(static_cast<int16_t*>(words) + i),
                        _mm512_maskz_cvtepi32_epi16(kAll, integers));
  }
  static void pack_unsigned(void* words, int64_t count, int64_t i, Reg a) { pack_signed(words, count, i, a); }
  static Word word(const void* words, int64_t /*count*/, int64_t group, int /*part*/) {
    int32_t pairs[2];
    memcpy(pairs, static_cast<const char*>(words) + 8 * group, sizeof pairs);
    return {_mm512_set1_epi32(pairs[0]), _mm512_set1_epi32(pairs[1])};
  }
  static Quads zero_quads() { return _mm512_setzero_si512(); }
  static Quads add_unsigned(Quads sum, Quads q, Word w) {
    const __m512i even = _mm512_and_si512(q, _mm512_set1_epi16(255)), odd = _mm512_srli_epi16(q, 8);
    return add_pairs(sum, even, odd, w);
  }
  static Quads add_signed(Quads sum, Quads q, Word w) {
    const __m512i even = _mm512_srai_epi16(_mm512_slli_epi16(q, 8), 8), odd = _mm512_srai_epi16(q, 8);
    return add_pairs(sum, even, odd, w);
  }
  static Reg total(Quads sum, Quads /*none*/, int32_t offset) {
    return _mm512_maskz_cvtepi32_ps(kAll, _mm512_sub_epi32(sum, _mm512_set1_epi32(offset)));
  }

 private:
  static Quads add_pairs(Quads sum, __m512i even, __m512i odd, Word w) {
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(even, w.even));
    return _mm512_add_epi32(sum, _mm512_madd_epi16(odd, w.odd));
  }
};

}  // namespace transept::avx512
