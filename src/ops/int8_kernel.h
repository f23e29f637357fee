// Products of int8 weights with rows of x quantised to int8, written once for every level (ops/kernels.h has the rule
// for such files).
//
// V is the level's Vec, D its product of bytes (dot_generic.h describes it). Sums are exact, so they do not depend on
// the level or the shape of a tile. The rest is done for each element by itself.
#pragma once

#include <math.h>

#include "ops/gemm_kernel.h"

namespace transept {

static constexpr int kInt8Step = 4 * kPanelWidth;  // bytes of a panel for four inputs
static constexpr float kWideStep = 1.0f / 254;     // a step of the second row of a wide input, in scales

// What a tile prefetches: nothing, if its weights are in the cache; its own weights; or the next panel's, for later
// tiles.
enum class Int8Fetch { kNothing, kOwn, kNext };

// The rounding of a row: x is near (q - zero) * scale for unsigned q, q * scale for signed q.
struct RowCode {
  float scale;   // NaN if the row is not finite
  int32_t zero;  // added to what D stores as unsigned bytes (dot_vnni.h)
};

// Rows of a smaller range become zeros: the inverse of the range could be infinite.
static constexpr float kLeastRange = 1e-30f;

// With only_outliers, rows that lose at most this share of their root mean square by one rounding are rounded once:
// entries of a normal distribution lose less (0.8 % of 3072 of them).
static constexpr float kMostLost = 0.01f;

struct RowRange {
  float low, high;  // low <= 0 <= high
  float strange;    // 0, or NaN where an entry is not finite
};

template <class V>
inline RowRange range_of_row(const float* x, int64_t k) {
  using Reg = typename V::Reg;
  Reg high = V::zero(), low = V::zero(), not_finite = V::zero();
  for (int64_t i = 0; i < k; i += V::kLanes) {
    const int64_t left = k - i;
    const Reg v = left >= V::kLanes ? V::load(x + i) : V::load_n(x + i, static_cast<int>(left));
    high = V::max(v, high);
    low = V::max(V::sub(V::zero(), v), low);
    not_finite = V::fma(v, V::zero(), not_finite);
  }
  return {-V::reduce_max(low), V::reduce_max(high), V::reduce_add(not_finite)};
}

// Calls body(i, x * inverse) for the row's vectors, with zeros from k to depth.
template <class V, class Body>
inline void for_scaled(const float* x, int64_t k, int64_t depth, float inverse, Body&& body) {
  for (int64_t i = 0; i < depth; i += V::kLanes) {
    const int64_t left = inverse == 0 ? 0 : k - i;
    const typename V::Reg v = left <= 0           ? V::zero()
                              : left >= V::kLanes ? V::load(x + i)
                                                  : V::load_n(x + i, static_cast<int>(left));
    body(i, V::mul(v, V::set1(inverse)));
  }
}

// The rounding of a row to 255 steps between its least and largest entry, 0 included.
struct RowSteps {
  float inverse;  // steps per unit; 0: every entry becomes 0
  float zero;     // the step of 0
  RowCode code;
};

static inline RowSteps steps_of_range(const RowRange& range) {
  const float width = range.high - range.low;
  const float inverse = range.strange == 0 && width > kLeastRange ? 255 / width : 0;
  // Adding and taking away 1.5 * 2^23 rounds to the nearest integer.
  const float zero = (-range.low * inverse + 12582912.0f) - 12582912.0f;
  return {
      inverse, zero, {(inverse == 0 ? 0 : width / 255) + range.strange, inverse == 0 ? 0 : static_cast<int32_t>(zero)}};
}

template <class V>
inline typename V::Reg to_steps(const RowSteps& row, typename V::Reg scaled) {
  if (row.inverse == 0) return V::zero();
  return V::min(V::max(V::round(scaled), V::set1(-row.zero)), V::set1(255 - row.zero));
}

template <class V>
inline RowStatistics statistics_of_leaf(const float* x, int64_t k) {
  using Reg = typename V::Reg;
  Reg high = V::zero(), low = V::zero(), not_finite = V::zero(), squares = V::zero(), count = V::zero();
  const Reg one = V::set1(1);
  for (int64_t i = 0; i < k; i += V::kLanes) {
    const int64_t left = k - i;
    const Reg v = left >= V::kLanes ? V::load(x + i) : V::load_n(x + i, static_cast<int>(left));
    high = V::max(v, high);
    low = V::max(V::sub(V::zero(), v), low);
    not_finite = V::fma(v, V::zero(), not_finite);
    squares = V::fma(v, v, squares);
    count = V::add(count, V::select_lt(V::zero(), V::abs(v), one, V::zero()));
  }
  return {-V::reduce_max(low), V::reduce_max(high), V::reduce_add(not_finite), V::reduce_add(squares),
          V::reduce_add(count)};
}

// Of a row of leaves, whose squares are added as products add leaves: ranks that have some of them find the same bits.
template <class V>
inline RowStatistics statistics_of_row(const float* x, int64_t k, int64_t leaf_k) {
  RowStatistics tree[kTreeLevels];
  for (int64_t leaf = 0, begin = 0;; ++leaf) {
    RowStatistics sum = statistics_of_leaf<V>(x + begin, leaf_k);
    int level = 0;
    for (int64_t i = leaf; i % 2 != 0; i /= 2, ++level) sum = merged(tree[level], sum);
    begin += leaf_k;
    if (begin >= k) return sum;
    tree[level] = sum;
  }
}

// Returns whether one rounding loses more than kMostLost: the mean squared error of an entry other than 0 is a twelfth
// of a step's square. True for rows whose squares are not finite.
static inline bool is_rough_row(const RowStatistics& row) {
  const float step = (row.high - row.low) / 255;
  const float lost = row.count / 12 * step * step;
  return !(row.squares < HUGE_VALF && lost <= kMostLost * kMostLost * row.squares);
}

template <class V>
void find_rough_rows(const GemmJob& job, const RowStatistics* given, int64_t row_begin, int64_t row_end,
                     bool* is_rough) {
  for (int64_t r = row_begin; r < row_end; ++r) {
    const float* x = job.x + r * job.x_stride;
    is_rough[r] = is_rough_row(given != nullptr ? given[r] : statistics_of_row<V>(x, job.k, job.leaf_k));
  }
}

template <class V>
void find_row_statistics(const GemmJob& job, int64_t row_begin, int64_t row_end, RowStatistics* statistics) {
  for (int64_t r = row_begin; r < row_end; ++r) {
    statistics[r] = statistics_of_row<V>(job.x + r * job.x_stride, job.k, job.leaf_k);
  }
}

static inline RowRange range_of(const RowStatistics& row) { return {row.low, row.high, row.strange}; }

// Quantises a row into q: each four inputs `step` places after the four before, zeros from k to depth. given: the row's
// statistics; null: found from x.
template <class V, class D>
inline RowCode quantize_row(const float* x, const RowStatistics* given, int64_t k, int64_t depth, typename D::Input* q,
                            int64_t step) {
  const RowSteps row = steps_of_range(given != nullptr ? range_of(*given) : range_of_row<V>(x, k));
  for_scaled<V>(x, k, depth, row.inverse, [&](int64_t i, typename V::Reg scaled) {
    D::store_inputs(q + i / 4 * step, step, to_steps<V>(row, scaled), row.code.zero);
  });
  return row.code;
}

// Finds the ranges of four rows at once: the additions of one row would wait for each other.
template <class V>
inline void ranges_of_four(const float* const (&x)[4], int64_t k, RowRange (&ranges)[4]) {
  using Reg = typename V::Reg;
  Reg high[4], low[4], not_finite[4];
  for (int r = 0; r < 4; ++r) high[r] = low[r] = not_finite[r] = V::zero();
  const auto look_at = [&](auto&& load) {
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const Reg v = load(x[r]);
      high[r] = V::max(v, high[r]);
      low[r] = V::max(V::sub(V::zero(), v), low[r]);
      not_finite[r] = V::fma(v, V::zero(), not_finite[r]);
    }
  };
  int64_t i = 0;
  for (; i + V::kLanes <= k; i += V::kLanes) look_at([&](const float* row) { return V::load(row + i); });
  if (i < k) look_at([&](const float* row) { return V::load_n(row + i, static_cast<int>(k - i)); });
  for (int r = 0; r < 4; ++r) {
    ranges[r] = {-V::reduce_max(low[r]), V::reduce_max(high[r]), V::reduce_add(not_finite[r])};
  }
}

