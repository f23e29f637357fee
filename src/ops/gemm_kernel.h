// Products with packed panels, written once for every level (ops/kernels.h has the rule for such files). V: the level's
// Vec; W: the storage of weights.
//
// Every element of y is a sum of leaves (ops/gemm.h), of which most products have one. A leaf is one chain
// acc = fma(x[t], w[t], acc), t = 0, 1, ..., leaf_k - 1, whatever the shape of the tile that computes it, and leaves
// are added in one tree. Batch invariance follows from this. Speed comes from many elements at once.
#pragma once

#include "ops/kernels.h"
#include "ops/transpose.h"
#include "ops/vec_math.h"

namespace transept {

static constexpr int kPanelWidth = 32;       // = kPanelColumns of packed_matrix.h
static constexpr int kPrefetchBytes = 1024;  // prefetched ahead of the weights in use
// One or two panels are too few streams for the processor's own prefetching: these ask for more, earlier. Measured on
// 900 MB of weights: 8 rows in 33 ms instead of 50; one row takes 27.
static constexpr int kPrefetchL2Bytes = 12288;

// The storage of weights: kGroup inputs of a column are neighbours. load reads input kPart of each column's group as
// floats.
struct Float32Weights {
  typedef float Type;
  static constexpr int kGroup = 1;
  template <class V, int kPart>
  static inline typename V::Reg load(const Type* p) {
    return V::load(p);
  }
};
struct BFloat16Weights {
  typedef uint16_t Type;
  static constexpr int kGroup = 2;
  template <class V, int kPart>
  static inline typename V::Reg load(const Type* p) {
    if constexpr (kPart == 0) return V::load_bfloat16_first(p);
    return V::load_bfloat16_second(p);
  }
};
struct Float16Weights {
  typedef uint16_t Type;
  static constexpr int kGroup = 1;
  template <class V, int kPart>
  static inline typename V::Reg load(const Type* p) {
    return V::load_float16(p);
  }
};

// Adds one input of kRows rows times kVecs vectors of weights of each of kPanels panels to acc. Prefetches these
// panels' weights 1 KiB before their use (for one or two panels also 12 KiB before), or, if kAhead, the line at
// `ahead`. Always inline: acc is registers.
template <class V, class W, int kPart, int kRows, int kVecs, int kPanels, bool kAhead>
[[gnu::always_inline]] inline void gemm_step(const float* x, int64_t row_step, const typename W::Type* w,
                                             int64_t panel_weights, const char* ahead,
                                             typename V::Reg (&acc)[kRows][kVecs * kPanels]) {
  constexpr int kBytes = static_cast<int>(sizeof(typename W::Type));
  constexpr int kVecWeights = V::kLanes * W::kGroup;
  constexpr int kAll = kVecs * kPanels;
  typename V::Reg b[kAll];
#pragma GCC unroll 16
  for (int c = 0; c < kAll; ++c) {
    const typename W::Type* p = w + (c / kVecs) * panel_weights + (c % kVecs) * kVecWeights;
    b[c] = W::template load<V, kPart>(p);
    if (!kAhead && kPart == 0 && c % kVecs * kVecWeights * kBytes % 64 == 0) {
      V::prefetch(p + kPrefetchBytes / kBytes);
      if (kPanels <= 2) V::prefetch_l2(p + kPrefetchL2Bytes / kBytes);
    }
  }
  if (kAhead) V::prefetch_l2(ahead);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    const typename V::Reg a = V::set1(x[r * row_step]);
#pragma GCC unroll 16
    for (int c = 0; c < kAll; ++c) acc[r][c] = V::fma(a, b[c], acc[r][c]);
  }
}

// Adds one leaf of leaf_k inputs to acc: see gemm_tile(). Moves x, w and `ahead` behind them.
template <class V, class W, int kRows, int kVecs, int kPanels, bool kAhead>
[[gnu::always_inline]] inline void gemm_leaf(const float*& x, int64_t row_step, int64_t k_step,
                                             const typename W::Type*& w, int64_t panel_weights, const char*& ahead,
                                             int64_t leaf_k, typename V::Reg (&acc)[kRows][kVecs * kPanels]) {
  constexpr int kAheadStep = 16 * static_cast<int>(sizeof(typename W::Type));
  for (int64_t t = 0; t + W::kGroup <= leaf_k; t += W::kGroup) {
    gemm_step<V, W, 0, kRows, kVecs, kPanels, kAhead>(x, row_step, w, panel_weights, ahead, acc);
    x += k_step;
    if (kAhead) ahead += kAheadStep;
    if constexpr (W::kGroup == 2) {
      gemm_step<V, W, 1, kRows, kVecs, kPanels, kAhead>(x, row_step, w, panel_weights, ahead, acc);
      x += k_step;
      if (kAhead) ahead += kAheadStep;
    }
    w += W::kGroup * kPanelWidth;
  }
  if (leaf_k % W::kGroup != 0) {  // the only leaf: others are whole groups
    gemm_step<V, W, 0, kRows, kVecs, kPanels, kAhead>(x, row_step, w, panel_weights, ahead, acc);
  }
}

