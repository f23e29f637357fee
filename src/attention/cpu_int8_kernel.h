// Tiles of int8 keys for cpu_kernel.h (ops/kernels.h has the rule for such files). Products are of integers, because
// they are exact: a row of q becomes integers of 15 bits and a sign, a tile's probabilities (times their keys' scales)
// integers of 15 bits, each row with one scale. So they lose 1 / 256 of what K and V lost, and the sums of products are
// the same at every level, in any order.
#pragma once

#include "attention/cpu_kernel.h"

namespace transept {

static constexpr float kMaxQuery = 127.0f * 256.0f;  // its upper byte, rounded, is at most 127
static constexpr float kMaxProbability = 32767.0f;
static constexpr int kTileQuads = kTileKeys / 4;

template <class V>
struct Int8Tile : TileKeys {
  static constexpr int kVecs = kTileKeys / V::kLanes;
  const unsigned char* k[kVecs];  // vectors of keys: dimensions 4 g to 4 g + 3 at k[i] + g * k_stride
  int64_t k_stride;
  const unsigned char* v[kTileQuads];  // four keys each, [head_dim, 4]
  const float* k_scales[kVecs];
  const float* v_scales[kVecs];
};

// Copies one key's bytes from a block's part to a tile's.
static inline void copy_int8_key(const unsigned char* from, const Int8Part& from_part, int64_t from_size,
                                 int64_t offset, unsigned char* to, const Int8Part& to_part, int64_t place,
                                 int64_t head_dim) {
  const auto* scales = reinterpret_cast<const float*>(from);
  auto* to_scales = reinterpret_cast<float*>(to);
  to_scales[place] = scales[offset];
  to_scales[kTileKeys + place] = scales[from_size + offset];
  for (int64_t g = 0; g < (head_dim + 3) / 4; ++g) {
    const unsigned char* four = from + from_part.k + (g * from_size + offset) * 4;
    unsigned char* to_four = to + to_part.k + (g * kTileKeys + place) * 4;
    for (int i = 0; i < 4; ++i) to_four[i] = four[i];
  }
  const unsigned char* v = from + from_part.v + offset / 4 * head_dim * 4 + offset % 4;
  unsigned char* to_v = to + to_part.v + place / 4 * head_dim * 4 + place % 4;
  for (int64_t d = 0; d < head_dim; ++d) to_v[d * 4] = v[d * 4];
}

// Points vector i of the tile, and its fours of keys, into a block; `offset` is that of its first key in the block.
template <class V>
inline void point_into(const unsigned char* block, const Int8Part& part, int64_t size, int64_t offset, int64_t head_dim,
                       int i, Int8Tile<V>& tile) {
  tile.k[i] = block + part.k + offset * 4;
  tile.k_scales[i] = reinterpret_cast<const float*>(block) + offset;
  tile.v_scales[i] = reinterpret_cast<const float*>(block) + size + offset;
  constexpr int kQuads = V::kLanes / 4;
  for (int q = 0; q < kQuads; ++q) tile.v[i * kQuads + q] = block + part.v + (offset / 4 + q) * head_dim * 4;
}

template <class V>
inline void load_tile(const AttentionTask& task, int64_t first, Int8Tile<V>& tile) {
  place_tile(task, first, tile);
  const int64_t size = task.block_size, dim = task.head_dim;
  const Int8Part part = int8_part(size, dim);
  if (reads_in_place<V>(task)) {
    tile.k_stride = size * 4;
    const int64_t first_block = first / size, first_offset = first % size;
    int64_t block = first_block, offset = first_offset;
    for (int i = 0; i < Int8Tile<V>::kVecs; ++i) {
      point_into(task.cache + task.blocks[block] * task.block_stride, part, size, offset, dim, i, tile);
      offset += V::kLanes;
      if (offset == size) offset = 0, ++block;
      // Places past the last key are only prefetched.
      if ((i + 1) * V::kLanes >= tile.count) block = first_block, offset = first_offset;
    }
    return;
  }
  const auto block_of = [&](int64_t key) { return task.cache + task.blocks[key / size] * task.block_stride; };
  auto* copy = static_cast<unsigned char*>(task.keys);
  const Int8Part copy_part = int8_part(kTileKeys, dim);
  for (int j = 0; j < tile.count; ++j) {
    copy_int8_key(block_of(first + j), part, size, (first + j) % size, copy, copy_part, j, dim);
  }
  tile.k_stride = kTileKeys * 4;
  for (int i = 0; i < Int8Tile<V>::kVecs; ++i) {
    point_into(copy, copy_part, kTileKeys, i * V::kLanes, dim, i, tile);
  }
}

// Returns the largest magnitude of n floats; NaN if one of them is not finite.
template <class V>
inline float largest_magnitude(const float* x, int64_t n) {
  typename V::Reg max = V::zero(), nothing = V::zero();
  for (int64_t i = 0; i < n; i += V::kLanes) {
    const int64_t left = n - i;
    const typename V::Reg a = left < V::kLanes ? V::load_n(x + i, static_cast<int>(left)) : V::load(x + i);
    max = V::max(V::abs(a), max);
    nothing = V::fma(a, V::zero(), nothing);  // infinity x 0 is NaN
  }
  return V::reduce_max(max) + V::reduce_add(nothing);
}

// Quantises the rows' q. Dimensions are padded with zeros to sums_stride.
template <class V>
inline void prepare_rows(const AttentionTask& task, const Int8Tile<V>* /*kind*/) {
  for (int64_t r = 0; r < task.num_rows; ++r) {
    AttentionRow& row = task.rows[r];
    row.words = static_cast<unsigned char*>(task.words) + r * 2 * task.sums_stride;
    const float scale = largest_magnitude<V>(row.q, task.head_dim) / kMaxQuery;
    const bool is_zero = scale < kLeastScale;
    const typename V::Reg inverse = V::set1(is_zero ? 0.0f : 1.0f / scale);
    typename V::Reg sum = V::zero();
    for (int64_t d = 0; d < task.sums_stride; d += V::kLanes) {
      typename V::Reg a = V::zero();
      if (const int64_t left = task.head_dim - d; left > 0) {
        a = left < V::kLanes ? V::load_n(row.q + d, static_cast<int>(left)) : V::load(row.q + d);
        a = V::round(V::mul(a, inverse));
      }
      V::pack_signed(row.words, task.sums_stride, d, a);
      sum = V::add(sum, a);
    }
    // Exact: below 2^24. If the scale is NaN, so are the scores, and the integers do not matter.
    const float total = V::reduce_add(sum);
    row.q_offset = scale == scale ? 128 * static_cast<int32_t>(total) : 0;
    row.q_scale = is_zero ? 0.0f : scale;
  }
}

// Computes the scores of kRows rows and kVecs vectors of keys. If kFetch, prefetches the same vectors of `next`.
template <class V, int kRows, int kVecs, bool kFetch>
inline void dot_int8_keys(const AttentionRow* rows, int head_dim, const Int8Tile<V>& tile, int first_vec,
                          const Int8Tile<V>* next, float* scores) {
  typename V::Quads acc[kRows * V::kParts][kVecs];
#pragma GCC unroll 16
  for (int r = 0; r < kRows * V::kParts; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) acc[r][c] = V::zero_quads();
  }
  const int64_t num_words = (head_dim + 15) / 16 * 16;
  int64_t offset = 0;
  for (int g = 0; g < (head_dim + 3) / 4; ++g, offset += tile.k_stride) {
    typename V::Quads b[kVecs];
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) {
      b[c] = V::load_quads(tile.k[first_vec + c] + offset);
      if (kFetch && c * V::kLanes % 16 == 0) V::prefetch_l2(next->k[first_vec + c] + offset);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows * V::kParts; ++i) {
      const int r = i / V::kParts;
      const typename V::Word w = V::word(rows[r].words, num_words, g, i % V::kParts);
#pragma GCC unroll 8
      for (int c = 0; c < kVecs; ++c) acc[i][c] = V::add_unsigned(acc[i][c], b[c], w);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const typename V::Reg scale = V::set1(rows[r].q_scale);
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) {
      const typename V::Reg both = V::mul(scale, V::load(tile.k_scales[first_vec + c]));
      V::store(scores + r * kTileKeys + c * V::kLanes,
               V::mul(V::total(acc[r * V::kParts][c], acc[r * V::kParts + V::kParts - 1][c], rows[r].q_offset), both));
    }
  }
}

