// Products of int8 weights with rows that are quantised on the way, written once for every level (ops/kernels.h has the
// rule for such files).
//
// D is the level's product of bytes (dot_generic.h says what it has). Sums are exact, so neither the level nor the
// shape of a tile shows in them; what follows is done for each element by itself.
#pragma once

#include <math.h>

#include "ops/gemm_kernel.h"

namespace transept {

static constexpr int kInt8Step = 4 * kPanelWidth;  // bytes of a panel for each four inputs
static constexpr float kWideStep = 1.0f / 254;     // of the second row of a wide input, in scales

// Rounds one row of x to q, four inputs every `step` places; wide: what that leaves goes four places behind. The row's
// scale, NaN if the row is not finite.
template <class V, class D, bool kWide>
inline float quantize_row(const float* x, int64_t k, int64_t depth, typename D::Input* q, int64_t step) {
  using Reg = typename V::Reg;
  Reg largest = V::zero(), not_finite = V::zero();
  for (int64_t i = 0; i < k; i += V::kLanes) {
    const int64_t left = k - i;
    const Reg v = left >= V::kLanes ? V::load(x + i) : V::load_n(x + i, static_cast<int>(left));
    largest = V::max(V::abs(v), largest);
    not_finite = V::fma(v, V::zero(), not_finite);
  }
  const float most = V::reduce_max(largest);
  const float strange = V::reduce_add(not_finite);  // 0, or NaN
  const bool usable = strange == 0 && most > 0;
  const Reg inverse = V::set1(usable ? 127 / most : 0);
  for (int64_t i = 0; i < depth; i += V::kLanes) {
    const int64_t left = k - i;
    const Reg v = !usable || left <= 0 ? V::zero()
                  : left >= V::kLanes  ? V::load(x + i)
                                       : V::load_n(x + i, static_cast<int>(left));
    const Reg scaled = V::mul(v, inverse);
    const Reg whole = V::round(scaled);
    D::store_inputs(q + i / 4 * step, step, whole);
    if (kWide) {
      const Reg rest = V::round(V::mul(V::sub(scaled, whole), V::set1(1 / kWideStep)));
      D::store_inputs(q + i / 4 * step + 4, step, rest);
    }
  }
  return most / 127 + strange;
}

template <class V, class D>
void quantize_tiles(const Int8Job& job, int64_t tile_begin, int64_t tile_end, void* q, float* row_scales) {
  const int64_t share = job.is_wide ? 2 : 1;
  for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
    const int64_t begin = even_split(job.gemm.m, job.num_tiles, tile);
    const int64_t end = even_split(job.gemm.m, job.num_tiles, tile + 1);
    const int64_t step = (end - begin) * share * 4;
    for (int64_t r = begin; r < end; ++r) {
      const float* x = job.gemm.x + r * job.gemm.x_stride;
      auto* to = static_cast<typename D::Input*>(q) + begin * share * job.depth + (r - begin) * share * 4;
      row_scales[r] = job.is_wide ? quantize_row<V, D, true>(x, job.gemm.k, job.depth, to, step)
                                  : quantize_row<V, D, false>(x, job.gemm.k, job.depth, to, step);
    }
  }
}

// The sums of kRows quantised rows and kVecs vectors of weights of each of kPanels panels, into sums [kRows][row_ints].
template <class D, int kRows, int kVecs, int kPanels, bool kFetch>
inline void int8_tile(const typename D::Input* q, int64_t depth, const int8_t* w, int32_t* sums, int row_ints) {
  constexpr int kAll = kVecs * kPanels;
  typename D::Sum acc[kRows][kAll];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int c = 0; c < kAll; ++c) D::clear(acc[r][c]);
  }
  const int64_t panel_bytes = depth * kPanelWidth;
  for (int64_t t = 0; t < depth; t += 4) {
    typename D::Weights b[kAll];
#pragma GCC unroll 16
    for (int c = 0; c < kAll; ++c) {
      const int8_t* p = w + (c / kVecs) * panel_bytes + (c % kVecs) * D::kVecBytes;
      b[c] = D::load(p);
      if (kFetch && c % kVecs * D::kVecBytes % 64 == 0) {
        D::prefetch(p + kPrefetchBytes);
        if (kPanels <= 2) D::prefetch_l2(p + kPrefetchL2Bytes);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const auto a = D::broadcast(q + 4 * r);
#pragma GCC unroll 16
      for (int c = 0; c < kAll; ++c) D::add(acc[r][c], a, b[c]);
    }
    q += 4 * kRows;
    w += kInt8Step;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int c = 0; c < kAll; ++c) {
      D::store(sums + r * row_ints + (c / kVecs) * kPanelWidth + (c % kVecs) * (D::kVecBytes / 4), acc[r][c]);
    }
  }
}

