#include <immintrin.h>

#include "media/resize_kernel.h"

namespace transept::avx2 {
namespace {

struct ResizeLevel {
  static constexpr int kTaps = 4;
  static constexpr int kBytes = 32;

  using Reg = __m256i;

  static Reg load_pixels(const uint8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));  // 12 count
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes),
                               _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,  //
                                                6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1));
  }
  static Reg load_weights(const int16_t* w) {
    int64_t four;
    memcpy(&four, w, sizeof four);
    return _mm256_shuffle_epi8(_mm256_set1_epi64x(four),
                               _mm256_setr_epi8(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3,  //
                                                4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7));
  }
  static uint32_t fold(Reg a) {
    const __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    const __m128i half = _mm_set1_epi32(1 << (kResizeWeightBits - 1));
    const __m128i words = _mm_packs_epi32(_mm_srai_epi32(_mm_add_epi32(sum, half), kResizeWeightBits), sum);
    return static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_packus_epi16(words, words)));
  }

  static Reg zero() { return _mm256_setzero_si256(); }
  static Reg load(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static void store(uint8_t* p, Reg a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a); }
  static Reg set1(const int16_t* two) {
    int32_t pair;
    memcpy(&pair, two, sizeof pair);
    return _mm256_set1_epi32(pair);
  }
  static Reg add(Reg a, Reg b) { return _mm256_add_epi32(a, b); }
  static Reg shift_left(Reg a) { return _mm256_slli_epi32(a, kResizeLowBits); }
  static Reg madd(Reg a, Reg b) { return _mm256_madd_epi16(a, b); }
  static Reg unpack_low(Reg a, Reg b) { return _mm256_unpacklo_epi8(a, b); }
  static Reg unpack_high(Reg a, Reg b) { return _mm256_unpackhi_epi8(a, b); }
  static Reg round(Reg a) {
    return _mm256_srai_epi32(_mm256_add_epi32(a, _mm256_set1_epi32(1 << (kResizeWeightBits - 1))), kResizeWeightBits);
  }
  static Reg pack(const Reg* a) {
    return _mm256_packus_epi16(_mm256_packs_epi32(a[0], a[1]), _mm256_packs_epi32(a[2], a[3]));
  }
};

}  // namespace

const ResizeKernels kResizeKernels = {ResizeKernel<ResizeLevel>::horizontal, ResizeKernel<ResizeLevel>::vertical};

}  // namespace transept::avx2