// Vectors that fit registers with kRows rows; a sum takes two registers.
template <class V, int kRows>
constexpr int int8_vecs_at_once() {
  return V::kLanes == 16 ? (kRows <= 3 ? 4 : 2) : (kRows <= 3 ? 2 : 1);
}

template <class V, int kRows, bool kFetch>
inline void score_tile(const AttentionRow* rows, int head_dim, const Int8Tile<V>& tile, const Int8Tile<V>* next,
                       float* scores) {
  constexpr int kMost = int8_vecs_at_once<V, kRows>();
  const int num_vecs = (tile.count + V::kLanes - 1) / V::kLanes;
  int c = 0;
  for (; c + kMost <= num_vecs; c += kMost) {
    dot_int8_keys<V, kRows, kMost, kFetch>(rows, head_dim, tile, c, next, scores + c * V::kLanes);
  }
  if constexpr (kMost > 2) {  // in one sum alone, each addition waits for the one before
    for (; c + 2 <= num_vecs; c += 2) {
      dot_int8_keys<V, kRows, 2, kFetch>(rows, head_dim, tile, c, next, scores + c * V::kLanes);
    }
  }
  for (; c < num_vecs; ++c) {
    dot_int8_keys<V, kRows, 1, kFetch>(rows, head_dim, tile, c, next, scores + c * V::kLanes);
  }
}

