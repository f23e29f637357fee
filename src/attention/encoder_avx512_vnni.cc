// The encoder's attention of encoder_int8.h: twelve rows of q beside one tile of keys at a time.
//
// What fixes the bits of a row: sums of integer products are exact, and everything else is done for each row by itself,
// tile by tile. A tile's probabilities are rounded to 253 steps below the largest of that tile, so that no key far away
// takes the others' precision; the sum that they are divided by is of the same rounded ones.
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "attention/bias_kernel.h"
#include "attention/encoder_int8.h"
#include "attention/kv_vec_avx512_vnni.h"
#include "ops/transpose.h"
#include "ops/vec_math.h"

namespace transept::avx512_vnni {
namespace {

constexpr int kRows = kEncoderChunkRows, kLanes = 16, kVecs = kTileKeys / kLanes, kQuads = kTileKeys / 4;
constexpr float kSteps = 253;      // of a tile's largest probability; at most 255
constexpr float kLowest = -1e38f;  // stands for -infinity, whose differences are no numbers
constexpr float kLog2E = 1.44269504f;
constexpr int64_t kChunkBytes = (kRows + 4) * 64;  // of a chunk's floats
constexpr __mmask16 kAll = 0xFFFF;

__mmask16 first_lanes(int64_t n) {
  const int count = n < 0 ? 0 : n > kLanes ? kLanes : static_cast<int>(n);
  return static_cast<__mmask16>((1u << count) - 1);
}

// Spelled out: around the intrinsic gcc 12 copies sums to and fro.
__m512i dot(__m512i sum, __m512i unsigned_bytes, __m512i signed_bytes) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(unsigned_bytes), "v"(signed_bytes));
  return sum;
}

__m512i broadcast_four(const void* p) {
  int32_t four;
  memcpy(&four, p, sizeof four);
  return _mm512_set1_epi32(four);
}

__m512 to_float(__m512i a) { return _mm512_maskz_cvtepi32_ps(kAll, a); }
__m512i to_int(__m512 a) { return _mm512_maskz_cvtps_epi32(kAll, a); }

// ---- tiles

// What is learnt of floats on the way: the largest magnitudes, and NaN where one was not finite.
struct Range {
  __m512 most = _mm512_setzero_ps();
  __m512 strange = _mm512_setzero_ps();

  void add(__m512 a) {
    most = _mm512_maskz_max_ps(kAll, most, _mm512_abs_ps(a));
    strange = _mm512_fmadd_ps(a, _mm512_setzero_ps(), strange);  // infinity x 0 is NaN
  }
};

Range range_of(const float* x, int64_t n) {
  Range range;
  for (int64_t i = 0; i < n; i += kLanes) range.add(_mm512_maskz_loadu_ps(first_lanes(n - i), x + i));
  return range;
}

// K: 127 steps on either side of 0, with 128 added. Returns 0, or NaN if something is not finite.
float write_keys(const KvWrite& write, const EncoderTile& tile) {
  auto* scales = reinterpret_cast<float*>(write.part);
  const int64_t dim = write.head_dim, fours = (dim + 3) / 4;
  // [kTileKeys][16-fold of dimensions]; the transposition moves four of them at a time.
  alignas(64) float integers[kTileKeys * kMaxHeadDim / 4];
  const int64_t stride = (dim + 15) / 16 * 4;
  float strange = 0;
  for (int64_t j = 0; j < kTileKeys; ++j) {
    const float* k = write.k + j * write.k_stride;
    const int64_t count = j < write.num_rows ? dim : 0;
    const Range range = range_of(k, count);
    strange += KvVec::reduce_add(range.strange);
    const float scale = KvVec::reduce_max(range.most) / kMaxInt8;
    const bool counts = scale >= kLeastScale;
    scales[j] = counts ? scale : 0.0f;
    const __m512 inverse = _mm512_set1_ps(counts ? 1 / scale : 0.0f);
    for (int64_t d = 0; d < dim; d += kLanes) {
      const __m512i a = to_int(_mm512_mul_ps(_mm512_maskz_loadu_ps(first_lanes(count - d), k + d), inverse));
      const __m128i raised = _mm512_maskz_cvtepi32_epi8(kAll, _mm512_add_epi32(a, _mm512_set1_epi32(128)));
      _mm_store_si128(reinterpret_cast<__m128i*>(integers + j * stride + d / 4), raised);
    }
  }
  transpose(integers, stride, kTileKeys, fours, reinterpret_cast<float*>(write.part + tile.k), kTileKeys);
  return strange;
}

