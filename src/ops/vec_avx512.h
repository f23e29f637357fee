// Vectors of 16 floats with AVX-512 (F, BW, DQ). Functions as in vec_generic.h. Levels above AVX-512 use it too, each
// as a type of its own (the rule in ops/kernels.h): they define TRANSEPT_AVX512_LEVEL, the name of their namespace.
#pragma once

#include <immintrin.h>
#include <stdint.h>

#ifndef TRANSEPT_AVX512_LEVEL
#define TRANSEPT_AVX512_LEVEL avx512
#endif

namespace transept::TRANSEPT_AVX512_LEVEL {

struct Vec {
  // Masked forms with a full mask stand where gcc 12 warns of its own "undefined" operand in the plain intrinsic. They
  // cost nothing.
  static constexpr __mmask16 kAll = 0xFFFF;
  static constexpr int kLanes = 16;
  static constexpr int kTileRows = 14;
  static constexpr int kTileVecs = 2;
  static constexpr int kFewRows = 8;

  using Reg = __m512;

  static Reg zero() { return _mm512_setzero_ps(); }
  static Reg set1(float x) { return _mm512_set1_ps(x); }
  static Reg load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Reg a) { _mm512_storeu_ps(p, a); }
  static Reg load_bfloat16_first(const uint16_t* p) {
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, _mm512_loadu_si512(p), 16));
  }
  static Reg load_bfloat16_second(const uint16_t* p) {
    return _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(0xAAAAAAAA, p));
  }
  static void store_bfloat16(uint16_t* p, Reg a) {
    const __m512i bits = _mm512_castps_si512(a);
    const __m512i odd = _mm512_and_si512(_mm512_maskz_srli_epi32(kAll, bits, 16), _mm512_set1_epi32(1));
    const __m512i nearest = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __m512i rounded = _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), nearest, quiet);
    const __m512i high = _mm512_maskz_srli_epi32(kAll, rounded, 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_maskz_cvtepi32_epi16(kAll, high));
  }
  static Reg load_float16(const uint16_t* p) {
    return _mm512_maskz_cvtph_ps(kAll, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Reg load_int32(const int32_t* p) { return _mm512_maskz_cvtepi32_ps(kAll, _mm512_loadu_si512(p)); }
  static Reg load_int16(const int16_t* p) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_maskz_cvtepi32_ps(kAll, _mm512_maskz_cvtepi16_epi32(kAll, halves));
  }
  static void store_int8(int8_t* p, Reg a) {
    const __m512i whole = _mm512_maskz_cvtps_epi32(kAll, a);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_maskz_cvtepi32_epi8(kAll, whole));
  }
  using Nibbles = __m512i;
  struct Table {
    __m512 values;
  };
  static Table load_table(const float* values) { return {_mm512_loadu_ps(values)}; }
  static Nibbles load_nibbles(const uint8_t* p) { return _mm512_loadu_si512(p); }
  template <int kShift>
  static Reg look_up(const Table& table, Nibbles codes) {
    // Of an index four bits count.
    return _mm512_maskz_permutexvar_ps(kAll, _mm512_maskz_srli_epi32(kAll, codes, kShift), table.values);
  }
  static Reg load_n(const float* p, int n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static void store_n(float* p, Reg a, int n) { _mm512_mask_storeu_ps(p, first(n), a); }

  static Reg add(Reg a, Reg b) { return _mm512_add_ps(a, b); }
  static Reg sub(Reg a, Reg b) { return _mm512_sub_ps(a, b); }
  static Reg mul(Reg a, Reg b) { return _mm512_mul_ps(a, b); }
  static Reg div(Reg a, Reg b) { return _mm512_div_ps(a, b); }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm512_fmadd_ps(a, b, c); }
  static Reg fnma(Reg a, Reg b, Reg c) { return _mm512_fnmadd_ps(a, b, c); }
  static Reg max(Reg a, Reg b) { return _mm512_maskz_max_ps(kAll, a, b); }
  static Reg min(Reg a, Reg b) { return _mm512_maskz_min_ps(kAll, a, b); }
  static Reg abs(Reg a) { return _mm512_abs_ps(a); }
  static Reg select_lt(Reg a, Reg b, Reg x, Reg y) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
  }
  static Reg keep_first(Reg a, int64_t n, float fill) {
    const int count = n < 0 ? 0 : n > kLanes ? kLanes : static_cast<int>(n);
    return _mm512_mask_blend_ps(first(count), _mm512_set1_ps(fill), a);
  }
  static uint32_t equal_mask(Reg a, Reg b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  static uint32_t greater_mask(Reg a, Reg b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
  static Reg round(Reg a) { return _mm512_maskz_roundscale_ps(kAll, a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static Reg scale(Reg a, Reg n) { return _mm512_maskz_scalef_ps(kAll, a, n); }
  // Adds halves to halves explicitly, so that the order does not depend on the compiler.
  static float reduce_add(Reg a) {
    const __m256 b = _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xFF, a, 0), _mm512_maskz_extractf32x8_ps(0xFF, a, 1));
    __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
    c = _mm_add_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_shuffle_ps(c, c, 1)));
  }
  static float reduce_max(Reg a) {
    const __m256 b = _mm256_max_ps(_mm512_maskz_extractf32x8_ps(0xFF, a, 0), _mm512_maskz_extractf32x8_ps(0xFF, a, 1));
    __m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
    c = _mm_max_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_max_ss(c, _mm_shuffle_ps(c, c, 1)));
  }
  [[gnu::always_inline]] static void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
  [[gnu::always_inline]] static void prefetch_l2(const void* p) {
    _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1);
  }

 private:
  static __mmask16 first(int n) { return static_cast<__mmask16>((1u << n) - 1); }
};

// What the products of 4-bit codes of both levels have in common (NibbleDot).
struct NibbleDotBase {
  static constexpr int kVecBytes = 64;  // 16 columns

  typedef __m512i Sum;
  typedef __m512i Part;
  struct Codes {
    __m512i low, high;
  };
  struct Inputs {
    __m512i first, second;
  };

  static void start(Sum& sum, int32_t start) { sum = _mm512_set1_epi32(start); }
  static void start_with_zeros(Sum& sum, int32_t start, const int16_t* zeros) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(zeros));
    const __m512i whole = _mm512_maskz_cvtepi16_epi32(Vec::kAll, halves);
    sum = _mm512_add_epi32(_mm512_set1_epi32(start), _mm512_mullo_epi32(whole, _mm512_set1_epi32(start >> 3)));
  }
  static Codes load(const uint8_t* p) {
    const __m512i both = _mm512_loadu_si512(p), mask = _mm512_set1_epi8(15);
    return {_mm512_and_si512(both, mask), _mm512_and_si512(_mm512_srli_epi16(both, 4), mask)};
  }
  static Inputs inputs(const int8_t* q) {
    int32_t first, second;
    __builtin_memcpy(&first, q, sizeof first);
    __builtin_memcpy(&second, q + 4, sizeof second);
    return {_mm512_set1_epi32(first), _mm512_set1_epi32(second)};
  }
  template <class V>
  static typename V::Reg to_float(const Sum& sum) {
    return _mm512_maskz_cvtepi32_ps(V::kAll, sum);
  }
  [[gnu::always_inline]] static void prefetch(const void* p) { Vec::prefetch(p); }
  [[gnu::always_inline]] static void prefetch_l2(const void* p) { Vec::prefetch_l2(p); }
};

}  // namespace transept::TRANSEPT_AVX512_LEVEL
