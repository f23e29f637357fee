// Online softmax over tiles of 64 keys, written once for every level (ops/kernels.h has the rule for such files).
//
// What fixes the bits of a row: each score is one chain of multiply-adds over the dimensions; the sum of exponentials
// and the sum over V go over keys by position, tile by tile. Rows, blocks and threads only decide what runs beside it.
#pragma once

#include <math.h>

#include "attention/cpu_kernels.h"
#include "ops/transpose.h"
#include "ops/vec_math.h"

namespace transept {

static constexpr int kChunkRows = 6;  // rows that share each load of K and V

template <class V>
struct KeyTile {
  static constexpr int kVecs = kTileKeys / V::kLanes;
  int64_t first;          // position of the first key
  int count;              // keys, 1 to kTileKeys
  const float* k[kVecs];  // vectors of keys: dimension d at k[i] + d * k_stride
  int64_t k_stride;
  const float* v[kTileKeys];
};

// Keys [first, first + count) of dense rows, transposed into task.keys.
template <class V>
inline void load_dense(const AttentionTask& task, KeyTile<V>& tile) {
  transpose(task.k + tile.first * task.k_stride, task.k_stride, tile.count, task.head_dim, task.keys, kTileKeys);
  for (int j = 0; j < tile.count; ++j) tile.v[j] = task.v + (tile.first + j) * task.v_stride;
}

// Keys in blocks: used where they lie if a block holds whole vectors, otherwise copied together.
template <class V>
inline void load_blocks(const AttentionTask& task, KeyTile<V>& tile, bool in_place) {
  const int64_t size = task.block_size;
  for (int j = 0; j < tile.count;) {
    const int64_t position = tile.first + j;
    const int64_t offset = position % size;
    const float* block = task.cache + task.blocks[position / size] * task.block_stride;
    int run = static_cast<int>(size - offset < tile.count - j ? size - offset : tile.count - j);
    const float* v = block + size * task.head_dim + offset * task.head_dim;
    for (int i = 0; i < run; ++i) tile.v[j + i] = v + i * task.head_dim;
    if (in_place) {
      for (int i = 0; i < run; i += V::kLanes) tile.k[(j + i) / V::kLanes] = block + offset + i;
    } else {
      for (int d = 0; d < task.head_dim; ++d) {
        const float* k = block + d * size + offset;
        float* to = task.keys + d * kTileKeys + j;
        for (int i = 0; i < run; ++i) to[i] = k[i];
      }
    }
    j += run;
  }
}

template <class V>
inline void load_tile(const AttentionTask& task, int64_t first, KeyTile<V>& tile) {
  tile.first = first;
  const int64_t left = task.num_keys - first;
  tile.count = static_cast<int>(left < kTileKeys ? left : kTileKeys);
  const bool in_place = task.blocks != nullptr && task.block_size % V::kLanes == 0;
  if (task.blocks == nullptr) {
    load_dense<V>(task, tile);
  } else {
    load_blocks<V>(task, tile, in_place);
  }
  tile.k_stride = in_place ? task.block_size : kTileKeys;
  if (!in_place) {
    for (int i = 0; i < KeyTile<V>::kVecs; ++i) tile.k[i] = task.keys + i * V::kLanes;
  }
}

// q . k of kRows rows and kVecs vectors of keys.
template <class V, int kRows, int kVecs>
inline void dot_keys(const AttentionRow* rows, int head_dim, const float* const* k, int64_t k_stride, float* scores) {
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
    for (int c = 0; c < kVecs; ++c) b[c] = V::load(k[c] + offset);
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

// Vectors held at once beside kRows rows: what the registers allow.
template <class V, int kRows>
constexpr int vecs_at_once() {
  return V::kLanes == 16 || kRows <= 3 ? 4 : 2;
}

template <class V, int kRows>
inline void score_tile(const AttentionRow* rows, int head_dim, const KeyTile<V>& tile, float* scores) {
  const int num_vecs = (tile.count + V::kLanes - 1) / V::kLanes;
  constexpr int kMost = vecs_at_once<V, kRows>();
  int c = 0;
  if constexpr (kMost == 4) {
    for (; c + 4 <= num_vecs; c += 4)
      dot_keys<V, kRows, 4>(rows, head_dim, tile.k + c, tile.k_stride, scores + c * V::kLanes);
  }
  for (; c + 2 <= num_vecs; c += 2)
    dot_keys<V, kRows, 2>(rows, head_dim, tile.k + c, tile.k_stride, scores + c * V::kLanes);
  if (c < num_vecs) dot_keys<V, kRows, 1>(rows, head_dim, tile.k + c, tile.k_stride, scores + c * V::kLanes);
}

// scale * score + bias, -inf where the row does not see the key; the largest of them.
template <class V>
inline float finish_scores(const AttentionTask& task, const AttentionRow& row, const KeyTile<V>& tile, float* scores) {
  const int64_t visible = row.visible - tile.first;
  const typename V::Reg scale = V::set1(task.scale);
  typename V::Reg max = V::set1(-HUGE_VALF);
  for (int c = 0; c < tile.count; c += V::kLanes) {
    typename V::Reg s = V::mul(V::load(scores + c), scale);
    if (row.bias != nullptr) {
      const float* bias = row.bias + (tile.first + c) * task.bias_stride;
      const int left = tile.count - c;
      const int lanes = left < V::kLanes ? left : V::kLanes;
      if (task.bias_stride == 1) {
        s = V::add(s, lanes == V::kLanes ? V::load(bias) : V::load_n(bias, lanes));
      } else {
        float spread[V::kLanes];
        for (int i = 0; i < V::kLanes; ++i) spread[i] = i < lanes ? bias[i * task.bias_stride] : 0.0f;
        s = V::add(s, V::load(spread));
      }
    }
    s = V::keep_first(s, visible - c, -HUGE_VALF);
    max = V::max(s, max);
    V::store(scores + c, s);
  }
  return V::reduce_max(max);
}

template <class V>
inline float exp1(float x) {
  float lanes[V::kLanes];
  V::store(lanes, vec_exp<V>(V::set1(x)));
  return lanes[0];
}

// Scores to exponentials under the row's new maximum; what was summed under the old one is scaled down.
template <class V>
inline void update_softmax(const AttentionTask& task, AttentionRow& row, float* sums, const KeyTile<V>& tile,
                           float* scores) {
  const float tile_max = finish_scores<V>(task, row, tile, scores);
  const float max = tile_max > row.max ? tile_max : row.max;
  const typename V::Reg shift = V::set1(max == -HUGE_VALF ? 0.0f : max);  // nothing seen yet: all zeros
  if (max > row.max) {
    const float factor = exp1<V>(row.max - max);
    row.sum *= factor;
    for (int64_t d = 0; d < task.sums_stride; d += V::kLanes) {
      V::store(sums + d, V::mul(V::load(sums + d), V::set1(factor)));
    }
    row.max = max;
  }
  typename V::Reg sum = V::zero();
  for (int c = 0; c < tile.count; c += V::kLanes) {
    const typename V::Reg e = V::keep_first(vec_exp<V>(V::sub(V::load(scores + c), shift)), tile.count - c, 0);
    sum = V::add(sum, e);
    V::store(scores + c, e);
  }
  row.sum += V::reduce_add(sum);
}

// sums += probabilities * V over the tile's keys, kVecs vectors of dimensions; kLast: the last, of `lanes` dimensions.
template <class V, int kRows, int kVecs, bool kLast>
inline void add_values(const KeyTile<V>& tile, int d, int lanes, const float* scores, float* sums,
                       int64_t sums_stride) {
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
      const float* v = tile.v[j] + d + c * V::kLanes;
      b[c] = kLast ? V::load_n(v, lanes) : V::load(v);
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

template <class V, int kRows>
inline void add_all_values(const AttentionTask& task, const KeyTile<V>& tile, const float* scores, float* sums) {
  constexpr int kMost = vecs_at_once<V, kRows>();
  const int num_vecs = task.head_dim / V::kLanes;
  const int rest = task.head_dim % V::kLanes;
  int c = 0;
  if constexpr (kMost == 4) {
    for (; c + 4 <= num_vecs; c += 4) {
      add_values<V, kRows, 4, false>(tile, c * V::kLanes, 0, scores, sums, task.sums_stride);
    }
  }
  for (; c + 2 <= num_vecs; c += 2) {
    add_values<V, kRows, 2, false>(tile, c * V::kLanes, 0, scores, sums, task.sums_stride);
  }
  if (c < num_vecs) add_values<V, kRows, 1, false>(tile, c * V::kLanes, 0, scores, sums, task.sums_stride);
  if (rest > 0) {
    add_values<V, kRows, 1, true>(tile, num_vecs * V::kLanes, rest, scores, sums, task.sums_stride);
  }
}

template <class V>
inline void write_probabilities(const AttentionTask& task, const AttentionRow& row, const KeyTile<V>& tile,
                                float* scores) {
  finish_scores<V>(task, row, tile, scores);
  const typename V::Reg shift = V::set1(row.max == -HUGE_VALF ? 0.0f : row.max);
  const typename V::Reg sum = V::set1(row.sum == 0 ? 1.0f : row.sum);
  for (int c = 0; c < tile.count; c += V::kLanes) {
    const int left = tile.count - c;
    const int lanes = left < V::kLanes ? left : V::kLanes;
    V::store_n(row.probabilities + tile.first + c, V::div(vec_exp<V>(V::sub(V::load(scores + c), shift)), sum), lanes);
  }
}

// Rows [first, first + kRows) against one tile; second pass: probabilities are written out.
template <class V, int kRows>
inline void attend_chunk(const AttentionTask& task, const KeyTile<V>& tile, int64_t first, bool second_pass) {
  AttentionRow* rows = task.rows + first;
  bool any = false;
  for (int r = 0; r < kRows; ++r) {
    any |= rows[r].visible > tile.first && (!second_pass || rows[r].probabilities != nullptr);
  }
  if (!any) return;
  alignas(64) float scores[kRows * kTileKeys];
  score_tile<V, kRows>(rows, task.head_dim, tile, scores);
  float* sums = task.sums + first * task.sums_stride;
  if (second_pass) {
    for (int r = 0; r < kRows; ++r) {
      if (rows[r].probabilities != nullptr) write_probabilities<V>(task, rows[r], tile, scores + r * kTileKeys);
    }
    return;
  }
  for (int r = 0; r < kRows; ++r)
    update_softmax<V>(task, rows[r], sums + r * task.sums_stride, tile, scores + r * kTileKeys);
  add_all_values<V, kRows>(task, tile, scores, sums);
}

template <class V, int kRows>
inline void attend_some(const AttentionTask& task, const KeyTile<V>& tile, int64_t first, int64_t rows,
                        bool second_pass) {
  if (rows >= kRows) {
    attend_chunk<V, kRows>(task, tile, first, second_pass);
  } else if constexpr (kRows > 1) {
    attend_some<V, kRows - 1>(task, tile, first, rows, second_pass);
  }
}

template <class V>
inline void attend_pass(const AttentionTask& task, bool second_pass) {
  KeyTile<V> tile;
  for (int64_t first_key = 0; first_key < task.num_keys; first_key += kTileKeys) {
    load_tile<V>(task, first_key, tile);
    for (int64_t row = 0; row < task.num_rows; row += kChunkRows) {
      attend_some<V, kChunkRows>(task, tile, row, task.num_rows - row, second_pass);
    }
  }
}

template <class V>
inline void store_row(const AttentionTask& task, const AttentionRow& row, const float* sums) {
  const typename V::Reg sum = V::set1(row.sum == 0 ? 1.0f : row.sum);  // 0: no keys, and sums are 0
  for (int d = 0; d < task.head_dim; d += V::kLanes) {
    const int left = task.head_dim - d;
    V::store_n(row.out + d, V::div(V::load(sums + d), sum), left < V::kLanes ? left : V::kLanes);
  }
}

template <class V>
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
  attend_pass<V>(task, false);
  for (int64_t r = 0; r < task.num_rows; ++r) store_row<V>(task, task.rows[r], task.sums + r * task.sums_stride);
  if (capture) attend_pass<V>(task, true);
}

}  // namespace transept