// V of sixteen dimensions from d on.
float write_values(const KvWrite& write, const EncoderTile& tile, int64_t d) {
  const int64_t width = (write.head_dim + 15) / 16 * 16, stride = write.v_stride;
  const __mmask16 lanes = first_lanes(write.head_dim - d);
  const float* v = write.v + d;
  Range range;
  for (int64_t j = 0; j < write.num_rows; ++j) range.add(_mm512_maskz_loadu_ps(lanes, v + j * stride));
  const __m512 scale = _mm512_mul_ps(range.most, _mm512_set1_ps(1 / kMaxInt8));
  const __mmask16 counts = _mm512_cmp_ps_mask(scale, _mm512_set1_ps(kLeastScale), _CMP_GE_OQ);
  _mm512_storeu_ps(reinterpret_cast<float*>(write.part + tile.v_scales) + d, _mm512_maskz_mov_ps(counts, scale));
  const __m512 inverse = _mm512_maskz_div_ps(counts, _mm512_set1_ps(1), scale);
  for (int64_t quad = 0; quad < kQuads; ++quad) {
    __m512i bytes[4];
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t j = quad * 4 + i;
      const __m512 a = _mm512_maskz_loadu_ps(j < write.num_rows ? lanes : __mmask16{0}, v + j * stride);
      bytes[i] = _mm512_and_si512(to_int(_mm512_mul_ps(a, inverse)), _mm512_set1_epi32(255));
    }
    const __m512i low = _mm512_or_si512(bytes[0], _mm512_maskz_slli_epi32(kAll, bytes[1], 8));
    const __m512i high = _mm512_or_si512(bytes[2], _mm512_maskz_slli_epi32(kAll, bytes[3], 8));
    _mm512_storeu_si512(write.part + tile.v + (quad * width + d) * 4,
                        _mm512_or_si512(low, _mm512_maskz_slli_epi32(kAll, high, 16)));
  }
  return KvVec::reduce_add(range.strange);
}

// ---- rows

// Rows that meet a tile together. Arrays of sixteen: the last four belong to nobody.
struct Chunk {
  AttentionRow* rows;
  int count;        // of them, at most kRows; the others are zeros
  signed char* q;   // [depth / 4][kRows][4]
  float* sums;      // [count, sums_stride]
  float* totals;    // [kRows][16] what the probabilities come to, in sixteen parts
  float* max;       // [16] of what scores were, before `scale`
  float* scale;     // [16] what scores are multiplied with
  int32_t* offset;  // [16] what the 128 that K has added amounts to
};

// What is between a chunk and a tile.
struct Work {
  alignas(64) float scores[kRows * kTileKeys];
  alignas(64) float most[kLanes * kLanes];  // of each row sixteen, one of which is its largest score
  alignas(64) unsigned char probabilities[kRows * kTileKeys];
  alignas(64) float log2_scale[kLanes], shift[kLanes];       // scores to exponents of 2
  alignas(64) float old_factor[kLanes], new_factor[kLanes];  // of what was summed before, and of this tile
  bool has_new_max;
};

