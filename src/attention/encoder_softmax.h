// The softmax of the encoder's attention of encoder_int8.h. In a step, a chunk of rows is multiplied with a tile of
// keys, and scores become probabilities. Included with TRANSEPT_AVX512_LEVEL set (ops/vec_avx512.h). P is the type that
// multiplies (encoder_rows.h).
//
// The bits of a row are fixed: sums of integer products are exact, and everything else is done for each row by itself,
// tile by tile. A tile's probabilities are rounded to 253 steps below the largest of that tile, so that a large score
// in another tile does not cost them precision. The divisor is the sum of the rounded probabilities.
#pragma once

#include <immintrin.h>

#include "attention/bias_kernel.h"
#include "attention/encoder_int8.h"
#include "ops/vec_avx512.h"
#include "ops/vec_math.h"

namespace transept::TRANSEPT_AVX512_LEVEL {

static constexpr int kLanes = Vec::kLanes, kVecs = kTileKeys / kLanes;
static constexpr float kSteps = 253;      // steps of a tile's largest probability; at most 255
static constexpr float kLowest = -1e38f;  // instead of -infinity, whose differences are NaN
static constexpr float kLog2E = 1.44269504f;
static constexpr __mmask16 kAll = Vec::kAll;

static inline __mmask16 first_lanes(int64_t n) {
  const int count = n < 0 ? 0 : n > kLanes ? kLanes : static_cast<int>(n);
  return static_cast<__mmask16>((1u << count) - 1);
}

// In assembly, because gcc 12 copies sums back and forth around the intrinsic.
static inline __m512i dot(__m512i sum, __m512i unsigned_bytes, __m512i signed_bytes) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(unsigned_bytes), "v"(signed_bytes));
  return sum;
}

static inline __m512 to_float(__m512i a) { return _mm512_maskz_cvtepi32_ps(kAll, a); }
static inline __m512i to_int(__m512 a) { return _mm512_maskz_cvtps_epi32(kAll, a); }

// ---- chunks and steps

// Rows that are multiplied with a tile together. Arrays of sixteen: the last entries are unused.
struct EncoderChunk {
  AttentionRow* rows;
  int count;         // of rows, at most kRows; q of the others is zero
  signed char* q;    // in P's layout
  float* sums;       // [count, sums_stride]
  float* totals;     // [kRows][16] sums of the probabilities, in sixteen parts
  float* max;        // [16] of the scores so far, before `scale`
  float* scale;      // [16] factors of scores
  int32_t* offsets;  // [kRows][kOffsets] minus the part of products that the 128 added to K makes
};

// A chunk and a tile.
struct EncoderStep {
  const EncoderChunk* chunk;
  const unsigned char* part;  // the tile
  int64_t first_key;
  int count;  // of keys
};

// Memory of one step.
template <class P>
struct EncoderWork {
  alignas(64) float scores[P::kRows * kTileKeys];
  alignas(64) float most[kLanes * kLanes];  // sixteen of each row, one of which is its largest score
  alignas(64) unsigned char probabilities[P::kRows * kTileKeys];
  alignas(64) float log2_scale[kLanes], shift[kLanes];       // from scores to exponents of 2
  alignas(64) float old_factor[kLanes], new_factor[kLanes];  // of earlier sums, and of this tile
  bool has_new_max;
  typename P::Sums sums;
};

// ---- scores

// Two neighbouring vectors of keys.
struct KeyPair {
  __m512 scale0, scale1;
  __mmask16 lanes0, lanes1;  // keys that exist

  KeyPair(const EncoderStep& step, int first) {
    const float* scales = reinterpret_cast<const float*>(step.part) + first * kLanes;
    scale0 = _mm512_loadu_ps(scales);
    scale1 = _mm512_loadu_ps(scales + kLanes);
    lanes0 = first_lanes(step.count - first * kLanes);
    lanes1 = first_lanes(step.count - (first + 1) * kLanes);
  }
};

// Stores the sums of a row as scores, in q's scale. Returns the larger of each two.
template <bool kWhole>
static inline __m512 store_scores(__m512i sums0, __m512i sums1, const KeyPair& keys, float* scores) {
  __m512 a = _mm512_mul_ps(to_float(sums0), keys.scale0), b = _mm512_mul_ps(to_float(sums1), keys.scale1);
  if (!kWhole) {
    a = _mm512_mask_blend_ps(keys.lanes0, _mm512_set1_ps(kLowest), a);
    b = _mm512_mask_blend_ps(keys.lanes1, _mm512_set1_ps(kLowest), b);
  }
  _mm512_store_ps(scores, a);
  _mm512_store_ps(scores + kLanes, b);
  return _mm512_maskz_max_ps(kAll, a, b);
}

// Sets scores to scale * scores + bias, and work.most to their largest. Only for rows with a bias.
template <class P>
static void add_bias(const EncoderStep& step, EncoderWork<P>& work) {
  const EncoderChunk& chunk = *step.chunk;
  const int count = step.count;
  for (int r = 0; r < chunk.count; ++r) {
    float* scores = work.scores + r * kTileKeys;
    const __m512 scale = _mm512_set1_ps(chunk.scale[r]);
    with_bias<Vec>(chunk.rows[r].bias, [&](auto&& finish) {
      __m512 most = _mm512_set1_ps(kLowest);
      for (int c = 0; c < count; c += kLanes) {
        __m512 s = finish(_mm512_load_ps(scores + c), scale, step.first_key + c, count - c);
        s = _mm512_mask_blend_ps(first_lanes(count - c), _mm512_set1_ps(kLowest), s);
        most = _mm512_maskz_max_ps(kAll, s, most);
        _mm512_store_ps(scores + c, s);
      }
      _mm512_store_ps(work.most + r * kLanes, most);
      return 0.0f;
    });
  }
}