static constexpr int kTreeLevels = 3;  // of 8 leaves: sums of 1, 2 and 4 that wait for their neighbours

// Adds to acc, the sum of leaf number `leaf`, the sums of the leaves before it that wait for it: those of as many
// leaves as acc then has. Returns where in `tree` acc is to wait.
template <class V, int kRows, int kAll>
[[gnu::always_inline]] inline float* add_waiting_leaves(int64_t leaf, float* tree,
                                                        typename V::Reg (&acc)[kRows][kAll]) {
  for (; leaf % 2 != 0; leaf /= 2) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int c = 0; c < kAll; ++c) acc[r][c] = V::add(V::load(tree + (r * kAll + c) * V::kLanes), acc[r][c]);
    }
    tree += kRows * kAll * V::kLanes;
  }
  return tree;
}

// Computes the sums of kRows rows and kAll vectors of columns, of num_leaves leaves, into sums [kRows][row_floats].
// add_leaf(acc) adds the next leaf to acc.
template <class V, int kRows, int kAll, class AddLeaf>
[[gnu::always_inline]] inline void sum_leaves(int64_t num_leaves, float* sums, int row_floats, AddLeaf&& add_leaf) {
  alignas(64) float tree[kTreeLevels * kRows * kAll * V::kLanes];
  typename V::Reg acc[kRows][kAll];
  for (int64_t leaf = 0;; ++leaf) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int c = 0; c < kAll; ++c) acc[r][c] = V::zero();
    }
    add_leaf(acc);
    float* waiting = add_waiting_leaves<V>(leaf, tree, acc);
    if (leaf + 1 == num_leaves) break;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int c = 0; c < kAll; ++c) V::store(waiting + (r * kAll + c) * V::kLanes, acc[r][c]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int c = 0; c < kAll; ++c) V::store(sums + r * row_floats + c * V::kLanes, acc[r][c]);
  }
}

// Computes the sums of kRows rows and kVecs vectors of columns of each of kPanels panels, into sums
// [kRows][row_floats]. Element (r, t) of x is x[r * row_step + t * k_step]. If kAhead, prefetches half a panel's bytes
// from `ahead` on, for later tiles.
template <class V, class W, int kRows, int kVecs, int kPanels, bool kAhead>
inline void gemm_tile(const float* x, int64_t row_step, int64_t k_step, const typename W::Type* w,
                      int64_t panel_weights, const char* ahead, int64_t k, int64_t leaf_k, float* sums,
                      int row_floats) {
  sum_leaves<V, kRows, kVecs * kPanels>(
      leaf_k < k ? k / leaf_k : 1, sums, row_floats, [&](auto& acc) __attribute__((always_inline)) {
        gemm_leaf<V, W, kRows, kVecs, kPanels, kAhead>(x, row_step, k_step, w, panel_weights, ahead, leaf_k, acc);
      });
}

// Applies bias, activation and residual, and stores columns [column, column + num_columns) of num_rows rows.
template <class V, class Activate>
inline void gemm_finish(const GemmJob& job, int64_t row, int num_rows, int64_t column, int num_columns,
                        const float* sums, int row_floats, Activate&& activate) {
  for (int r = 0; r < num_rows; ++r) {
    float* y = job.y + (row + r) * job.y_stride + column;
    const float* residual = job.residual == nullptr ? nullptr : job.residual + (row + r) * job.residual_stride + column;
    for (int c = 0; c < num_columns; c += V::kLanes) {
      const int left = num_columns - c;
      const int lanes = left < V::kLanes ? left : V::kLanes;
      typename V::Reg v = V::load(sums + r * row_floats + c);
      if (lanes == V::kLanes) {
        if (job.bias != nullptr) v = V::add(v, V::load(job.bias + column + c));
        v = activate(v);
        if (residual != nullptr) v = V::add(v, V::load(residual + c));
        V::store(y + c, v);
      } else {
        if (job.bias != nullptr) v = V::add(v, V::load_n(job.bias + column + c, lanes));
        v = activate(v);
        if (residual != nullptr) v = V::add(v, V::load_n(residual + c, lanes));
        V::store_n(y + c, v, lanes);
      }
    }
  }
}

template <class V>
inline void gemm_epilogue(const GemmJob& job, int64_t row, int num_rows, int64_t column, int num_columns,
                          const float* sums, int row_floats) {
  const int64_t left = job.n - column;
  const int columns = left < num_columns ? static_cast<int>(left) : num_columns;
  with_activation<V>(job.activation, [&](auto&& activate) {
    gemm_finish<V>(job, row, num_rows, column, columns, sums, row_floats, activate);
  });
}

// --- few rows: limited by reading the weights. Several panels at once hide the latency of the sums.

template <class V, class W, int kRows, int kPanels>
inline void gemm_few_panels(const GemmJob& job, int64_t panel) {
  alignas(64) float sums[kRows * kPanels * kPanelWidth];
  constexpr int kRowFloats = kPanels * kPanelWidth;
  const int64_t panel_weights = job.depth * kPanelWidth;
  const auto* w = static_cast<const typename W::Type*>(job.panels) + panel * panel_weights;
  gemm_tile<V, W, kRows, kPanelWidth / V::kLanes, kPanels, false>(job.x, job.x_stride, 1, w, panel_weights, nullptr,
                                                                  job.k, job.leaf_k, sums, kRowFloats);
  gemm_epilogue<V>(job, 0, kRows, panel * kPanelWidth, kRowFloats, sums, kRowFloats);
}