// Row r of q as bytes, 127 steps on either side of 0; zeros where there is none.
void prepare_row(const AttentionTask& task, const Chunk& chunk, int r) {
  const float* q = r < chunk.count ? chunk.rows[r].q : nullptr;
  const int64_t dim = task.head_dim, count = q != nullptr ? dim : 0;
  const Range range = range_of(q, count);
  const float scale = KvVec::reduce_max(range.most) / kMaxInt8, strange = KvVec::reduce_add(range.strange);
  const bool counts = scale >= kLeastScale && strange == 0;
  const __m512 inverse = _mm512_set1_ps(counts ? 1 / scale : 0.0f);
  __m512i sum = _mm512_setzero_si512();
  for (int64_t d = 0; d < dim; d += kLanes) {
    const __mmask16 lanes = first_lanes(counts ? count - d : 0);
    const __m512i a = to_int(_mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, q + d), inverse));
    sum = _mm512_add_epi32(sum, a);
    signed char bytes[kLanes];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes), _mm512_maskz_cvtepi32_epi8(kAll, a));
    for (int64_t g = 0; g < 4 && d + g * 4 < dim; ++g) {
      memcpy(chunk.q + ((d / 4 + g) * kRows + r) * 4, bytes + g * 4, 4);
    }
  }
  chunk.offset[r] = -128 * static_cast<int32_t>(KvVec::reduce_add(to_float(sum)));  // exact: below 2^24
  chunk.scale[r] = (counts ? scale : 0.0f) * task.scale + strange;
}

void prepare_chunk(const AttentionTask& task, const Chunk& chunk) {
  for (int r = 0; r < kRows; ++r) prepare_row(task, chunk, r);
  for (int r = 0; r < kLanes; ++r) chunk.max[r] = kLowest;
  for (int r = kRows; r < kLanes; ++r) chunk.scale[r] = 0;
  memset(chunk.totals, 0, kRows * kLanes * sizeof(float));
  memset(chunk.sums, 0, static_cast<size_t>(chunk.count * task.sums_stride) * sizeof(float));
}

// Sums of a tile's vectors to scores, in q's scale, and the largest of each row so far. kWhole: the tile is full.
template <bool kWhole>
void store_scores(const __m512i (&sums)[kRows][2], const float* k_scales, int first, int count, Work& work) {
  const __m512 scale0 = _mm512_loadu_ps(k_scales), scale1 = _mm512_loadu_ps(k_scales + kLanes);
  const __mmask16 lanes0 = first_lanes(count - first * kLanes), lanes1 = first_lanes(count - (first + 1) * kLanes);
  const __m512 lowest = _mm512_set1_ps(kLowest);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    __m512 a = _mm512_mul_ps(to_float(sums[r][0]), scale0), b = _mm512_mul_ps(to_float(sums[r][1]), scale1);
    if (!kWhole) {
      a = _mm512_mask_blend_ps(lanes0, lowest, a);
      b = _mm512_mask_blend_ps(lanes1, lowest, b);
    }
    float* scores = work.scores + r * kTileKeys + first * kLanes;
    _mm512_store_ps(scores, a);
    _mm512_store_ps(scores + kLanes, b);
    __m512 most = _mm512_maskz_max_ps(kAll, a, b);
    if (first > 0) most = _mm512_maskz_max_ps(kAll, most, _mm512_load_ps(work.most + r * kLanes));
    _mm512_store_ps(work.most + r * kLanes, most);
  }
}

// Scores of the tile's vectors [first, first + 2).
template <bool kWhole>
inline void score_keys(const AttentionTask& task, const Chunk& chunk, const unsigned char* part,
                       const EncoderTile& tile, int first, int count, Work& work) {
  __m512i acc[kRows][2];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) acc[r][0] = acc[r][1] = _mm512_set1_epi32(chunk.offset[r]);
  const signed char* q = chunk.q;
  const unsigned char* k = part + tile.k + first * kLanes * 4;
  for (int g = 0; g < (task.head_dim + 3) / 4; ++g, k += kTileKeys * 4, q += kRows * 4) {
    const __m512i k0 = _mm512_loadu_si512(k), k1 = _mm512_loadu_si512(k + 64);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const __m512i a = broadcast_four(q + 4 * r);
      acc[r][0] = dot(acc[r][0], k0, a);
      acc[r][1] = dot(acc[r][1], k1, a);
    }
  }
  store_scores<kWhole>(acc, reinterpret_cast<const float*>(part) + first * kLanes, first, count, work);
}

