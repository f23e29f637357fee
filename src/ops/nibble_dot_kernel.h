// Products of 4-bit codes with inputs that are rounded to int8 in the codes' groups (InputRounding::kGroups), written
// once for every level (ops/kernels.h has the rule for such files).
//
// x is near q * scale, with q in [-127, 127] and scale = max |x| / 127 of the row's group. The products of a group are
// an exact integer, which is scaled by both scales and added to the sum in float32, group by group: the bits depend on
// k alone. Codes are stored unsigned, 8 more than they mean, so that a group's sum begins at -(8 + zero) * sum of q.
//
// V is the level's Vec, D its product of such bytes (NibbleDot of dot_generic.h).
#pragma once

#include <math.h>

#include "ops/nibble_kernel.h"

namespace transept {

static constexpr int kRoundedBytes = 2;  // of an input of k: q, and its share of what stands beside it

// A row that was rounded: [k] q, [groups] scales, [groups] starts: -8 times the sum of q.
struct RoundedGroups {
  int8_t* q;
  float* scales;
  int32_t* starts;
};

// Bytes from one row to the next: at most k * kRoundedBytes, as groups are 32 or more. A line more than needed, so that
// rows of 4096 inputs do not meet in one set of the cache.
static inline int64_t rounded_row_bytes(int64_t k, int64_t group) {
  const int64_t lines = (k + k / group * 8 + 63) / 64 + 1;
  return lines * 64 < k * kRoundedBytes ? lines * 64 : k * kRoundedBytes;
}

static inline RoundedGroups rounded_groups(void* all, int64_t row, int64_t k, int64_t group) {
  auto* first = static_cast<int8_t*>(all) + row * rounded_row_bytes(k, group);
  auto* scales = reinterpret_cast<float*>(first + k);
  return {first, scales, reinterpret_cast<int32_t*>(scales + k / group)};
}

// Rounds one group, a multiple of the vector's lanes; sets *scale, and returns the sum of q.
template <class V>
inline int32_t round_group(const float* x, int64_t group, int8_t* q, float* scale) {
  using Reg = typename V::Reg;
  Reg most = V::zero(), not_finite = V::zero(), sum = V::zero();
  for (int64_t i = 0; i < group; i += V::kLanes) {
    const Reg v = V::load(x + i);
    most = V::max(V::abs(v), most);
    not_finite = V::fma(v, V::zero(), not_finite);
  }
  const float largest = V::reduce_max(most), strange = V::reduce_add(not_finite);
  constexpr float kLeast = 1e-30f;  // below it the inverse could be infinite
  const float inverse = strange == 0 && largest > kLeast ? 127 / largest : 0;
  *scale = (inverse == 0 ? 0 : largest / 127) + strange;
  for (int64_t i = 0; i < group; i += V::kLanes) {
    const Reg rounded = inverse == 0 ? V::zero() : V::round(V::mul(V::load(x + i), V::set1(inverse)));
    V::store_int8(q + i, rounded);
    sum = V::add(sum, rounded);
  }
  return static_cast<int32_t>(V::reduce_add(sum));
}

template <class V>
void round_rows_in_groups(const RoundedJob& job, int64_t row_begin, int64_t row_end, void* q, float* /*scales*/,
                          int32_t* /*zeros*/) {
  const int64_t k = job.gemm.k, group = job.gemm.nibbles.group;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const RoundedGroups to = rounded_groups(q, row, k, group);
    const float* x = job.gemm.x + row * job.gemm.x_stride;
    for (int64_t g = 0; g * group < k; ++g) {
      to.starts[g] = -8 * round_group<V>(x + g * group, group, to.q + g * group, to.scales + g);
    }
  }
}