// quantize_row() of four rows that are neighbours in q, with fewer and wider stores.
template <class V, class D>
inline void quantize_four(const float* const (&x)[4], const RowStatistics* const (&given)[4], int64_t k, int64_t depth,
                          typename D::Input* q, int64_t step, float* scales, int32_t* zeros) {
  RowRange ranges[4];
  if (given[0] == nullptr) {
    ranges_of_four<V>(x, k, ranges);
  } else {
    for (int r = 0; r < 4; ++r) ranges[r] = range_of(*given[r]);
  }
  typename V::Reg inverse[4];
  int32_t shifts[4];
  for (int r = 0; r < 4; ++r) {
    const RowSteps steps = steps_of_range(ranges[r]);
    inverse[r] = V::set1(steps.inverse);
    scales[r] = steps.code.scale;
    zeros[r] = shifts[r] = steps.code.zero;
  }
  const auto store = [&](int64_t i, auto&& load) {
    typename V::Reg scaled[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) scaled[r] = V::mul(load(x[r]), inverse[r]);
    D::store_four(q + i / 4 * step, step, scaled, shifts);
  };
  int64_t i = 0;
  for (; i + V::kLanes <= k; i += V::kLanes) store(i, [&](const float* row) { return V::load(row + i); });
  for (; i < depth; i += V::kLanes) {
    const int left = i < k ? static_cast<int>(k - i) : 0;
    store(i, [&](const float* row) { return V::load_n(row + i, left); });
  }
}

