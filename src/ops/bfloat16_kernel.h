// Products of bfloat16 weights with inputs that are rounded to bfloat16 (InputRounding::kBFloat16): the rounding, for
// tiles too (tile_kernel.h), and the products on vectors that multiply pairs, written once (ops/kernels.h has the rule
// for such files). V is the level's Vec, P its product of pairs: load() reads one of V::kLanes columns, pair() repeats
// one of an input, add() returns sum + a * b.
//
// Rounded inputs are [row][depth]. Every element of y is a sum of leaves, as in gemm_kernel.h; a leaf takes its inputs
// two by two, from the first to the last, whatever the shape of the tile.
#pragma once

#include "ops/gemm_kernel.h"

namespace transept {

template <class V>
void round_rows_to_bfloat16(const RoundedJob& job, int64_t row_begin, int64_t row_end, void* q, float* /*scales*/,
                            int32_t* /*zeros*/) {
  const int64_t k = job.gemm.k, depth = job.gemm.depth;
  for (int64_t r = row_begin; r < row_end; ++r) {
    const float* x = job.gemm.x + r * job.gemm.x_stride;
    uint16_t* to = static_cast<uint16_t*>(q) + r * depth;
    for (int64_t i = 0; i < depth; i += V::kLanes) {
      const int64_t left = k - i;
      V::store_bfloat16(to + i, left <= 0           ? V::zero()
                                : left >= V::kLanes ? V::load(x + i)
                                                    : V::load_n(x + i, static_cast<int>(left)));
    }
  }
}

static constexpr int kPairSums = 24;  // registers that hold sums, beside inputs and weights
static constexpr int kPairTileRows = 12;

// Computes the sums of kRows rows of q and of kPanels panels from w on, into sums [kRows][kPanels * kPanelWidth]. kOwn:
// the weights come from memory.
template <class V, class P, int kRows, int kPanels, bool kOwn>
inline void pairs_tile(const uint16_t* q, const uint16_t* w, int64_t depth, int64_t leaf_k, float* sums) {
  constexpr int kVecs = kPanelWidth / V::kLanes, kAll = kVecs * kPanels;
  const int64_t panel_weights = depth * kPanelWidth;
  int64_t t = 0;
  sum_leaves<V, kRows, kAll>(
      depth / leaf_k, sums, kPanels * kPanelWidth, [&](auto& acc) __attribute__((always_inline)) {
        for (const int64_t end = t + leaf_k; t < end; t += 2, w += 2 * kPanelWidth) {
          typename P::Weights b[kAll];
#pragma GCC unroll 16
          for (int c = 0; c < kAll; ++c) {
            const uint16_t* p = w + c / kVecs * panel_weights + c % kVecs * 2 * V::kLanes;
            b[c] = P::load(p);
            if (!kOwn) continue;
            V::prefetch(p + kPrefetchBytes / 2);
            if (kPanels <= 2) V::prefetch_l2(p + kPrefetchL2Bytes / 2);
          }
#pragma GCC unroll 16
          for (int r = 0; r < kRows; ++r) {
            const typename P::Weights a = P::pair(q + r * depth + t);
#pragma GCC unroll 16
            for (int c = 0; c < kAll; ++c) acc[r][c] = P::add(acc[r][c], a, b[c]);
          }
        }
      });
}

template <class V, class P, int kRows, int kPanels, bool kOwn>
inline void pairs_some(const RoundedJob& job, int64_t row, int64_t panel) {
  constexpr int kColumns = kPanels * kPanelWidth;
  alignas(64) float sums[kRows * kColumns];
  const int64_t depth = job.gemm.depth;
  // A row's padding belongs to the only leaf: others are whole pairs.
  const int64_t leaf_k = job.gemm.leaf_k == job.gemm.k ? depth : job.gemm.leaf_k;
  pairs_tile<V, P, kRows, kPanels, kOwn>(static_cast<const uint16_t*>(job.q) + row * depth,
                                         static_cast<const uint16_t*>(job.gemm.panels) + panel * depth * kPanelWidth,
                                         depth, leaf_k, sums);
  gemm_epilogue<V>(job.gemm, row, kRows, panel * kPanelWidth, kColumns, sums, kColumns);
}

template <class V, class P, bool kOwn, int kRows = kPairTileRows>
inline void pairs_rows(const RoundedJob& job, int64_t row, int64_t rows, int64_t panel, int64_t panel_end) {
  if (rows == kRows) {
    constexpr int kFit = kPairSums / (kRows * (kPanelWidth / V::kLanes)), kPanels = kFit >= 4 ? 4 : kFit >= 2 ? 2 : 1;
    for (; panel + kPanels <= panel_end; panel += kPanels) pairs_some<V, P, kRows, kPanels, kOwn>(job, row, panel);
    if constexpr (kPanels > 1) {
      for (; panel < panel_end; ++panel) pairs_some<V, P, kRows, 1, kOwn>(job, row, panel);
    }
  } else if constexpr (kRows > 1) {
    pairs_rows<V, P, kOwn, kRows - 1>(job, row, rows, panel, panel_end);
  }
}

template <class V, class P>
void pairs_panels(const RoundedJob& job, int64_t tile_begin, int64_t tile_end, int64_t panel_begin, int64_t panel_end) {
  const auto row_of = [&](int64_t tile) { return first_row_of_tile(job, tile); };
  if (tile_end - tile_begin == 1) {
    const int64_t row = row_of(tile_begin);
    return pairs_rows<V, P, true>(job, row, row_of(tile_end) - row, panel_begin, panel_end);
  }
  // A panel stays in the cache for all the tiles.
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
      const int64_t row = row_of(tile), rows = row_of(tile + 1) - row;
      if (tile == tile_begin) {
        pairs_rows<V, P, true>(job, row, rows, panel, panel + 1);
      } else {
        pairs_rows<V, P, false>(job, row, rows, panel, panel + 1);
      }
    }
  }
}

// Returns a level's table.
template <class V, class P>
constexpr RoundedGemmKernels make_bfloat16_kernels() {
  return {.tile_step = 1,
          .tile_rows = kPairTileRows,
          .q_bytes = 2,
          .block_bytes = kVectorBlockBytes,
          .quantize = &round_rows_to_bfloat16<V>,
          .panels = &pairs_panels<V, P>,
          .finish = nullptr};
}

}  // namespace transept