// Adds the products of eight inputs of kRows rows. Registers hold the fewer of both factors.
template <class D, int kRows, int kVecs, int kPanels>
[[gnu::always_inline]] inline void nibble_dot_step(const int8_t* q, int64_t row_bytes, const uint8_t* w,
                                                   int64_t panel_bytes,
                                                   typename D::Part (&parts)[kRows][kVecs * kPanels]) {
  constexpr int kAll = kVecs * kPanels;
  const auto codes_of = [&](int c) __attribute__((always_inline)) {
    const uint8_t* p = w + c / kVecs * panel_bytes + c % kVecs * D::kVecBytes;
    if (c % kVecs * D::kVecBytes % 64 == 0) {
      D::prefetch(p + kPrefetchBytes);
      D::prefetch_l2(p + kPanels * panel_bytes);
    }
    return D::load(p);
  };
  const auto inputs_of = [&](int r) __attribute__((always_inline)) { return D::inputs(q + r * row_bytes); };
  if constexpr (kRows < kAll) {
    typename D::Inputs inputs[kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) inputs[r] = inputs_of(r);
#pragma GCC unroll 16
    for (int c = 0; c < kAll; ++c) {
      const typename D::Codes codes = codes_of(c);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) D::add(parts[r][c], codes, inputs[r]);
    }
  } else {
    typename D::Codes codes[kAll];
#pragma GCC unroll 16
    for (int c = 0; c < kAll; ++c) codes[c] = codes_of(c);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const typename D::Inputs inputs = inputs_of(r);
#pragma GCC unroll 16
      for (int c = 0; c < kAll; ++c) D::add(parts[r][c], codes[c], inputs);
    }
  }
}

// The integer sums of one group: q of kRows rows, `row_bytes` apart, times codes of kVecs vectors of columns of each of
// kPanels panels.
template <class D, int kRows, int kVecs, int kPanels>
[[gnu::always_inline]] inline void nibble_dot_group(const int8_t* q, int64_t row_bytes, const uint8_t* w,
                                                    int64_t panel_bytes, int64_t group,
                                                    typename D::Sum (&sums)[kRows][kVecs * kPanels]) {
  constexpr int kAll = kVecs * kPanels;
  const int64_t at_once = D::kMostInputs == 0 ? group : D::kMostInputs;
  for (int64_t begin = 0; begin < group; begin += at_once) {
    typename D::Part parts[kRows][kAll];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int c = 0; c < kAll; ++c) D::begin(parts[r][c], sums[r][c]);
    }
    for (int64_t t = 0; t < at_once; t += kStepInputs) {
      nibble_dot_step<D, kRows, kVecs, kPanels>(q, row_bytes, w, panel_bytes, parts);
      q += kStepInputs;
      w += kStepBytes;
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int c = 0; c < kAll; ++c) D::end(sums[r][c], parts[r][c]);
    }
  }
}

// Adds group number `group` of the row to acc.
template <class V, class D, bool kZeros, int kRows, int kVecs, int kPanels>
[[gnu::always_inline]] inline void nibble_dot_add(const RoundedJob& job, int64_t row, int64_t group,
                                                  const uint8_t* panel, int column,
                                                  typename V::Reg (&acc)[kRows][kVecs * kPanels]) {
  constexpr int kAll = kVecs * kPanels;
  const NibbleView& of = job.gemm.nibbles;
  const int64_t k = job.gemm.k, row_bytes = rounded_row_bytes(k, of.group);
  const RoundedGroups first = rounded_groups(const_cast<void*>(job.q), row, k, of.group);
  const auto value = [&](const auto* values, int r) {
    return *reinterpret_cast<const __typeof__(*values)*>(reinterpret_cast<const int8_t*>(values + group) +
                                                         r * row_bytes);
  };
  typename D::Sum sums[kRows][kAll];
#pragma GCC unroll 16
  for (int c = 0; c < kAll; ++c) {
    const auto* zeros = reinterpret_cast<const int16_t*>(panel + c / kVecs * of.panel_bytes + of.zeros_place) +
                        group * kPanelWidth + column + c % kVecs * V::kLanes;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      if constexpr (kZeros) {
        D::start_with_zeros(sums[r][c], value(first.starts, r), zeros);
      } else {
        D::start(sums[r][c], value(first.starts, r));
      }
    }
  }
  const uint8_t* w = panel + column * kColumnBytes + group * of.group / kStepInputs * kStepBytes;
  nibble_dot_group<D, kRows, kVecs, kPanels>(first.q + group * of.group, row_bytes, w, of.panel_bytes, of.group, sums);
