// Online softmax over tiles of 64 keys, written once for every level (ops/kernels.h has the rule for such files).
//
// The bits of a row are fixed: each score is one chain of multiply-adds over the dimensions; the sum of exponentials
// and the sum over V take keys by position, tile by tile. Rows, blocks and threads only decide what runs at the same
// time.
//
// A Tile describes the layout of 64 keys, and overloads of load_tile, prepare_rows, score_tile and add_all_values work
// with it: KeyTile here for floats of all sizes (widened when loaded), Int8Tile in cpu_int8_kernel.h.
#pragma once

#include <math.h>

#include "attention/bias_kernel.h"
#include "attention/cpu_kernels.h"
#include "ops/transpose.h"
#include "ops/vec_math.h"

namespace transept {

static constexpr int kChunkRows = 6;  // rows that share each load of K and V

struct TileKeys {
  int64_t first;  // position of the first key
  int count;      // keys, 1 to kTileKeys
};

// E: float, Float16 or BFloat16.
template <class V, class E>
struct KeyTile : TileKeys {
  static constexpr int kVecs = kTileKeys / V::kLanes;
  const E* k[kVecs];  // vectors of keys: dimension d at k[i] + d * k_stride
  int64_t k_stride;
  const E* v[kTileKeys];
};

// Loads a tile of dense rows: transposes K into task.keys, and copies V behind it. (Rows of a wide matrix are so far
// apart that a tile's values fall into too few sets of the first-level cache.)
template <class V>
inline void load_dense(const AttentionTask& task, KeyTile<V, float>& tile) {
  auto* keys = static_cast<float*>(task.keys);
  transpose(task.k + tile.first * task.k_stride, task.k_stride, tile.count, task.head_dim, keys, kTileKeys);
  float* values = keys + task.head_dim * kTileKeys;
  for (int j = 0; j < tile.count; ++j, values += task.head_dim) {
    const float* v = task.v + (tile.first + j) * task.v_stride;
    for (int d = 0; d < task.head_dim; ++d) values[d] = v[d];
    tile.v[j] = values;
  }
}

// Loads a tile of blocks. V is read in place; K is read in place if blocks hold whole vectors, otherwise copied to
// task.keys.
template <class V, class E>
inline void load_blocks(const AttentionTask& task, KeyTile<V, E>& tile, bool in_place) {
  const int64_t size = task.block_size;
  auto* keys = static_cast<E*>(task.keys);
  for (int j = 0; j < tile.count;) {
    const int64_t position = tile.first + j;
    const int64_t offset = position % size;
    const auto* block = reinterpret_cast<const E*>(task.cache + task.blocks[position / size] * task.block_stride);
    int run = static_cast<int>(size - offset < tile.count - j ? size - offset : tile.count - j);
    const E* v = block + size * task.head_dim + offset * task.head_dim;
    for (int i = 0; i < run; ++i) tile.v[j + i] = v + i * task.head_dim;
    if (in_place) {
      for (int i = 0; i < run; i += V::kLanes) tile.k[(j + i) / V::kLanes] = block + offset + i;
    } else {
      for (int d = 0; d < task.head_dim; ++d) {
        const E* k = block + d * size + offset;
        E* to = keys + d * kTileKeys + j;
        for (int i = 0; i < run; ++i) to[i] = k[i];
      }
    }
    j += run;
  }
  if (!in_place) return;
  // Places past the last key are only prefetched.
  for (int i = (tile.count + V::kLanes - 1) / V::kLanes; i < KeyTile<V, E>::kVecs; ++i) tile.k[i] = tile.k[0];
  for (int j = tile.count; j < kTileKeys; ++j) tile.v[j] = tile.v[0];
}

// Returns whether blocks hold whole vectors of keys.
template <class V>
inline bool reads_in_place(const AttentionTask& task) {
  return task.blocks != nullptr && task.block_size % V::kLanes == 0;
}

static inline void place_tile(const AttentionTask& task, int64_t first, TileKeys& tile) {
  tile.first = first;
  const int64_t left = task.num_keys - first;
  tile.count = static_cast<int>(left < kTileKeys ? left : kTileKeys);
}

template <class V, class E>
inline void load_tile(const AttentionTask& task, int64_t first, KeyTile<V, E>& tile) {
  place_tile(task, first, tile);
  const bool in_place = reads_in_place<V>(task);
  if (task.blocks != nullptr) {
    load_blocks(task, tile, in_place);
  } else if constexpr (sizeof(E) == sizeof(float)) {
    load_dense(task, tile);
  }
  tile.k_stride = in_place ? task.block_size : kTileKeys;
  if (!in_place) {
    for (int i = 0; i < KeyTile<V, E>::kVecs; ++i) tile.k[i] = static_cast<const E*>(task.keys) + i * V::kLanes;
  }
}

// Prepares rows for their first tile: nothing for floats.
template <class V, class E>
inline void prepare_rows(const AttentionTask& /*task*/, const KeyTile<V, E>* /*kind*/) {}

// Computes q . k of kRows rows and kVecs vectors of keys. If kFetch, prefetches the next tile's keys at `ahead` (not
// read otherwise): with one row of q, the time is that of reading memory.
template <class V, int kRows, int kVecs, bool kFetch, class E>
inline void dot_keys(const AttentionRow* rows, int head_dim, const E* const* k, const E* const* ahead, int64_t k_stride,
                     float* scores) {
  typename V::Reg acc[kRows][kVecs];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) acc[r][c] = V::zero();
  }
  int64_t offset = 0;
  for (int d = 0; d < head_dim; ++d, offset += k_stride) {
    typename V::Reg b[kVecs];
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) {
      b[c] = V::load(k[c] + offset);
      if (kFetch && c * V::kLanes % 16 == 0) V::prefetch_l2(ahead[c] + offset);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const typename V::Reg a = V::set1(rows[r].q[d]);
#pragma GCC unroll 8
      for (int c = 0; c < kVecs; ++c) acc[r][c] = V::fma(a, b[c], acc[r][c]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) V::store(scores + r * kTileKeys + c * V::kLanes, acc[r][c]);
  }
}

