// The encoder's attention of encoder_int8.h with VNNI, twelve rows of q beside one tile of keys at a time; and how keys
// and values become tiles, for every level.
#define TRANSEPT_AVX512_LEVEL avx512_vnni
#include <math.h>

#include "attention/encoder_rows.h"
#include "ops/transpose.h"

namespace transept::avx512_vnni {
namespace {

constexpr int kQuads = kTileKeys / 4;

// ---- tiles

// K: 127 steps on either side of 0, with 128 added. Returns 0, or NaN if something is not finite.
float write_keys(const KvWrite& write, const EncoderTile& tile) {
  auto* scales = reinterpret_cast<float*>(write.part);
  const int64_t dim = write.head_dim, fours = (dim + 3) / 4;
  // [kTileKeys][16-fold of dimensions]; the transposition moves four of them at a time.
  alignas(64) float integers[kTileKeys * kMaxHeadDim / 4];
  const int64_t stride = (dim + 15) / 16 * 4;
  float strange = 0;
  for (int64_t j = 0; j < write.num_rows; ++j) {
    const float* k = write.k + j * write.k_stride;
    const Range range = range_of(k, dim);
    strange += Vec::reduce_add(range.strange);
    const float scale = Vec::reduce_max(range.most) / kMaxInt8;
    const bool counts = scale >= kLeastScale;
    scales[j] = counts ? scale : 0.0f;
    const __m512 inverse = _mm512_set1_ps(counts ? 1 / scale : 0.0f);
    for (int64_t d = 0; d < dim; d += kLanes) {
      const __m512i a = to_int(_mm512_mul_ps(_mm512_maskz_loadu_ps(first_lanes(dim - d), k + d), inverse));
      const __m128i raised = _mm512_maskz_cvtepi32_epi8(kAll, _mm512_add_epi32(a, _mm512_set1_epi32(128)));
      _mm_store_si128(reinterpret_cast<__m128i*>(integers + j * stride + d / 4), raised);
    }
  }
  const auto missing = static_cast<size_t>(kTileKeys - write.num_rows);
  memset(scales + write.num_rows, 0, missing * sizeof(float));
  memset(integers + write.num_rows * stride, 128, missing * static_cast<size_t>(stride) * sizeof(float));
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
      bytes[i] = _mm512_setzero_si512();
      if (j >= write.num_rows) continue;
      const __m512 a = _mm512_maskz_loadu_ps(lanes, v + j * stride);
      bytes[i] = _mm512_and_si512(to_int(_mm512_mul_ps(a, inverse)), _mm512_set1_epi32(255));
    }
    const __m512i low = _mm512_or_si512(bytes[0], _mm512_maskz_slli_epi32(kAll, bytes[1], 8));
    const __m512i high = _mm512_or_si512(bytes[2], _mm512_maskz_slli_epi32(kAll, bytes[3], 8));
    const int64_t row = quad % 4 * 4 + quad / 4;  // encoder_int8.h
    _mm512_storeu_si512(write.part + tile.v + (row * width + d) * 4,
                        _mm512_or_si512(low, _mm512_maskz_slli_epi32(kAll, high, 16)));
  }
  return Vec::reduce_add(range.strange);
}

// ---- products

__m512i broadcast_four(const void* p) {
  int32_t four;
  memcpy(&four, p, sizeof four);
  return _mm512_set1_epi32(four);
}

class VnniProducts {
 public:
  static constexpr int kRows = kEncoderVectorRows, kOffsets = 1, kLate = 0;
  struct Sums {};
  typedef EncoderWork<VnniProducts> Work;

  explicit VnniProducts(const AttentionTask& task)
      : task_(task), tile_(encoder_tile(task.head_dim)), width_(static_cast<int>(task.sums_stride)) {}