// Stores probabilities times their values' scales as integers in `words`; returns the value of one unit.
template <class V>
inline float quantize_probabilities(const Int8Tile<V>& tile, float* scores, void* words) {
  typename V::Reg max = V::zero();
  for (int c = 0; c * V::kLanes < tile.count; ++c) {
    float* at = scores + c * V::kLanes;
    typename V::Reg a = V::mul(V::load(at), V::load(tile.v_scales[c]));
    a = V::keep_first(a, tile.count - c * V::kLanes, 0);  // scales of unwritten slots are undefined
    max = V::max(a, max);
    V::store(at, a);
  }
  const float scale = V::reduce_max(max) / kMaxProbability;
  const typename V::Reg inverse = V::set1(scale < kLeastScale ? 0.0f : 1.0f / scale);
  for (int c = 0; c * V::kLanes < tile.count; ++c) {
    const typename V::Reg a = V::round(V::mul(V::load(scores + c * V::kLanes), inverse));
    V::pack_unsigned(words, kTileKeys, c * V::kLanes, a);
  }
  return scale;
}

// Adds probabilities * V to sums, kVecs vectors of dimensions from d on; kLast: the last, of `lanes` dimensions. If
// kFetch, prefetches the same places of `next`.
template <class V, int kRows, int kVecs, bool kLast, bool kFetch>
inline void add_int8_values(const Int8Tile<V>& tile, const Int8Tile<V>* next, int d, int lanes,
                            const unsigned char* words, const float* scales, float* sums, int64_t sums_stride) {
  typename V::Quads acc[kRows * V::kParts][kVecs];
#pragma GCC unroll 16
  for (int r = 0; r < kRows * V::kParts; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) acc[r][c] = V::zero_quads();
  }
  for (int g = 0; g * 4 < tile.count; ++g) {
    typename V::Quads b[kVecs];
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) {
      const int64_t at = 4 * (d + c * V::kLanes);
      b[c] = kLast ? V::load_quads_n(tile.v[g] + at, lanes) : V::load_quads(tile.v[g] + at);
      if (kFetch && c * V::kLanes % 16 == 0) V::prefetch_l2(next->v[g] + at);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows * V::kParts; ++i) {
      const int r = i / V::kParts;
      const typename V::Word w = V::word(words + r * 2 * kTileKeys, kTileKeys, g, i % V::kParts);
#pragma GCC unroll 8
      for (int c = 0; c < kVecs; ++c) acc[i][c] = V::add_signed(acc[i][c], b[c], w);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) {
      float* at = sums + r * sums_stride + d + c * V::kLanes;
      V::store(at, V::fma(V::total(acc[r * V::kParts][c], acc[r * V::kParts + V::kParts - 1][c], 0), V::set1(scales[r]),
                          V::load(at)));
    }
  }
}

template <class V, int kRows, bool kFetch>
inline void add_all_values(const AttentionTask& task, const Int8Tile<V>& tile, const Int8Tile<V>* next, float* scores,
                           float* sums) {
  alignas(64) unsigned char words[kRows * 2 * kTileKeys];
  float scales[kRows];
  for (int r = 0; r < kRows; ++r) {
    scales[r] = quantize_probabilities(tile, scores + r * kTileKeys, words + r * 2 * kTileKeys);
  }
  constexpr int kMost = int8_vecs_at_once<V, kRows>();
  const int num_vecs = task.head_dim / V::kLanes, rest = task.head_dim % V::kLanes;
  const int64_t stride = task.sums_stride;
  int c = 0;
  for (; c + kMost <= num_vecs; c += kMost) {
    add_int8_values<V, kRows, kMost, false, kFetch>(tile, next, c * V::kLanes, 0, words, scales, sums, stride);
  }
  for (; c < num_vecs; ++c) {
    add_int8_values<V, kRows, 1, false, kFetch>(tile, next, c * V::kLanes, 0, words, scales, sums, stride);
  }
  if (rest > 0) {
    add_int8_values<V, kRows, 1, true, kFetch>(tile, next, num_vecs * V::kLanes, rest, words, scales, sums, stride);
  }
}

}  // namespace transept