// Vectors that fit registers with kRows rows.
template <class V, int kRows>
constexpr int vecs_at_once() {
  return V::kLanes == 16 || kRows <= 3 ? 4 : 2;
}

template <class V, int kRows, bool kFetch, class E>
inline void score_tile(const AttentionRow* rows, int head_dim, const KeyTile<V, E>& tile, const KeyTile<V, E>* next,
                       float* scores) {
  const int num_vecs = (tile.count + V::kLanes - 1) / V::kLanes;
  const E* const* ahead = kFetch ? next->k : tile.k;
  const int64_t stride = tile.k_stride;
  int c = 0;
  if constexpr (vecs_at_once<V, kRows>() == 4) {
    for (; c + 4 <= num_vecs; c += 4) {
      dot_keys<V, kRows, 4, kFetch>(rows, head_dim, tile.k + c, ahead + c, stride, scores + c * V::kLanes);
    }
  }
  for (; c + 2 <= num_vecs; c += 2) {
    dot_keys<V, kRows, 2, kFetch>(rows, head_dim, tile.k + c, ahead + c, stride, scores + c * V::kLanes);
  }
  if (c < num_vecs) {
    dot_keys<V, kRows, 1, kFetch>(rows, head_dim, tile.k + c, ahead + c, stride, scores + c * V::kLanes);
  }
}

// Returns whether the row sees a key of the tile that begins at `first`.
static inline bool sees_tile(const AttentionRow& row, int64_t first) {
  return row.visible > first && row.first < first + kTileKeys;
}

// Sets products with keys before those that the row sees to -inf, which neither scale (above 0) nor bias changes. Tiles
// begin at the same keys for all rows, so a row's bits do not depend on what others see.
static inline void hide_keys_before(const AttentionRow& row, const TileKeys& tile, float* scores) {
  const int64_t hidden = row.first - tile.first;
  for (int64_t j = 0; j < hidden && j < kTileKeys; ++j) scores[j] = -HUGE_VALF;
}

// Sets scores to scale * score + bias, -inf for keys after those that the row sees; returns the largest of them.
// kWhole: the tile is full and the row sees all of it.
template <class V, bool kWhole>
inline float finish_scores(const AttentionTask& task, const AttentionRow& row, const TileKeys& tile, float* scores) {
  const int64_t visible = row.visible - tile.first;
  const int count = kWhole ? kTileKeys : tile.count;
  const typename V::Reg scale = V::set1(task.scale);
  return with_bias<V>(row.bias, [&](auto&& finish) {
    typename V::Reg max = V::set1(-HUGE_VALF);
#pragma GCC unroll 4
    for (int c = 0; c < count; c += V::kLanes) {
      typename V::Reg s = finish(V::load(scores + c), scale, tile.first + c, tile.count - c);
      if (!kWhole) s = V::keep_first(s, visible - c, -HUGE_VALF);
      max = V::max(s, max);
      V::store(scores + c, s);
    }
    return V::reduce_max(max);
  });
}