// Quantises a wide row: to 127 steps on either side of 0, and the remainder, in steps of kWideStep, to `rest_place`
// places behind.
template <class V, class D>
inline RowCode quantize_row_wide(const float* x, const RowStatistics* given, int64_t k, int64_t depth,
                                 typename D::Input* q, int64_t step, int64_t rest_place) {
  const RowRange range = given != nullptr ? range_of(*given) : range_of_row<V>(x, k);
  const float most = range.high > -range.low ? range.high : -range.low;
  const float inverse = range.strange == 0 && most > kLeastRange ? 127 / most : 0;
  constexpr int32_t kZero = 128;
  for_scaled<V>(x, k, depth, inverse, [&](int64_t i, typename V::Reg scaled) {
    const typename V::Reg whole = V::round(scaled);
    D::store_inputs(q + i / 4 * step, step, whole, kZero);
    const typename V::Reg rest = V::round(V::mul(V::sub(scaled, whole), V::set1(1 / kWideStep)));
    D::store_inputs(q + i / 4 * step + rest_place, step, rest, kZero);
  });
  return {(inverse == 0 ? 0 : most / 127) + range.strange, kZero};
}

// Null: not given.
static inline const RowStatistics* given_of_row(const RoundedJob& job, int64_t row) {
  return job.given == nullptr ? nullptr : job.given + row_of_x(job.rows, row);
}

