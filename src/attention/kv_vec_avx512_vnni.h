// Functions as in kv_vec_generic.h, with the dot products of AVX512-VNNI. They take bytes on both sides, so a word is
// stored as two bytes: its upper and its lower eight bits.
#pragma once

#include "attention/kv_vec_avx512.h"

namespace transept::avx512_vnni {

struct KvVec : avx512::KvLoads {
  static constexpr int kParts = 2;
  typedef __m512i Word;

  static void pack_signed(void* words, int64_t count, int64_t i, Reg a) {
    const __m512i integers = to_int(a);  // the lower byte is signed too, so the upper one is rounded
    const __m512i upper = _mm512_maskz_srai_epi32(kAll, _mm512_add_epi32(integers, _mm512_set1_epi32(128)), 8);
    store_bytes(words, count, i, upper, integers);
  }
  static void pack_unsigned(void* words, int64_t count, int64_t i, Reg a) {
    const __m512i integers = to_int(a);
    store_bytes(words, count, i, _mm512_maskz_srli_epi32(kAll, integers, 8), integers);
  }
  static Word word(const void* words, int64_t count, int64_t group, int part) {
    int32_t four;
    memcpy(&four, static_cast<const char*>(words) + 4 * group + part * count, sizeof four);
    return _mm512_set1_epi32(four);
  }
  static Quads zero_quads() { return _mm512_setzero_si512(); }
  static Quads add_unsigned(Quads sum, Quads q, Word w) { return dot(sum, q, w); }
  static Quads add_signed(Quads sum, Quads q, Word w) { return dot(sum, w, q); }
  static Reg total(Quads upper, Quads lower, int32_t offset) {
    const __m512i sums = _mm512_add_epi32(_mm512_maskz_slli_epi32(kAll, upper, 8), lower);
    return _mm512_maskz_cvtepi32_ps(kAll, _mm512_sub_epi32(sums, _mm512_set1_epi32(offset)));
  }

 private:
  // In assembly, because gcc 12 copies sums back and forth around the intrinsic.
  static Quads dot(Quads sum, __m512i unsigned_bytes, __m512i signed_bytes) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(unsigned_bytes), "v"(signed_bytes));
    return sum;
  }
  static void store_bytes(void* words, int64_t count, int64_t i, __m512i upper, __m512i lower) {
    char* to = static_cast<char*>(words) + i;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_maskz_cvtepi32_epi8(kAll, upper));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + count), _mm512_maskz_cvtepi32_epi8(kAll, lower));
  }
};

}  // namespace transept::avx512_vnni