// Sums of `rows` rows of y (wide: two rows of sums each) to floats.
template <class V, class D, bool kWide>
inline void int8_scale(const Int8Job& job, int64_t row, int rows, int64_t column, int columns, const int32_t* sums,
                       float* out) {
  for (int r = 0; r < rows; ++r) {
    const typename V::Reg row_scale = V::set1(job.row_scales[row + r]);
    const int32_t* from = sums + (kWide ? 2 * r : r) * columns;
    for (int c = 0; c < columns; c += V::kLanes) {
      typename V::Reg v = D::template corrected<V>(from + c, job.offsets + column + c);
      if (kWide) {
        const typename V::Reg rest = D::template corrected<V>(from + columns + c, job.offsets + column + c);
        v = V::fma(rest, V::set1(kWideStep), v);
      }
      V::store(out + r * columns + c, V::mul(V::mul(v, row_scale), V::load(job.scales + column + c)));
    }
  }
}

// Vectors of one panel, and panels side by side, that kRows rows have registers for: several panels at once hide the
// latency of the sums where rows are few, and are more streams of memory.
template <class D, int kRows>
struct Int8Shape {
  static constexpr int kFit = D::kSums / kRows;
  static constexpr int kPanelVecs = kInt8Step / D::kVecBytes;
  static constexpr int kPanels = kFit >= 4 * kPanelVecs ? 4 : kFit >= 2 * kPanelVecs ? 2 : 1;
  static constexpr int kVecs = kFit >= kPanelVecs ? kPanelVecs : kFit >= 2 ? 2 : 1;
};

// kRows quantised rows from `row` of y on.
template <class V, class D, int kRows, int kPanels, bool kFetch>
inline void int8_some(const Int8Job& job, int64_t row, int64_t panel) {
  alignas(64) int32_t sums[kRows * kPanels * kPanelWidth];
  alignas(64) float scaled[kRows * kPanels * kPanelWidth];
  constexpr int kColumns = kPanels * kPanelWidth;
  constexpr int kVecs = Int8Shape<D, kRows>::kVecs;
  const auto* q = static_cast<const typename D::Input*>(job.q) + (job.is_wide ? 2 * row : row) * job.depth;
  const auto* w = static_cast<const int8_t*>(job.gemm.panels) + panel * job.depth * kPanelWidth;
  for (int part = 0; part < kInt8Step; part += kVecs * D::kVecBytes) {
    int8_tile<D, kRows, kVecs, kPanels, kFetch>(q, job.depth, w + part, sums + part / 4, kColumns);
  }
  const int64_t column = panel * kPanelWidth;
  if (job.is_wide) {
    if constexpr (kRows % 2 == 0) {
      int8_scale<V, D, true>(job, row, kRows / 2, column, kColumns, sums, scaled);
      gemm_epilogue<V>(job.gemm, row, kRows / 2, column, kColumns, scaled, kColumns);
    }
  } else {
    int8_scale<V, D, false>(job, row, kRows, column, kColumns, sums, scaled);
    gemm_epilogue<V>(job.gemm, row, kRows, column, kColumns, scaled, kColumns);
  }
}

template <class V, class D, int kRows, bool kFetch>
inline void int8_run(const Int8Job& job, int64_t row, int64_t panel, int64_t panel_end) {
  constexpr int kPanels = Int8Shape<D, kRows>::kPanels;
  for (; panel + kPanels <= panel_end; panel += kPanels) int8_some<V, D, kRows, kPanels, kFetch>(job, row, panel);
  if constexpr (kPanels > 1) {
    for (; panel < panel_end; ++panel) int8_some<V, D, kRows, 1, kFetch>(job, row, panel);
  }
}

template <class V, class D, bool kFetch, int kRows = D::kTileRows>
inline void int8_run_rows(const Int8Job& job, int64_t row, int64_t rows, int64_t panel, int64_t panel_end) {
  if (rows == kRows) {
    int8_run<V, D, kRows, kFetch>(job, row, panel, panel_end);
  } else if constexpr (kRows > 1) {
    int8_run_rows<V, D, kFetch, kRows - 1>(job, row, rows, panel, panel_end);
  }
}

template <class V, class D>
void int8_panels(const Int8Job& job, int64_t tile_begin, int64_t tile_end, int64_t panel_begin, int64_t panel_end) {
  const int64_t share = job.is_wide ? 2 : 1;
  const auto row_of = [&](int64_t tile) { return even_split(job.gemm.m, job.num_tiles, tile); };
  if (tile_end - tile_begin == 1) {
    const int64_t row = row_of(tile_begin);
    int8_run_rows<V, D, true>(job, row, (row_of(tile_end) - row) * share, panel_begin, panel_end);
    return;
  }
  // A panel stays in the cache for all the tiles.
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
      const int64_t row = row_of(tile), rows = (row_of(tile + 1) - row) * share;
      if (tile == tile_begin) {
        int8_run_rows<V, D, true>(job, row, rows, panel, panel + 1);
      } else {
        int8_run_rows<V, D, false>(job, row, rows, panel, panel + 1);
      }
    }
  }
}

}  // namespace transept