// Quantises rows [begin, end). Rows are divided into tiles, each [depth / 4][rows][4] in q.
template <class V, class D>
void quantize_rows(const RoundedJob& job, int64_t row_begin, int64_t row_end, void* q, float* scales, int32_t* zeros) {
  const int64_t share = rounded_share(job.is_wide);
  int64_t tile = row_begin * job.num_tiles / job.gemm.m;  // or a neighbour of it
  while (tile > 0 && first_row_of_tile(job, tile) > row_begin) --tile;
  for (int64_t r = row_begin; r < row_end;) {
    while (first_row_of_tile(job, tile + 1) <= r) ++tile;
    const int64_t begin = first_row_of_tile(job, tile), end = first_row_of_tile(job, tile + 1);
    const int64_t step = (end - begin) * share * 4;
    const auto x = [&](int64_t row) { return job.gemm.x + row_of_x(job.rows, row) * job.gemm.x_stride; };
    const auto given = [&](int64_t row) { return given_of_row(job, row); };
    auto* to = static_cast<typename D::Input*>(q) + begin * share * job.gemm.depth + (r - begin) * share * 4;
    if constexpr (D::kStoresFours) {
      if (!job.is_wide && r + 4 <= row_end && r + 4 <= end) {
        const float* const four[4] = {x(r), x(r + 1), x(r + 2), x(r + 3)};
        const RowStatistics* const of_four[4] = {given(r), given(r + 1), given(r + 2), given(r + 3)};
        quantize_four<V, D>(four, of_four, job.gemm.k, job.gemm.depth, to, step, scales + r, zeros + r);
        r += 4;
        continue;
      }
    }
    const RowCode code = job.is_wide ? quantize_row_wide<V, D>(x(r), given(r), job.gemm.k, job.gemm.depth, to, step, 4)
                                     : quantize_row<V, D>(x(r), given(r), job.gemm.k, job.gemm.depth, to, step);
    scales[r] = code.scale;
    zeros[r] = code.zero;
    ++r;
  }
}

// Computes the sums of kRows quantised rows and kVecs vectors of weights of each of kPanels panels, into sums
// [kRows][row_ints].
template <class D, int kRows, int kVecs, int kPanels, Int8Fetch kFetch>
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
      if (c % kVecs * D::kVecBytes % 64 != 0) continue;
      if (kFetch == Int8Fetch::kOwn) {
        D::prefetch(p + kPrefetchBytes);
        if (kPanels <= 2) D::prefetch_l2(p + kPrefetchL2Bytes);
      }
      if (kFetch == Int8Fetch::kNext) D::prefetch_l2(p + panel_bytes);
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

// Stores `rows` rows of y from their sums (wide: two rows of sums each): applies scales, bias, activation and residual.
template <class V, class D, bool kWide, class Activate>
inline void int8_finish(const RoundedJob& job, int64_t row, int rows, int64_t column, int columns, const int32_t* sums,
                        int row_ints, Activate&& activate) {
  const GemmJob gemm = job.gemm;  // a copy: stores to y could change the original
  const float* row_scales = job.row_scales + row;
  const int32_t* row_zeros = job.row_zeros + row;
  const int32_t* rows_of_x = job.rows;
  for (int c = 0; c < columns; c += V::kLanes) {
    const int lanes = columns - c < V::kLanes ? columns - c : V::kLanes;
    const bool whole = lanes == V::kLanes;
    const int32_t* weight_sums = job.weight_sums + column + c;
    const typename V::Reg scale = V::load(job.scales + column + c);
    const typename V::Reg bias = gemm.bias == nullptr ? V::zero()
                                 : whole              ? V::load(gemm.bias + column + c)
                                                      : V::load_n(gemm.bias + column + c, lanes);
    for (int r = 0; r < rows; ++r) {
      const int32_t* from = sums + (kWide ? 2 * r : r) * row_ints + c;
      const int32_t zero = row_zeros[r];
      typename V::Reg v = D::template corrected<V>(from, weight_sums, zero);
      if (kWide) v = V::fma(D::template corrected<V>(from + row_ints, weight_sums, zero), V::set1(kWideStep), v);
      v = V::mul(V::mul(v, V::set1(row_scales[r])), scale);
      v = activate(V::add(v, bias));
      const int64_t to = row_of_x(rows_of_x, row + r);
      float* y = gemm.y + to * gemm.y_stride + column + c;
      const float* residual =
          gemm.residual == nullptr ? nullptr : gemm.residual + to * gemm.residual_stride + column + c;
      if (whole) {
        V::store(y, residual == nullptr ? v : V::add(v, V::load(residual)));
      } else {
        V::store_n(y, residual == nullptr ? v : V::add(v, V::load_n(residual, lanes)), lanes);
      }
    }
  }
}