// scale * scores + bias, where a bias is.
void add_bias(const Chunk& chunk, int64_t first_key, int count, Work& work) {
  for (int r = 0; r < chunk.count; ++r) {
    float* scores = work.scores + r * kTileKeys;
    const __m512 scale = _mm512_set1_ps(chunk.scale[r]);
    with_bias<KvVec>(chunk.rows[r].bias, [&](auto&& finish) {
      __m512 most = _mm512_set1_ps(kLowest);
      for (int c = 0; c < count; c += kLanes) {
        __m512 s = finish(_mm512_load_ps(scores + c), scale, first_key + c, count - c);
        s = _mm512_mask_blend_ps(first_lanes(count - c), _mm512_set1_ps(kLowest), s);
        most = _mm512_maskz_max_ps(kAll, s, most);
        _mm512_store_ps(scores + c, s);
      }
      _mm512_store_ps(work.most + r * kLanes, most);
      return 0.0f;
    });
  }
}

__m512 unpack_max(__m512 a, __m512 b) {
  return _mm512_maskz_max_ps(kAll, _mm512_maskz_unpacklo_ps(kAll, a, b), _mm512_maskz_unpackhi_ps(kAll, a, b));
}

// Of quarters that two selections name, the larger.
template <int kLow, int kHigh>
__m512 fold_max(__m512 a, __m512 b) {
  return _mm512_maskz_max_ps(kAll, _mm512_maskz_shuffle_f32x4(kAll, a, b, kLow),
                             _mm512_maskz_shuffle_f32x4(kAll, a, b, kHigh));
}

// The largest of each of sixteen rows of sixteen floats.
__m512 largest_of_rows(const float* rows) {
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

// The rows' new maxima, and what the old sums and the tile's count for under them.
void update_max(const Chunk& chunk, bool has_bias, Work& work) {
  const __m512 scale = has_bias ? _mm512_set1_ps(1) : _mm512_load_ps(chunk.scale);
  const __m512 of_tile = _mm512_maskz_max_ps(kAll, largest_of_rows(work.most), _mm512_set1_ps(kLowest));
  const __m512 old_max = _mm512_load_ps(chunk.max);
  const __m512 new_max = _mm512_maskz_max_ps(kAll, of_tile, old_max);
  work.has_new_max = _mm512_cmp_ps_mask(new_max, old_max, _CMP_GT_OQ) != 0;
  _mm512_store_ps(chunk.max, new_max);
  _mm512_store_ps(work.old_factor, vec_exp<KvVec>(_mm512_mul_ps(_mm512_sub_ps(old_max, new_max), scale)));
  _mm512_store_ps(work.new_factor, vec_exp<KvVec>(_mm512_mul_ps(_mm512_sub_ps(of_tile, new_max), scale)));
  const __m512 log2_scale = _mm512_mul_ps(scale, _mm512_set1_ps(kLog2E));
  _mm512_store_ps(work.log2_scale, log2_scale);
  _mm512_store_ps(work.shift, _mm512_mul_ps(log2_scale, of_tile));
}

// 2^x in steps, x <= 0, relative error 1e-4.
__m512 exp2_steps(__m512 x) {
  const __m512 part = _mm512_maskz_reduce_ps(kAll, x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  __m512 p = _mm512_set1_ps(0.079204f * kSteps);
  p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(0.224338f * kSteps));
  p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(0.696458f * kSteps));
  p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(kSteps * 0.999925f));
  return _mm512_maskz_scalef_ps(kAll, p, x);
}

// Integers of four vectors as bytes: dword 4 l + c holds keys 16 c + 4 l to 16 c + 4 l + 3.
__m512i pack_bytes(const __m512i (&a)[kVecs]) {
  return _mm512_maskz_packus_epi16(~__mmask64{0}, _mm512_maskz_packus_epi32(~__mmask32{0}, a[0], a[1]),
                                   _mm512_maskz_packus_epi32(~__mmask32{0}, a[2], a[3]));
}