static inline __m512 unpack_max(__m512 a, __m512 b) {
  return _mm512_maskz_max_ps(kAll, _mm512_maskz_unpacklo_ps(kAll, a, b), _mm512_maskz_unpackhi_ps(kAll, a, b));
}

// Returns the larger of the quarters that two selections name.
template <int kLow, int kHigh>
static inline __m512 fold_max(__m512 a, __m512 b) {
  return _mm512_maskz_max_ps(kAll, _mm512_maskz_shuffle_f32x4(kAll, a, b, kLow),
                             _mm512_maskz_shuffle_f32x4(kAll, a, b, kHigh));
}

// Returns the largest of each of sixteen rows of sixteen floats.
static inline __m512 largest_of_rows(const float* rows) {
  __m512 fours[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const float* at = rows + i * 4 * kLanes;
    const __m512d ab = _mm512_castps_pd(unpack_max(_mm512_load_ps(at), _mm512_load_ps(at + kLanes)));
    const __m512d cd = _mm512_castps_pd(unpack_max(_mm512_load_ps(at + 2 * kLanes), _mm512_load_ps(at + 3 * kLanes)));
    fours[i] = _mm512_maskz_max_ps(kAll, _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(0xFF, ab, cd)),
                                   _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(0xFF, ab, cd)));
  }
  return fold_max<0x88, 0xDD>(fold_max<0x44, 0xEE>(fours[0], fours[1]), fold_max<0x44, 0xEE>(fours[2], fours[3]));
}

// Finds the rows' new maxima, and the factors of the old sums and of the tile's under them.
template <class P>
static void update_max(const EncoderChunk& chunk, bool has_bias, EncoderWork<P>& work) {
  const __m512 scale = has_bias ? _mm512_set1_ps(1) : _mm512_load_ps(chunk.scale);
  const __m512 of_tile = _mm512_maskz_max_ps(kAll, largest_of_rows(work.most), _mm512_set1_ps(kLowest));
  const __m512 old_max = _mm512_load_ps(chunk.max);
  const __m512 new_max = _mm512_maskz_max_ps(kAll, of_tile, old_max);
  work.has_new_max = _mm512_cmp_ps_mask(new_max, old_max, _CMP_GT_OQ) != 0;
  _mm512_store_ps(chunk.max, new_max);
  _mm512_store_ps(work.old_factor, vec_exp<Vec>(_mm512_mul_ps(_mm512_sub_ps(old_max, new_max), scale)));
  _mm512_store_ps(work.new_factor, vec_exp<Vec>(_mm512_mul_ps(_mm512_sub_ps(of_tile, new_max), scale)));
  const __m512 log2_scale = _mm512_mul_ps(scale, _mm512_set1_ps(kLog2E));
  _mm512_store_ps(work.log2_scale, log2_scale);
  _mm512_store_ps(work.shift, _mm512_mul_ps(log2_scale, of_tile));
}

// ---- probabilities

// Returns 2^x in steps, x <= 0, relative error 1.3e-4.
static inline __m512 exp2_steps(__m512 x) {
  const __m512 part = _mm512_maskz_reduce_ps(kAll, x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  __m512 p = _mm512_set1_ps(0.079204f * kSteps);
  p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(0.224338f * kSteps));
  p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(0.696458f * kSteps));
  p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(kSteps * 0.999925f));
  return _mm512_maskz_scalef_ps(kAll, p, x);
}

// Returns the integers of four vectors as bytes: dword 4 l + c holds keys 16 c + 4 l to 16 c + 4 l + 3.
static inline __m512i pack_bytes(const __m512i (&a)[kVecs]) {
  return _mm512_maskz_packus_epi16(~__mmask64{0}, _mm512_maskz_packus_epi32(~__mmask32{0}, a[0], a[1]),
                                   _mm512_maskz_packus_epi32(~__mmask32{0}, a[2], a[3]));
}

// Turns scores into probabilities, and adds up the rounded ones, which are the weights of the values.
template <class P, bool kWhole>
static void update_softmax(const EncoderChunk& chunk, int count, EncoderWork<P>& work) {
#pragma GCC unroll 1
  for (int r = 0; r < chunk.count; ++r) {
    const __m512 scale = _mm512_set1_ps(work.log2_scale[r]), shift = _mm512_set1_ps(work.shift[r]);
    __m512i steps[kVecs];
#pragma GCC unroll 4
    for (int c = 0; c < kVecs; ++c) {
      steps[c] = _mm512_setzero_si512();
      if (!kWhole && c * kLanes >= count) continue;
      const __m512 x = _mm512_fmsub_ps(_mm512_load_ps(work.scores + r * kTileKeys + c * kLanes), scale, shift);
      steps[c] = _mm512_maskz_cvtps_epi32(kWhole ? kAll : first_lanes(count - c * kLanes), exp2_steps(x));
    }
    const __m512i bytes = pack_bytes(steps);
    _mm512_store_si512(work.probabilities + r * kTileKeys, bytes);
    const __m512 total = to_float(dot(_mm512_setzero_si512(), bytes, _mm512_set1_epi8(1)));
    float* totals = chunk.totals + r * kLanes;
    const __m512 old_total = _mm512_mul_ps(_mm512_load_ps(totals), _mm512_set1_ps(work.old_factor[r]));
    _mm512_store_ps(totals, _mm512_fmadd_ps(total, _mm512_set1_ps(work.new_factor[r]), old_total));
  }
}

}  // namespace transept::TRANSEPT_AVX512_LEVEL