  // q: [depth / 4][kRows][4].
  static int64_t query_end(int64_t head_dim) { return head_dim; }
  static void put_query(signed char* q, int row, int64_t d, int64_t head_dim, __m128i bytes) {
    signed char four[4][4];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(four), bytes);
    for (int64_t g = 0; g < 4 && d + g * 4 < head_dim; ++g) memcpy(q + ((d / 4 + g) * kRows + row) * 4, four[g], 4);
  }

  void start_scores(const EncoderStep& /*step*/, Work& /*work*/) const {}
  template <bool kWhole>
  void scores(const EncoderStep& step, Work& work) const {
    for (int first = 0; first * kLanes < step.count; first += 2) score_keys<kWhole>(step, first, work);
  }
  void start_values(const EncoderStep& /*step*/, Work& /*work*/) const {}
  template <bool kNewMax>
  void values(const EncoderStep& step, const Work& work) const {
    // A short input fills half a tile.
    if (step.count <= kTileKeys / 2) {
      add_all_dimensions<kNewMax, kVecs / 2>(step, work);
    } else {
      add_all_dimensions<kNewMax, kVecs>(step, work);
    }
  }

 private:
  // Scores of the tile's vectors [first, first + 2).
  template <bool kWhole>
  inline void score_keys(const EncoderStep& step, int first, Work& work) const {
    __m512i acc[kRows][2];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) acc[r][0] = acc[r][1] = _mm512_set1_epi32(step.chunk->offsets[r]);
    const signed char* q = step.chunk->q;
    const unsigned char* k = step.part + tile_.k + first * kLanes * 4;
    for (int g = 0; g < (task_.head_dim + 3) / 4; ++g, k += kTileKeys * 4, q += kRows * 4) {
      const __m512i k0 = _mm512_loadu_si512(k), k1 = _mm512_loadu_si512(k + 64);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const __m512i a = broadcast_four(q + 4 * r);
        acc[r][0] = dot(acc[r][0], k0, a);
        acc[r][1] = dot(acc[r][1], k1, a);
      }
    }
    const KeyPair keys(step, first);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      float* to = work.scores + r * kTileKeys + first * kLanes;
      __m512 most = store_scores<kWhole>(acc[r][0], acc[r][1], keys, to);
      if (first > 0) most = _mm512_maskz_max_ps(kAll, most, _mm512_load_ps(work.most + r * kLanes));
      _mm512_store_ps(work.most + r * kLanes, most);
    }
  }

  template <bool kNewMax, int kKeyVecs>
  void add_all_dimensions(const EncoderStep& step, const Work& work) const {
    int d = 0;
    for (; d + 2 * kLanes <= width_; d += 2 * kLanes) add_dimensions<2, kNewMax, kKeyVecs>(step, d, work);
    if (d < width_) add_dimensions<1, kNewMax, kKeyVecs>(step, d, work);
  }

  // kCols vectors of dimensions from d on, of the values of the first kKeyVecs vectors of keys.
  template <int kCols, bool kNewMax, int kKeyVecs>
  void add_dimensions(const EncoderStep& step, int d, const Work& work) const {
    __m512i acc[kRows][kCols];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int c = 0; c < kCols; ++c) acc[r][c] = _mm512_setzero_si512();
    }
    const int64_t quad_bytes = int64_t{width_} * 4;
    const unsigned char* p = work.probabilities;
    const unsigned char* v = step.part + tile_.v + d * 4;
    for (int quad = 0; quad < kQuads; quad += 4) {
#pragma GCC unroll 4
      for (int i = 0; i < kVecs; ++i, v += quad_bytes, p += 4) {  // one at a time gcc 12 moves sums to and fro
        if (i >= kKeyVecs) continue;
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
    store_dimensions<kCols, kNewMax>(step, acc, d, work);
  }

  template <int kCols, bool kNewMax>
  inline void store_dimensions(const EncoderStep& step, const __m512i (&acc)[kRows][kCols], int d,
                               const Work& work) const {
    const float* v_scales = reinterpret_cast<const float*>(step.part + tile_.v_scales) + d;
    __m512 scale[kCols];
#pragma GCC unroll 2
    for (int c = 0; c < kCols; ++c) scale[c] = _mm512_loadu_ps(v_scales + c * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      if (r >= step.chunk->count) break;
      const __m512 new_factor = _mm512_set1_ps(work.new_factor[r]), old_factor = _mm512_set1_ps(work.old_factor[r]);
      float* sums = step.chunk->sums + r * width_ + d;
#pragma GCC unroll 2
      for (int c = 0; c < kCols; ++c) {
        add_product<kNewMax>(acc[r][c], scale[c], new_factor, old_factor, sums + c * kLanes);
      }
    }
  }

  const AttentionTask& task_;
  EncoderTile tile_;
  int width_;
};

}  // namespace

void write_encoder_tile(const KvWrite& write) {
  const EncoderTile tile = encoder_tile(write.head_dim);
  float strange = write_keys(write, tile);
  for (int64_t d = 0; d < write.head_dim; d += kLanes) strange += write_values(write, tile, d);
  if (strange == 0) return;
  auto* scales = reinterpret_cast<float*>(write.part + tile.v_scales);
  for (int64_t d = 0; d < write.head_dim; ++d) scales[d] = NAN;
}

void attend_encoder(const AttentionTask& task) { attend_encoder_rows<VnniProducts>(task); }

}  // namespace transept::avx512_vnni