template <class V, class W, int kRows>
inline void gemm_few(const GemmJob& job, int64_t panel, int64_t panel_end) {
  // Registers for sums: as many panels as fit, four at most.
  constexpr int kVecs = kPanelWidth / V::kLanes;
  constexpr int kSums = V::kLanes == 16 ? 24 : 12;
  constexpr int kFit = kSums / (kRows * kVecs);
  constexpr int kPanels = kFit >= 4 ? 4 : kFit >= 2 ? 2 : 1;
  for (; panel + kPanels <= panel_end; panel += kPanels) gemm_few_panels<V, W, kRows, kPanels>(job, panel);
  if constexpr (kPanels == 4) {
    if (panel + 2 <= panel_end) {
      gemm_few_panels<V, W, kRows, 2>(job, panel);
      panel += 2;
    }
  }
  if constexpr (kPanels >= 2) {
    if (panel < panel_end) gemm_few_panels<V, W, kRows, 1>(job, panel);
  }
}

template <class V, class W, int kRows = V::kFewRows>
void gemm_few_rows(const GemmJob& job, int64_t panel_begin, int64_t panel_end) {
  if (job.m == kRows) {
    gemm_few<V, W, kRows>(job, panel_begin, panel_end);
  } else if constexpr (kRows > 1) {
    gemm_few_rows<V, W, kRows - 1>(job, panel_begin, panel_end);
  }
}

// --- many rows: limited by arithmetic. x is packed, so that a tile's rows are neighbours.

template <class V>
void gemm_pack(const GemmJob& job, int64_t num_tiles, int64_t tile_begin, int64_t tile_end, float* packed) {
  for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
    const int64_t row = even_split(job.m, num_tiles, tile);
    const int64_t rows = even_split(job.m, num_tiles, tile + 1) - row;
    transpose(job.x + row * job.x_stride, job.x_stride, rows, job.k, packed, rows);
    packed += rows * job.k;
  }
}

// `ahead`: half of the next panel, which this tile prefetches into the second-level cache. The first tile (0) and the
// second (1) of a panel take a half each, if there is a next panel. Otherwise null.
template <class V, class W, int kRows>
inline void gemm_packed_tile(const GemmJob& job, int64_t row, const float* packed, int64_t panel, const char* ahead) {
  alignas(64) float sums[kRows * kPanelWidth];
  constexpr int kColumns = V::kTileVecs * V::kLanes;
  const int64_t panel_weights = job.depth * kPanelWidth;
  const auto* w = static_cast<const typename W::Type*>(job.panels) + panel * panel_weights;
  for (int column = 0; column < kPanelWidth; column += kColumns) {
    const typename W::Type* from = w + column * W::kGroup;
    if (ahead != nullptr) {
      gemm_tile<V, W, kRows, V::kTileVecs, 1, true>(packed, 1, kRows, from, panel_weights, ahead, job.k, job.leaf_k,
                                                    sums + column, kPanelWidth);
    } else {
      gemm_tile<V, W, kRows, V::kTileVecs, 1, false>(packed, 1, kRows, from, panel_weights, nullptr, job.k, job.leaf_k,
                                                     sums + column, kPanelWidth);
    }
  }
  gemm_epilogue<V>(job, row, kRows, panel * kPanelWidth, kPanelWidth, sums, kPanelWidth);
}

template <class V, class W, int kRows = V::kTileRows>
inline void gemm_any_tile(const GemmJob& job, int64_t row, int64_t rows, const float* packed, int64_t panel,
                          const char* ahead) {
  if (rows == kRows) {
    gemm_packed_tile<V, W, kRows>(job, row, packed, panel, ahead);
  } else if constexpr (kRows > 1) {
    gemm_any_tile<V, W, kRows - 1>(job, row, rows, packed, panel, ahead);
  }
}

template <class V, class W>
void gemm_tiles(const GemmJob& job, int64_t num_tiles, int64_t tile_begin, int64_t tile_end, const float* packed,
                int64_t panel_begin, int64_t panel_end) {
  const int64_t half_bytes = job.depth * kPanelWidth / 2 * static_cast<int64_t>(sizeof(typename W::Type));
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    const float* x = packed;
    for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
      const int64_t row = even_split(job.m, num_tiles, tile);
      const int64_t rows = even_split(job.m, num_tiles, tile + 1) - row;
      const int64_t half = tile - tile_begin;
      const bool fetch = half < 2 && tile_end - tile_begin > 1 && panel + 1 < panel_end;
      const char* ahead =
          fetch ? static_cast<const char*>(job.panels) + (2 * (panel + 1) + half) * half_bytes : nullptr;
      gemm_any_tile<V, W>(job, row, rows, x, panel, ahead);
      x += rows * job.k;
    }
  }
}

}  // namespace transept
