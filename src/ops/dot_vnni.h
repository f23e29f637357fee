// Products of int8 inputs with int8 weights with AVX-512 VNNI, whose first factor is unsigned: inputs are stored with
// their row's zero added (RowCode of int8_kernel.h), and the sums corrected for it. Members as in dot_generic.h, and
// store_four.
#pragma once

#include "ops/vec_avx512.h"

namespace transept::TRANSEPT_AVX512_LEVEL {

struct Dot {
  static constexpr int kVecBytes = 64;  // 16 columns
  static constexpr int kTileRows = 12;
  static constexpr bool kStoresFours = true;
  static constexpr bool kRaisesInputs = true;
  static constexpr int kSums = 24;

  typedef uint8_t Input;
  typedef __m512i Weights;
  typedef __m512i Sum;

  static void store_inputs(Input* to, int64_t step, Vec::Reg rounded, int32_t zero) {
    const __m512i whole = _mm512_maskz_cvtps_epi32(Vec::kAll, rounded);
    const __m512i raised = _mm512_add_epi32(whole, _mm512_set1_epi32(zero));
    int32_t fours[4];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(fours), _mm512_maskz_cvtepi32_epi8(Vec::kAll, raised));
    for (int i = 0; i < 4; ++i) __builtin_memcpy(to + i * step, fours + i, sizeof fours[i]);
  }
  // Stores four neighbouring rows, scaled to steps: rounds them and brings them into [0, 255], a group's sixteen bytes
  // at once. NaN becomes 0.
  static void store_four(Input* to, int64_t step, const Vec::Reg (&scaled)[4], const int32_t (&zeros)[4]) {
    __m128i rows[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const __m512i whole = _mm512_maskz_cvtps_epi32(Vec::kAll, scaled[r]);
      const __m512i raised = _mm512_add_epi32(whole, _mm512_set1_epi32(zeros[r]));
      const __m512i positive = _mm512_maskz_max_epi32(Vec::kAll, raised, _mm512_setzero_si512());
      rows[r] = _mm512_maskz_cvtusepi32_epi8(Vec::kAll, positive);
    }
    const __m128i low01 = _mm_unpacklo_epi32(rows[0], rows[1]), high01 = _mm_unpackhi_epi32(rows[0], rows[1]);
    const __m128i low23 = _mm_unpacklo_epi32(rows[2], rows[3]), high23 = _mm_unpackhi_epi32(rows[2], rows[3]);
    const auto put = [&](int group, __m128i bytes) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + group * step), bytes);
    };
    put(0, _mm_unpacklo_epi64(low01, low23));
    put(1, _mm_unpackhi_epi64(low01, low23));
    put(2, _mm_unpacklo_epi64(high01, high23));
    put(3, _mm_unpackhi_epi64(high01, high23));
  }
  static void clear(Sum& sum) { sum = _mm512_setzero_si512(); }
  static Weights load(const int8_t* p) { return _mm512_loadu_si512(p); }
  static __m512i broadcast(const Input* q) {
    int32_t four;
    __builtin_memcpy(&four, q, sizeof four);
    return _mm512_set1_epi32(four);
  }
  static void add(Sum& sum, __m512i q, Weights w) { sum = _mm512_dpbusd_epi32(sum, q, w); }
  static void store(int32_t* to, Sum sum) { _mm512_storeu_si512(to, sum); }
  template <class V>
  static typename V::Reg corrected(const int32_t* sums, const int32_t* weight_sums, int32_t zero) {
    const __m512i raised = _mm512_mullo_epi32(_mm512_loadu_si512(weight_sums), _mm512_set1_epi32(zero));
    const __m512i sum = _mm512_sub_epi32(_mm512_loadu_si512(sums), raised);
    return _mm512_maskz_cvtepi32_ps(V::kAll, sum);
  }
  [[gnu::always_inline]] static void prefetch(const void* p) { Vec::prefetch(p); }
  [[gnu::always_inline]] static void prefetch_l2(const void* p) { Vec::prefetch_l2(p); }
};

// Members as in dot_generic.h: codes are the unsigned factor.
struct NibbleDot : NibbleDotBase {
  static constexpr int kTileRows = 8;
  static constexpr int kSums = 16;
  static constexpr int kMostInputs = 0;

  static void begin(Part& part, const Sum& sum) { part = sum; }
  static void end(Sum& sum, const Part& part) { sum = part; }
  static void add(Part& part, const Codes& codes, const Inputs& inputs) {
    // In assembly, because gcc 12 copies sums back and forth around the intrinsic.
    __asm__("vpdpbusd %2, %1, %0" : "+v"(part) : "v"(codes.low), "v"(inputs.first));
    __asm__("vpdpbusd %2, %1, %0" : "+v"(part) : "v"(codes.high), "v"(inputs.second));
  }
};

}  // namespace transept::TRANSEPT_AVX512_LEVEL