// Scores to probabilities, and what they come to: the rounded ones, as they count for the values.
template <bool kWhole>
void update_softmax(const Chunk& chunk, int count, Work& work) {
#pragma GCC unroll 1
  for (int r = 0; r < kRows; ++r) {
    const __m512 scale = _mm512_set1_ps(work.log2_scale[r]), shift = _mm512_set1_ps(work.shift[r]);
    __m512i steps[kVecs];
#pragma GCC unroll 4
    for (int c = 0; c < kVecs; ++c) {
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

// Sums of probabilities times values to the rows' own, under their new maxima.
template <int kCols, bool kNewMax>
inline void store_values(const AttentionTask& task, const Chunk& chunk, const __m512i (&acc)[kRows][kCols],
                         const float* v_scales, int d, const Work& work) {
  __m512 scale[kCols];
#pragma GCC unroll 2
  for (int c = 0; c < kCols; ++c) scale[c] = _mm512_loadu_ps(v_scales + c * kLanes);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    if (r >= chunk.count) break;
    const __m512 factor = _mm512_set1_ps(work.new_factor[r]);
#pragma GCC unroll 2
    for (int c = 0; c < kCols; ++c) {
      float* sums = chunk.sums + r * task.sums_stride + d + c * kLanes;
      __m512 old_sums = _mm512_loadu_ps(sums);
      if (kNewMax) old_sums = _mm512_mul_ps(old_sums, _mm512_set1_ps(work.old_factor[r]));
      _mm512_storeu_ps(sums, _mm512_fmadd_ps(to_float(acc[r][c]), _mm512_mul_ps(scale[c], factor), old_sums));
    }
  }
}

// kCols vectors of dimensions from d on.
template <int kCols, bool kNewMax>
void add_values(const AttentionTask& task, const Chunk& chunk, const unsigned char* part, const EncoderTile& tile,
                int d, const Work& work) {
  const int64_t quad_bytes = task.sums_stride * 4;
  __m512i acc[kRows][kCols];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int c = 0; c < kCols; ++c) acc[r][c] = _mm512_setzero_si512();
  }
  const unsigned char* p = work.probabilities;
  for (int l = 0; l < 4; ++l) {  // in the order of pack_bytes
    const unsigned char* v = part + tile.v + d * 4 + l * quad_bytes;
    for (int i = 0; i < kVecs; ++i, v += 4 * quad_bytes, p += 4) {
      __m512i b[kCols];
#pragma GCC unroll 2
      for (int c = 0; c < kCols; ++c) b[c] = _mm512_loadu_si512(v + c * 64);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const __m512i a = broadcast_four(p + r * kTileKeys);
#pragma GCC unroll 2
        for (int c = 0; c < kCols; ++c) acc[r][c] = dot(acc[r][c], a, b[c]);
      }
    }
  }
  store_values<kCols, kNewMax>(task, chunk, acc, reinterpret_cast<const float*>(part + tile.v_scales) + d, d, work);
}

template <bool kNewMax>
void add_all_values(const AttentionTask& task, const Chunk& chunk, const unsigned char* part, const EncoderTile& tile,
                    const Work& work) {
  const int width = static_cast<int>(task.sums_stride);
  int d = 0;
  for (; d + 2 * kLanes <= width; d += 2 * kLanes) add_values<2, kNewMax>(task, chunk, part, tile, d, work);
  if (d < width) add_values<1, kNewMax>(task, chunk, part, tile, d, work);
}

template <bool kWhole>
void attend_tile(const AttentionTask& task, const Chunk& chunk, const unsigned char* part, const EncoderTile& tile,
                 int64_t first_key, int count, Work& work) {
  for (int first = 0; first < kVecs; first += 2) score_keys<kWhole>(task, chunk, part, tile, first, count, work);
  const bool has_bias = chunk.rows[0].bias.kind != BiasKind::kNone;
  if (has_bias) add_bias(chunk, first_key, count, work);
  update_max(chunk, has_bias, work);
  update_softmax<kWhole>(chunk, count, work);
  if (work.has_new_max) {
    add_all_values<true>(task, chunk, part, tile, work);
  } else {
    add_all_values<false>(task, chunk, part, tile, work);
  }
}

