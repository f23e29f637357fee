#define TRANSEPT_AVX512_LEVEL avx512_bf16
#include <math.h>
#include <string.h>

#include "attention/cpu_kernel.h"
#include "attention/encoder_bfloat16.h"
#include "ops/vec_avx512.h"

namespace transept::avx512_bf16 {
namespace {

constexpr int kLanes = Vec::kLanes;

struct PairTile : TileKeys {
  const uint16_t *k, *v;
};

__mmask16 first_lanes(int64_t n) { return static_cast<__mmask16>(n < 0 ? 0 : n < kLanes ? (1u << n) - 1 : 0xFFFF); }

// Sixteen pairs, of which a is the first factors and b the second.
__m512i pairs(__m512 a, __m512 b) {
  const __m512i low = _mm512_maskz_cvtepu16_epi32(Vec::kAll, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(a)));
  const __m512i high = _mm512_maskz_cvtepu16_epi32(Vec::kAll, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(b)));
  return _mm512_or_si512(low, _mm512_maskz_slli_epi32(Vec::kAll, high, 16));
}

__m512bh load_pairs(const uint16_t* p) { return reinterpret_cast<__m512bh>(_mm512_loadu_si512(p)); }

__m512bh repeat_pair(const uint16_t* p) {
  int32_t pair;
  memcpy(&pair, p, sizeof pair);
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
}

void store_rounded(uint16_t* to, __m512 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(a)));
}

// ---- what attend_rows() of cpu_kernel.h asks of a tile

inline void load_tile(const AttentionTask& task, int64_t first, PairTile& tile) {
  place_tile(task, first, tile);
  const unsigned char* part = task.cache + task.blocks[first / kTileKeys] * task.block_stride;
  tile.k = reinterpret_cast<const uint16_t*>(part);
  tile.v = reinterpret_cast<const uint16_t*>(part + pair_part(task.head_dim).v);
}

inline void prepare_rows(const AttentionTask& task, const PairTile* /*kind*/) {
  for (int64_t r = 0; r < task.num_rows; ++r) {
    AttentionRow& row = task.rows[r];
    auto* words = static_cast<uint16_t*>(task.words) + r * task.sums_stride;
    row.words = words;
    for (int64_t d = 0; d < task.sums_stride; d += kLanes) {
      store_rounded(words + d, _mm512_maskz_loadu_ps(first_lanes(task.head_dim - d), row.q + d));
    }
  }
}

template <int kRows, int kCount>
inline void dot_pairs(const AttentionRow* rows, int head_dim, const uint16_t* k, float* scores) {
  __m512 acc[kRows][kCount];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kCount; ++c) acc[r][c] = _mm512_setzero_ps();
  }
  for (int d = 0; d < head_dim; d += 2, k += 2 * kTileKeys) {
    __m512bh b[kCount];
#pragma GCC unroll 8
    for (int c = 0; c < kCount; ++c) b[c] = load_pairs(k + c * 2 * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512bh a = repeat_pair(static_cast<const uint16_t*>(rows[r].words) + d);
#pragma GCC unroll 8
      for (int c = 0; c < kCount; ++c) acc[r][c] = _mm512_dpbf16_ps(acc[r][c], a, b[c]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kCount; ++c) _mm512_storeu_ps(scores + r * kTileKeys + c * kLanes, acc[r][c]);
  }
}

template <class V, int kRows, bool kFetch>
inline void score_tile(const AttentionRow* rows, int head_dim, const PairTile& tile, const PairTile* /*next*/,
                       float* scores) {
  int first = 0;
  for (; first + 2 * kLanes < tile.count; first += 4 * kLanes) {  // places past the last key are zero
    dot_pairs<kRows, 4>(rows, head_dim, tile.k + 2 * first, scores + first);
  }
  if (first < tile.count) dot_pairs<kRows, 2>(rows, head_dim, tile.k + 2 * first, scores + first);
}

template <int kRows, int kCount>
inline void add_pair_values(const PairTile& tile, int64_t width, int64_t d, const uint16_t* probabilities,
                            float* sums) {
  __m512 acc[kRows][kCount];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kCount; ++c) acc[r][c] = _mm512_loadu_ps(sums + r * width + d + c * kLanes);
  }
  const uint16_t* v = tile.v + 2 * d;
  for (int j = 0; j < tile.count; j += 2, v += 2 * width) {
    __m512bh b[kCount];
#pragma GCC unroll 8
    for (int c = 0; c < kCount; ++c) b[c] = load_pairs(v + c * 2 * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512bh a = repeat_pair(probabilities + r * kTileKeys + j);
#pragma GCC unroll 8
      for (int c = 0; c < kCount; ++c) acc[r][c] = _mm512_dpbf16_ps(acc[r][c], a, b[c]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kCount; ++c) _mm512_storeu_ps(sums + r * width + d + c * kLanes, acc[r][c]);
  }
}

template <class V, int kRows, bool kFetch>
inline void add_all_values(const AttentionTask& task, const PairTile& tile, const PairTile* /*next*/, float* scores,
                           float* sums) {
  alignas(64) uint16_t probabilities[kRows * kTileKeys];
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < tile.count; c += kLanes) {
      store_rounded(probabilities + r * kTileKeys + c, _mm512_load_ps(scores + r * kTileKeys + c));
    }
  }
  const int64_t width = task.sums_stride;
  int64_t d = 0;
  for (; d + 4 * kLanes <= width; d += 4 * kLanes) add_pair_values<kRows, 4>(tile, width, d, probabilities, sums);
  for (; d < width; d += kLanes) add_pair_values<kRows, 1>(tile, width, d, probabilities, sums);
}

}  // namespace

void write_pair_tile(const KvWrite& write) {
  const int64_t dim = write.head_dim, width = (dim + 15) / 16 * 16;
  const __m512 none = _mm512_setzero_ps();
  // K: rows of pairs, which then are columns.
  alignas(64) uint32_t rows[kTileKeys * kMaxHeadDim / 2];
  const int64_t row_pairs = width / 2;
  for (int64_t j = 0; j < kTileKeys; ++j) {
    const __mmask16 is_there = j < write.num_rows ? Vec::kAll : 0;
    const float* k = write.k + (is_there != 0 ? j : 0) * write.k_stride;
    for (int64_t d = 0; d < width; d += kLanes) {
      store_rounded(reinterpret_cast<uint16_t*>(rows + j * row_pairs) + d,
                    _mm512_maskz_loadu_ps(is_there & first_lanes(dim - d), k + d));
    }
  }
  transpose(reinterpret_cast<const float*>(rows), row_pairs, kTileKeys, (dim + 1) / 2,
            reinterpret_cast<float*>(write.part), kTileKeys);
  auto* v = reinterpret_cast<uint16_t*>(write.part + pair_part(dim).v);
  for (int64_t j = 0; j < kTileKeys; j += 2, v += 2 * width) {
    for (int64_t d = 0; d < width; d += kLanes) {
      const auto values = [&](int64_t row) {
        if (row >= write.num_rows) return none;
        return _mm512_maskz_loadu_ps(first_lanes(dim - d), write.v + row * write.v_stride + d);
      };
      _mm512_storeu_si512(v + 2 * d, pairs(values(j), values(j + 1)));
    }
  }
}

void attend_pairs(const AttentionTask& task) { attend_rows<Vec, PairTile>(task); }

}  // namespace transept::avx512_bf16