#pragma GCC unroll 16
  for (int c = 0; c < kAll; ++c) {
    const auto* scales = reinterpret_cast<const float*>(panel + c / kVecs * of.panel_bytes + of.scales_place) +
                         group * kPanelWidth + column + c % kVecs * V::kLanes;
    const typename V::Reg scale = V::load(scales);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      acc[r][c] =
          V::fma(D::template to_float<V>(sums[r][c]), V::mul(scale, V::set1(value(first.scales, r))), acc[r][c]);
    }
  }
  // Keeps acc in memory between groups where registers hold the next group's integers: gcc would rather move those.
  if constexpr (kRows * kAll > 12) __asm__ volatile("" : "+m"(acc));
}

// The sums of kRows rows, as nibble_tile() computes them of rows that are not rounded. Leaves are whole groups.
template <class V, class D, bool kZeros, int kRows, int kVecs, int kPanels>
inline void nibble_dot_tile(const RoundedJob& job, int64_t row, const uint8_t* panel, int column, float* sums,
                            int row_floats) {
  const int64_t leaf_groups = job.gemm.leaf_k / job.gemm.nibbles.group;
  int64_t g = 0;
  sum_leaves<V, kRows, kVecs * kPanels>(
      job.gemm.k / job.gemm.leaf_k, sums, row_floats, [&](auto& acc) __attribute__((always_inline)) {
        for (const int64_t end = g + leaf_groups; g < end; ++g) {
          nibble_dot_add<V, D, kZeros, kRows, kVecs, kPanels>(job, row, g, panel, column, acc);
        }
      });
}

template <class V, class D, bool kZeros, int kRows, int kPanels>
inline void nibble_dot_panels(const RoundedJob& job, int64_t row, int64_t panel) {
  constexpr int kPanelVecs = kPanelWidth / V::kLanes, kFit = D::kSums / kRows;
  constexpr int kVecs = kFit >= kPanelVecs ? kPanelVecs : kFit >= 2 ? 2 : 1;
  constexpr int kColumns = kPanels * kPanelWidth;
  alignas(64) float sums[kRows * kColumns];
  for (int column = 0; column < kPanelWidth; column += kVecs * V::kLanes) {
    nibble_dot_tile<V, D, kZeros, kRows, kVecs, kPanels>(job, row, nibble_panel(job.gemm, panel), column, sums + column,
                                                         kColumns);
  }
  gemm_epilogue<V>(job.gemm, row, kRows, panel * kPanelWidth, kColumns, sums, kColumns);
}

template <class V, class D, bool kZeros, int kRows = D::kTileRows>
inline void nibble_dot_rows(const RoundedJob& job, int64_t row, int64_t rows, int64_t panel, int64_t panel_end) {
  if (rows == kRows) {
    constexpr int kPanelVecs = kPanelWidth / V::kLanes, kFit = D::kSums / kRows;
    constexpr int kPanels = kFit >= 4 * kPanelVecs ? 4 : kFit >= 2 * kPanelVecs ? 2 : 1;
    for (; panel + kPanels <= panel_end; panel += kPanels) {
      nibble_dot_panels<V, D, kZeros, kRows, kPanels>(job, row, panel);
    }
    if constexpr (kPanels > 1) {
      for (; panel < panel_end; ++panel) nibble_dot_panels<V, D, kZeros, kRows, 1>(job, row, panel);
    }
  } else if constexpr (kRows > 1) {
    nibble_dot_rows<V, D, kZeros, kRows - 1>(job, row, rows, panel, panel_end);
  }
}

template <class V, class D>
void nibble_dot_all(const RoundedJob& job, int64_t tile_begin, int64_t tile_end, int64_t panel_begin,
                    int64_t panel_end) {
  const auto run = job.gemm.nibbles.has_zero ? &nibble_dot_rows<V, D, true> : &nibble_dot_rows<V, D, false>;
  const auto run_tile = [&](int64_t tile, int64_t begin, int64_t end) {
    const int64_t row = first_row_of_tile(job, tile);
    run(job, row, first_row_of_tile(job, tile + 1) - row, begin, end);
  };
  if (tile_end - tile_begin == 1) return run_tile(tile_begin, panel_begin, panel_end);
  // A panel stays in the cache for all the tiles.
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    for (int64_t tile = tile_begin; tile < tile_end; ++tile) run_tile(tile, panel, panel + 1);
  }
}

}  // namespace transept