void finish_rows(const AttentionTask& task, const Chunk& chunk) {
  for (int r = 0; r < chunk.count; ++r) {
    const float total = KvVec::reduce_add(_mm512_load_ps(chunk.totals + r * kLanes));
    const __m512 divisor = _mm512_set1_ps(total == 0 ? 1.0f : total);  // 0: no keys, and sums are 0
    const float* sums = chunk.sums + r * task.sums_stride;
    for (int d = 0; d < task.head_dim; d += kLanes) {
      _mm512_mask_storeu_ps(chunk.rows[r].out + d, first_lanes(task.head_dim - d),
                            _mm512_div_ps(_mm512_loadu_ps(sums + d), divisor));
    }
  }
}

constexpr int kMostChunks = kEncoderItemRows / kRows;

// Divides a task's memory among its chunks; returns their number.
int make_chunks(const AttentionTask& task, Chunk (&chunks)[kMostChunks]) {
  const int64_t q_bytes = encoder_room(kRows, task.head_dim) - kChunkBytes;
  auto* room = static_cast<unsigned char*>(task.words);
  int num_chunks = 0;
  for (int64_t row = 0; row < task.num_rows; row += kRows) {
    Chunk& chunk = chunks[num_chunks++];
    chunk.rows = task.rows + row;
    chunk.count = static_cast<int>(task.num_rows - row < kRows ? task.num_rows - row : kRows);
    chunk.sums = task.sums + row * task.sums_stride;
    chunk.totals = reinterpret_cast<float*>(room);
    chunk.max = chunk.totals + kRows * kLanes;
    chunk.scale = chunk.max + kLanes;
    chunk.offset = reinterpret_cast<int32_t*>(chunk.scale + kLanes);
    chunk.q = reinterpret_cast<signed char*>(room + kChunkBytes);
    room += kChunkBytes + q_bytes;
    prepare_chunk(task, chunk);
  }
  return num_chunks;
}

// At most kEncoderItemRows rows.
void attend_item(const AttentionTask& task) {
  const EncoderTile tile = encoder_tile(task.head_dim);
  Chunk chunks[kMostChunks];
  const int num_chunks = make_chunks(task, chunks);
  Work work;
  memset(work.most, 0, sizeof work.most);
  for (int64_t first = 0; first < task.num_keys; first += kTileKeys) {
    const unsigned char* part = task.cache + task.blocks[first / kTileKeys] * task.block_stride;
    const int64_t left = task.num_keys - first;
    for (int i = 0; i < num_chunks; ++i) {
      if (left >= kTileKeys) {
        attend_tile<true>(task, chunks[i], part, tile, first, kTileKeys, work);
      } else {
        attend_tile<false>(task, chunks[i], part, tile, first, static_cast<int>(left), work);
      }
    }
  }
  for (int i = 0; i < num_chunks; ++i) finish_rows(task, chunks[i]);
}

}  // namespace

void write_encoder_tile(const KvWrite& write) {
  const EncoderTile tile = encoder_tile(write.head_dim);
  float strange = write_keys(write, tile);
  for (int64_t d = 0; d < write.head_dim; d += kLanes) strange += write_values(write, tile, d);
  if (strange == 0) return;
  auto* scales = reinterpret_cast<float*>(write.part + tile.v_scales);
  for (int64_t d = 0; d < write.head_dim; ++d) scales[d] = NAN;
}

void attend_encoder(const AttentionTask& task) {
  AttentionTask some = task;  // several heads may share the keys
  for (int64_t row = 0; row < task.num_rows; row += kEncoderItemRows) {
    const int64_t left = task.num_rows - row;
    some.rows = task.rows + row;
    some.num_rows = left < kEncoderItemRows ? left : kEncoderItemRows;
    attend_item(some);
  }
}

}  // namespace transept::avx512_vnni