// Keeps the sums of `rows` rows (wide: two each) as integers, which those of other parts of the inputs are added to.
template <class D, bool kWide>
inline void int8_keep(const RoundedJob& job, int64_t row, int rows, int64_t column, int num_columns,
                      const int32_t* sums) {
  constexpr int kShare = kWide ? 2 : 1;
  const int32_t* weight_sums = job.weight_sums + column;
  for (int r = 0; r < rows * kShare; ++r) {
    const int32_t zero = D::kRaisesInputs ? job.row_zeros[row + r / kShare] : 0;
    int32_t* to = job.integers + (row * kShare + r) * job.integer_stride + column;
    for (int c = 0; c < num_columns; ++c) to[c] = sums[r * num_columns + c] - weight_sums[c] * zero;
  }
}

template <class V, class D>
void int8_finish_rows(const RoundedJob& job, int64_t row_begin, int64_t row_end) {
  with_activation<V>(job.gemm.activation, [&](auto&& activate) {
    for (int64_t row = row_begin; row < row_end; ++row) {
      const int32_t* sums = job.integers + row * rounded_share(job.is_wide) * job.integer_stride;
      const auto columns = static_cast<int>(job.gemm.n), stride = static_cast<int>(job.integer_stride);
      if (job.is_wide) {
        int8_finish<V, D, true>(job, row, 1, 0, columns, sums, stride, activate);
      } else {
        int8_finish<V, D, false>(job, row, 1, 0, columns, sums, stride, activate);
      }
    }
  });
}

template <class V, class D, bool kWide>
inline void int8_epilogue(const RoundedJob& job, int64_t row, int rows, int64_t column, int num_columns,
                          const int32_t* sums) {
  if (job.integers != nullptr) return int8_keep<D, kWide>(job, row, rows, column, num_columns, sums);
  const int64_t left = job.gemm.n - column;
  const int columns = left < num_columns ? static_cast<int>(left) : num_columns;
  with_activation<V>(job.gemm.activation, [&](auto&& activate) {
    int8_finish<V, D, kWide>(job, row, rows, column, columns, sums, num_columns, activate);
  });
}

// Prefetches what the epilogue reads of each column: three short streams, which no other code prefetches in time.
template <class D>
inline void prefetch_columns(const RoundedJob& job, int64_t column, int num_columns) {
  const float* bias = job.gemm.bias == nullptr ? job.scales : job.gemm.bias;
  for (int64_t c = column; c < column + num_columns; c += 16) {
    D::prefetch(job.scales + c);
    D::prefetch(job.weight_sums + c);
    D::prefetch(bias + c);
  }
  D::prefetch(bias + column + num_columns - 1);  // a bias begins anywhere in a line
}

// How many vectors of a panel, and how many panels, kRows rows have registers for. Several panels at once hide the
// latency of the sums if rows are few, and are more streams of memory.
template <class D, int kRows>
struct Int8Shape {
  static constexpr int kFit = D::kSums / kRows;
  static constexpr int kPanelVecs = kInt8Step / D::kVecBytes;
  static constexpr int kPanels = kFit >= 4 * kPanelVecs ? 4 : kFit >= 2 * kPanelVecs ? 2 : 1;
  static constexpr int kVecs = kFit >= kPanelVecs ? kPanelVecs : kFit >= 2 ? 2 : 1;
};