// Turns scores into exponentials under the row's new maximum, and scales down the sums under the old one.
template <class V, bool kWhole>
inline void update_softmax(const AttentionTask& task, AttentionRow& row, float* sums, const TileKeys& tile,
                           float* scores) {
  const float tile_max = finish_scores<V, kWhole>(task, row, tile, scores);
  if (tile_max > row.max) {
    if (row.max != -HUGE_VALF) {  // else sums are 0
      alignas(64) float factors[V::kLanes];
      V::store(factors, vec_exp<V>(V::set1(row.max - tile_max)));
      const typename V::Reg factor = V::set1(factors[0]);
      for (int64_t d = 0; d < task.sums_stride; d += V::kLanes) V::store(sums + d, V::mul(V::load(sums + d), factor));
      row.sum *= factors[0];
    }
    row.max = tile_max;
  }
  const typename V::Reg shift = V::set1(row.max == -HUGE_VALF ? 0.0f : row.max);  // no key seen yet: all zeros
  const int count = kWhole ? kTileKeys : tile.count;
  typename V::Reg sum = V::zero();
#pragma GCC unroll 4
  for (int c = 0; c < count; c += V::kLanes) {
    typename V::Reg e = vec_exp<V>(V::sub(V::load(scores + c), shift));
    if (!kWhole) e = V::keep_first(e, count - c, 0);
    sum = V::add(sum, e);
    V::store(scores + c, e);
  }
  row.sum += V::reduce_add(sum);
}

// Adds probabilities * V over the tile's keys to sums, kVecs vectors of dimensions; kLast: the last, of `lanes`
// dimensions. `next`: the tile whose values are prefetched, or null.
template <class V, int kRows, int kVecs, bool kLast, bool kFetch, class E>
inline void add_values(const KeyTile<V, E>& tile, const KeyTile<V, E>* next, int d, int lanes, const float* scores,
                       float* sums, int64_t sums_stride) {
  typename V::Reg acc[kRows][kVecs];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) acc[r][c] = V::load(sums + r * sums_stride + d + c * V::kLanes);
  }
  for (int j = 0; j < tile.count; ++j) {
    typename V::Reg b[kVecs];
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) {
      const E* v = tile.v[j] + d + c * V::kLanes;
      b[c] = kLast ? V::load_n(v, lanes) : V::load(v);
      if (kFetch && c * V::kLanes % 16 == 0) V::prefetch_l2(next->v[j] + d + c * V::kLanes);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const typename V::Reg a = V::set1(scores[r * kTileKeys + j]);
#pragma GCC unroll 8
      for (int c = 0; c < kVecs; ++c) acc[r][c] = V::fma(a, b[c], acc[r][c]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) V::store(sums + r * sums_stride + d + c * V::kLanes, acc[r][c]);
  }
}

template <class V, int kRows, bool kFetch, class E>
inline void add_all_values(const AttentionTask& task, const KeyTile<V, E>& tile, const KeyTile<V, E>* next,
                           float* scores, float* sums) {
  const int num_vecs = task.head_dim / V::kLanes;
  const int rest = task.head_dim % V::kLanes;
  const int64_t stride = task.sums_stride;
  int c = 0;
  if constexpr (vecs_at_once<V, kRows>() == 4) {
    for (; c + 4 <= num_vecs; c += 4) {
      add_values<V, kRows, 4, false, kFetch>(tile, next, c * V::kLanes, 0, scores, sums, stride);
    }
  }
  for (; c + 2 <= num_vecs; c += 2) {
    add_values<V, kRows, 2, false, kFetch>(tile, next, c * V::kLanes, 0, scores, sums, stride);
  }
  if (c < num_vecs) add_values<V, kRows, 1, false, kFetch>(tile, next, c * V::kLanes, 0, scores, sums, stride);
  if (rest > 0) {
    add_values<V, kRows, 1, true, kFetch>(tile, next, num_vecs * V::kLanes, rest, scores, sums, stride);
  }
}

template <class V>
inline void write_probabilities(const AttentionTask& task, const AttentionRow& row, const TileKeys& tile,
                                float* scores) {
  finish_scores<V, false>(task, row, tile, scores);
  const typename V::Reg shift = V::set1(row.max == -HUGE_VALF ? 0.0f : row.max);
  const typename V::Reg sum = V::set1(row.sum == 0 ? 1.0f : row.sum);
  for (int c = 0; c < tile.count; c += V::kLanes) {
    const int left = tile.count - c;
    const int lanes = left < V::kLanes ? left : V::kLanes;
    V::store_n(row.probabilities + tile.first + c, V::div(vec_exp<V>(V::sub(V::load(scores + c), shift)), sum), lanes);
  }
}

