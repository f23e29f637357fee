// Vectors of 8 floats with AVX2, FMA and F16C. Functions as in vec_generic.h, without store_bfloat16.
#pragma once

#include <immintrin.h>
#include <stdint.h>

namespace transept::avx2 {

struct Vec {
  static constexpr int kLanes = 8;
  static constexpr int kTileRows = 6;
  static constexpr int kTileVecs = 2;
  static constexpr int kFewRows = 3;

  using Reg = __m256;

  static Reg zero() { return _mm256_setzero_ps(); }
  static Reg set1(float x) { return _mm256_set1_ps(x); }
  static Reg load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Reg a) { _mm256_storeu_ps(p, a); }
  static Reg load_bfloat16_first(const uint16_t* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), 16));
  }
  static Reg load_bfloat16_second(const uint16_t* p) {
    const __m256i pairs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int32_t>(0xFFFF0000))));
  }
  static Reg load_float16(const uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Reg load_int32(const int32_t* p) {
    return _mm256_cvtepi32_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Reg load_int16(const int16_t* p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static void store_int8(int8_t* p, Reg a) {
    const __m256i whole = _mm256_cvtps_epi32(a);
    const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(halves, halves));
  }
  using Nibbles = __m256i;
  struct Table {
    __m256 low, high;
  };
  static Table load_table(const float* values) { return {_mm256_loadu_ps(values), _mm256_loadu_ps(values + 8)}; }
  static Nibbles load_nibbles(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  template <int kShift>
  static Reg look_up(const Table& table, Nibbles codes) {
    const __m256i at = _mm256_srli_epi32(codes, kShift);  // of which three bits count
    const __m256 is_high = _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28 - kShift));
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(table.low, at), _mm256_permutevar8x32_ps(table.high, at), is_high);
  }
  static Reg load_n(const float* p, int n) { return _mm256_maskload_ps(p, first(n)); }
  static void store_n(float* p, Reg a, int n) { _mm256_maskstore_ps(p, first(n), a); }

  static Reg add(Reg a, Reg b) { return _mm256_add_ps(a, b); }
  static Reg sub(Reg a, Reg b) { return _mm256_sub_ps(a, b); }
  static Reg mul(Reg a, Reg b) { return _mm256_mul_ps(a, b); }
  static Reg div(Reg a, Reg b) { return _mm256_div_ps(a, b); }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm256_fmadd_ps(a, b, c); }
  static Reg fnma(Reg a, Reg b, Reg c) { return _mm256_fnmadd_ps(a, b, c); }
  static Reg max(Reg a, Reg b) { return _mm256_max_ps(a, b); }
  static Reg min(Reg a, Reg b) { return _mm256_min_ps(a, b); }
  static Reg abs(Reg a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
  static Reg select_lt(Reg a, Reg b, Reg x, Reg y) { return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
  static Reg keep_first(Reg a, int64_t n, float fill) {
    const int count = n < 0 ? 0 : n > kLanes ? kLanes : static_cast<int>(n);
    return _mm256_blendv_ps(_mm256_set1_ps(fill), a, _mm256_castsi256_ps(first(count)));
  }
  static uint32_t equal_mask(Reg a, Reg b) {
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)));
  }
  static uint32_t greater_mask(Reg a, Reg b) {
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)));
  }
  static Reg round(Reg a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static Reg scale(Reg a, Reg n) {
    const __m256i bits = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
    return _mm256_mul_ps(a, _mm256_castsi256_ps(bits));
  }
  static float reduce_add(Reg a) {
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
  }
  static float reduce_max(Reg a) {
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_shuffle_ps(b, b, 1)));
  }
  [[gnu::always_inline]] static void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
  [[gnu::always_inline]] static void prefetch_l2(const void* p) {
    _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1);
  }

 private:
  static __m256i first(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

}  // namespace transept::avx2