// Computes kRows quantised rows of kPanels panels, and stores y from row `row` on.
template <class V, class D, int kRows, int kPanels, Int8Fetch kFetch>
inline void int8_some(const RoundedJob& job, int64_t row, int64_t panel) {
  alignas(64) int32_t sums[kRows * kPanels * kPanelWidth];
  constexpr int kColumns = kPanels * kPanelWidth;
  constexpr int kVecs = Int8Shape<D, kRows>::kVecs;
  const auto* q = static_cast<const typename D::Input*>(job.q) + (job.is_wide ? 2 * row : row) * job.gemm.depth;
  const auto* w = static_cast<const int8_t*>(job.gemm.panels) + panel * job.gemm.depth * kPanelWidth;
  prefetch_columns<D>(job, panel * kPanelWidth, kColumns);
  for (int part = 0; part < kInt8Step; part += kVecs * D::kVecBytes) {
    int8_tile<D, kRows, kVecs, kPanels, kFetch>(q, job.gemm.depth, w + part, sums + part / 4, kColumns);
  }
  const int64_t column = panel * kPanelWidth;
  if (job.is_wide) {
    if constexpr (kRows % 2 == 0) {
      int8_epilogue<V, D, true>(job, row, kRows / 2, column, kColumns, sums);
    }
  } else {
    int8_epilogue<V, D, false>(job, row, kRows, column, kColumns, sums);
  }
}

template <class V, class D, int kRows, Int8Fetch kFetch>
inline void int8_run(const RoundedJob& job, int64_t row, int64_t panel, int64_t panel_end) {
  constexpr int kPanels = Int8Shape<D, kRows>::kPanels;
  for (; panel + kPanels <= panel_end; panel += kPanels) int8_some<V, D, kRows, kPanels, kFetch>(job, row, panel);
  if constexpr (kPanels > 1) {
    for (; panel < panel_end; ++panel) int8_some<V, D, kRows, 1, kFetch>(job, row, panel);
  }
}

template <class V, class D, Int8Fetch kFetch, int kRows = D::kTileRows>
inline void int8_run_rows(const RoundedJob& job, int64_t row, int64_t rows, int64_t panel, int64_t panel_end) {
  if (rows == kRows) {
    int8_run<V, D, kRows, kFetch>(job, row, panel, panel_end);
  } else if constexpr (kRows > 1) {
    int8_run_rows<V, D, kFetch, kRows - 1>(job, row, rows, panel, panel_end);
  }
}

template <class V, class D>
void int8_panels(const RoundedJob& job, int64_t tile_begin, int64_t tile_end, int64_t panel_begin, int64_t panel_end) {
  const int64_t share = rounded_share(job.is_wide);
  const auto row_of = [&](int64_t tile) { return first_row_of_tile(job, tile); };
  if (tile_end - tile_begin == 1) {
    const int64_t row = row_of(tile_begin);
    int8_run_rows<V, D, Int8Fetch::kOwn>(job, row, (row_of(tile_end) - row) * share, panel_begin, panel_end);
    return;
  }
  // A panel stays in the cache for all the tiles.
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
      const int64_t row = row_of(tile), rows = (row_of(tile + 1) - row) * share;
      if (tile == tile_begin && panel == panel_begin) {
        int8_run_rows<V, D, Int8Fetch::kOwn>(job, row, rows, panel, panel + 1);
      } else if (tile == tile_begin + 1 && panel + 1 < panel_end) {
        int8_run_rows<V, D, Int8Fetch::kNext>(job, row, rows, panel, panel + 1);
      } else {
        int8_run_rows<V, D, Int8Fetch::kNothing>(job, row, rows, panel, panel + 1);
      }
    }
  }
}

}  // namespace transept
