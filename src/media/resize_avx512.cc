#include <immintrin.h>

#include "media/resize_kernel.h"

namespace transept::avx512 {
namespace {

struct ResizeLevel {
  static constexpr int kTaps = 8;
  static constexpr int kBytes = 64;

  using Reg = __m512i;

  static Reg load_pixels(const uint8_t* p) {
    // 6 words of 4 bytes hold 8 pixels. Part i has pixels 2 i and 2 i + 1, bytes 6 i to 6 i + 5: of two neighbouring
    // words.
    const __m512i words = _mm512_maskz_loadu_epi32(0x3F, p);
    const __m512i places = _mm512_setr_epi32(0, 1, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 4, 5, 0, 0);
    const __m512i parts = _mm512_maskz_permutexvar_epi32(0xFFFF, places, words);
    const __m256i bytes = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,  //
                                           2, -1, 5, -1, 3, -1, 6, -1, 4, -1, 7, -1, -1, -1, -1, -1);
    return _mm512_shuffle_epi8(parts, _mm512_maskz_broadcast_i64x4(0xFF, bytes));
  }
  static Reg load_weights(const int16_t* w) {
    const __m128i eight = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w));
    const __m512i places = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    return _mm512_maskz_permutexvar_epi32(0xFFFF, places, _mm512_castsi128_si512(eight));
  }
  static uint32_t fold(Reg a) {
    const __m256i two =
        _mm256_add_epi32(_mm512_maskz_extracti64x4_epi64(0xF, a, 0), _mm512_maskz_extracti64x4_epi64(0xF, a, 1));
    const __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
    const __m128i half = _mm_set1_epi32(1 << (kResizeWeightBits - 1));
    const __m128i words = _mm_packs_epi32(_mm_srai_epi32(_mm_add_epi32(sum, half), kResizeWeightBits), sum);
    return static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_packus_epi16(words, words)));
  }

  static Reg zero() { return _mm512_setzero_si512(); }
  static Reg load(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static void store(uint8_t* p, Reg a) { _mm512_storeu_si512(p, a); }
  static Reg set1(const int16_t* two) {
    int32_t pair;
    memcpy(&pair, two, sizeof pair);
    return _mm512_set1_epi32(pair);
  }
  static Reg add(Reg a, Reg b) { return _mm512_add_epi32(a, b); }
  static Reg shift_left(Reg a) { return _mm512_maskz_slli_epi32(0xFFFF, a, kResizeLowBits); }
  static Reg madd(Reg a, Reg b) { return _mm512_madd_epi16(a, b); }
  static Reg unpack_low(Reg a, Reg b) { return _mm512_unpacklo_epi8(a, b); }
  static Reg unpack_high(Reg a, Reg b) { return _mm512_unpackhi_epi8(a, b); }
  static Reg round(Reg a) {
    const Reg half = _mm512_set1_epi32(1 << (kResizeWeightBits - 1));
    return _mm512_maskz_srai_epi32(0xFFFF, _mm512_add_epi32(a, half), kResizeWeightBits);
  }
  static Reg pack(const Reg* a) {
    return _mm512_packus_epi16(_mm512_packs_epi32(a[0], a[1]), _mm512_packs_epi32(a[2], a[3]));
  }
};

}  // namespace

const ResizeKernels kResizeKernels = {ResizeKernel<ResizeLevel>::horizontal, ResizeKernel<ResizeLevel>::vertical};

}  // namespace transept::avx512