// Computes rows [first, first + kRows) with one tile.
template <class V, int kRows, bool kFetch, class Tile>
inline void attend_chunk(const AttentionTask& task, const Tile& tile, const Tile* next, int64_t first) {
  AttentionRow* rows = task.rows + first;
  bool is_seen = false;
  for (int r = 0; r < kRows; ++r) is_seen |= sees_tile(rows[r], tile.first);
  if (!is_seen) return;
  alignas(64) float scores[kRows * kTileKeys];
  score_tile<V, kRows, kFetch>(rows, task.head_dim, tile, next, scores);
  float* sums = task.sums + first * task.sums_stride;
  for (int r = 0; r < kRows; ++r) {
    float* row_sums = sums + r * task.sums_stride;
    hide_keys_before(rows[r], tile, scores + r * kTileKeys);
    if (rows[r].first <= tile.first && rows[r].visible >= tile.first + kTileKeys) {
      update_softmax<V, true>(task, rows[r], row_sums, tile, scores + r * kTileKeys);
    } else {
      update_softmax<V, false>(task, rows[r], row_sums, tile, scores + r * kTileKeys);
    }
  }
  add_all_values<V, kRows, kFetch>(task, tile, next, scores, sums);
}

template <class V, bool kFetch, int kRows = kChunkRows, class Tile>
inline void attend_some(const AttentionTask& task, const Tile& tile, const Tile* next, int64_t first, int64_t rows) {
  if (rows >= kRows) {
    attend_chunk<V, kRows, kFetch>(task, tile, next, first);
  } else if constexpr (kRows > 1) {
    attend_some<V, kFetch, kRows - 1>(task, tile, next, first, rows);
  }
}

template <class V, class Tile>
inline void attend_all(const AttentionTask& task) {
  Tile tiles[2];
  const bool in_place = reads_in_place<V>(task);
  int64_t first_key = tile_of(task.first_key);
  if (in_place && first_key < task.num_keys) load_tile(task, first_key, tiles[0]);
  for (int current = 0; first_key < task.num_keys; first_key += kTileKeys, current ^= 1) {
    const Tile& tile = tiles[current];
    int64_t row = 0;
    if (!in_place) {  // a copy: task.keys has room for one tile
      load_tile(task, first_key, tiles[current]);
    } else if (first_key + kTileKeys < task.num_keys) {
      Tile& next = tiles[current ^ 1];
      load_tile(task, first_key + kTileKeys, next);
      attend_some<V, true>(task, tile, &next, 0, task.num_rows);
      row = kChunkRows;
    }
    for (; row < task.num_rows; row += kChunkRows)
      attend_some<V, false>(task, tile, static_cast<const Tile*>(nullptr), row, task.num_rows - row);
  }
}

// Second pass, for rows whose probabilities are wanted: the maximum and the sum are known now.
template <class V, class Tile>
inline void capture_all(const AttentionTask& task) {
  Tile tile;
  alignas(64) float scores[kTileKeys];
  for (int64_t first_key = tile_of(task.first_key); first_key < task.num_keys; first_key += kTileKeys) {
    load_tile(task, first_key, tile);
    for (int64_t r = 0; r < task.num_rows; ++r) {
      if (task.rows[r].probabilities == nullptr || !sees_tile(task.rows[r], first_key)) continue;
      score_tile<V, 1, false>(task.rows + r, task.head_dim, tile, static_cast<const Tile*>(nullptr), scores);
      hide_keys_before(task.rows[r], tile, scores);
      write_probabilities<V>(task, task.rows[r], tile, scores);
    }
  }
}

template <class V>
inline void store_row(const AttentionTask& task, const AttentionRow& row, const float* sums) {
  const typename V::Reg inverse = V::set1(row.sum == 0 ? 1.0f : 1.0f / row.sum);  // 0: no keys, and sums are 0
  for (int d = 0; d < task.head_dim; d += V::kLanes) {
    const int left = task.head_dim - d;
    V::store_n(row.out + d, V::mul(V::load(sums + d), inverse), left < V::kLanes ? left : V::kLanes);
  }
}

template <class V, class Tile>
inline void attend_rows(const AttentionTask& task) {
  bool capture = false;
  for (int64_t r = 0; r < task.num_rows; ++r) {
    AttentionRow& row = task.rows[r];
    row.max = -HUGE_VALF;
    row.sum = 0;
    float* sums = task.sums + r * task.sums_stride;
    for (int64_t d = 0; d < task.sums_stride; ++d) sums[d] = 0;
    if (row.probabilities == nullptr) continue;
    capture = true;
    for (int64_t j = 0; j < task.num_probabilities; ++j) row.probabilities[j] = 0;
  }
  prepare_rows(task, static_cast<const Tile*>(nullptr));
  attend_all<V, Tile>(task);
  for (int64_t r = 0; r < task.num_rows; ++r) store_row<V>(task, task.rows[r], task.sums + r * task.sums_stride);
  if (capture) capture_all<V, Tile>(task);
}

}  // namespace transept
