// Products of float32 inputs with 4-bit codes (ops/nibble_panels.h), written once for every level (ops/kernels.h has
// the rule for such files). A code becomes (table[code] - zero) * scale in registers, each operation rounded to
// float32, and is added as gemm_kernel.h adds float32 weights: y has the bits of the product with the matrix that such
// numbers make.
#pragma once

#include "ops/gemm_kernel.h"

namespace transept {

static constexpr int kStepInputs = 8;                 // = kNibbleInputs of nibble_panels.h
static constexpr int kStepBytes = kPanelWidth * 4;    // of a panel, for so many inputs
static constexpr int kColumnBytes = kStepInputs / 2;  // of one column

// What stands beside codes: nothing but scales of runs of inputs; zeros too; or groups of any inputs.
enum class NibbleKind { kScales, kZeros, kInputGroups };

// Where an input's code lies in the 32 bits of its column.
static constexpr int nibble_shift(int input) { return input % 4 * 8 + input / 4 * 4; }

// The scales and zeros of kAll vectors of columns at the inputs in use.
template <class V, NibbleKind kKind, int kVecs, int kPanels>
struct NibbleScales {
  static constexpr int kAll = kVecs * kPanels;

  const NibbleView& of;
  const uint8_t* panel;  // the first one
  int column;            // the first in each panel
  const float* scales = nullptr;
  const int16_t* zeros = nullptr;
  alignas(64) float float_zeros[kKind == NibbleKind::kZeros ? kAll * V::kLanes : 1];

  static int64_t place(const NibbleView& view, int c) { return c / kVecs * view.panel_bytes; }
  const float* scale(int c) const {
    const auto* first = reinterpret_cast<const uint8_t*>(scales) + place(of, c);
    return reinterpret_cast<const float*>(first) + c % kVecs * V::kLanes;
  }
  const int16_t* zero(int c) const {
    const auto* first = reinterpret_cast<const uint8_t*>(zeros) + place(of, c);
    return reinterpret_cast<const int16_t*>(first) + c % kVecs * V::kLanes;
  }
  [[gnu::always_inline]] void move_to(int64_t group) {
    scales = reinterpret_cast<const float*>(panel + of.scales_place) + group * kPanelWidth + column;
    if (kKind == NibbleKind::kScales) return;
    zeros = reinterpret_cast<const int16_t*>(panel + of.zeros_place) + group * kPanelWidth + column;
    if constexpr (kKind == NibbleKind::kZeros) {
      for (int c = 0; c < kAll; ++c) V::store(float_zeros + c * V::kLanes, V::load_int16(zero(c)));
    }
  }
  [[gnu::always_inline]] typename V::Reg applied(int c, typename V::Reg value) const {
    if constexpr (kKind == NibbleKind::kZeros) value = V::sub(value, V::load(float_zeros + c * V::kLanes));
    if constexpr (kKind == NibbleKind::kInputGroups) {
      if (of.has_zero) value = V::sub(value, V::load_int16(zero(c)));
    }
    return V::mul(value, V::load(scale(c)));
  }
};

// Adds input kInput of eight of kRows rows to acc, and those behind it.
template <class V, NibbleKind kKind, int kRows, int kVecs, int kPanels, int kInput = 0>
[[gnu::always_inline]] inline void nibble_inputs(const float* x, int64_t row_step, int64_t k_step, int64_t input,
                                                 const typename V::Table& table,
                                                 const typename V::Nibbles (&codes)[kVecs * kPanels],
                                                 NibbleScales<V, kKind, kVecs, kPanels>& scales,
                                                 typename V::Reg (&acc)[kRows][kVecs * kPanels]) {
  if constexpr (kInput < kStepInputs) {
    if (kKind == NibbleKind::kInputGroups) scales.move_to(scales.of.input_groups[input]);
    typename V::Reg a[kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) a[r] = V::set1(x[r * row_step]);
#pragma GCC unroll 16
    for (int c = 0; c < kVecs * kPanels; ++c) {
      const typename V::Reg b = scales.applied(c, V::template look_up<nibble_shift(kInput)>(table, codes[c]));
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) acc[r][c] = V::fma(a[r], b, acc[r][c]);
    }
    nibble_inputs<V, kKind, kRows, kVecs, kPanels, kInput + 1>(x + k_step, row_step, k_step, input + 1, table, codes,
                                                               scales, acc);
  }
}

// As gemm_tile(): sums of kRows rows and kVecs vectors of columns, from `column` on, of each of kPanels panels.
template <class V, NibbleKind kKind, int kRows, int kVecs, int kPanels>
inline void nibble_tile(const NibbleView& of, const float* x, int64_t row_step, int64_t k_step, const uint8_t* panel,
                        int column, int64_t k, int64_t leaf_k, float* sums, int row_floats) {
  constexpr int kAll = kVecs * kPanels;
  NibbleScales<V, kKind, kVecs, kPanels> scales{of, panel, column};
  const typename V::Table table = V::load_table(of.table);
  const uint8_t* w = panel + column * kColumnBytes;
  int64_t t = 0, next_group = 0;
  sum_leaves<V, kRows, kAll>(
      k / leaf_k, sums, row_floats, [&](auto& acc) __attribute__((always_inline)) {
        for (const int64_t end = t + leaf_k; t < end; t += kStepInputs) {
          if (kKind != NibbleKind::kInputGroups && t == next_group) {
            scales.move_to(t / of.group);
            next_group += of.group;
          }
          typename V::Nibbles codes[kAll];
#pragma GCC unroll 16
          for (int c = 0; c < kAll; ++c) {
            const uint8_t* p = w + c / kVecs * of.panel_bytes + c % kVecs * V::kLanes * kColumnBytes;
            codes[c] = V::load_nibbles(p);
            if (c % kVecs * V::kLanes * kColumnBytes % 64 == 0) {
              V::prefetch(p + kPrefetchBytes);
              V::prefetch_l2(p +
                             kPanels * of.panel_bytes);  // these panels are half as long as others: ask for the next
            }
          }
          nibble_inputs<V, kKind, kRows, kVecs, kPanels>(x, row_step, k_step, t, table, codes, scales, acc);
          x += kStepInputs * k_step;
          w += kStepBytes;
        }
      });
}

static inline const uint8_t* nibble_panel(const GemmJob& job, int64_t panel) {
  return static_cast<const uint8_t*>(job.panels) + panel * job.nibbles.panel_bytes;
}

template <class V, NibbleKind kKind, int kRows, int kPanels>
inline void nibble_few_panels(const GemmJob& job, int64_t panel) {
  alignas(64) float sums[kRows * kPanels * kPanelWidth];
  constexpr int kRowFloats = kPanels * kPanelWidth;
  nibble_tile<V, kKind, kRows, kPanelWidth / V::kLanes, kPanels>(
      job.nibbles, job.x, job.x_stride, 1, nibble_panel(job, panel), 0, job.k, job.leaf_k, sums, kRowFloats);
  gemm_epilogue<V>(job, 0, kRows, panel * kPanelWidth, kRowFloats, sums, kRowFloats);
}

template <class V, NibbleKind kKind, int kRows>
inline void nibble_few(const GemmJob& job, int64_t panel, int64_t panel_end) {
  constexpr int kVecs = kPanelWidth / V::kLanes;
  constexpr int kSums = V::kLanes == 16 ? 16 : 8;  // beside as many vectors of codes
  constexpr int kFit = kSums / (kRows * kVecs);
  constexpr int kPanels = kFit >= 4 ? 4 : kFit >= 2 ? 2 : 1;
  for (; panel + kPanels <= panel_end; panel += kPanels) nibble_few_panels<V, kKind, kRows, kPanels>(job, panel);
  if constexpr (kPanels > 1) {
    for (; panel < panel_end; ++panel) nibble_few_panels<V, kKind, kRows, 1>(job, panel);
  }
}

template <class V, NibbleKind kKind, int kRows = V::kFewRows>
inline void nibble_few_of_kind(const GemmJob& job, int64_t panel_begin, int64_t panel_end) {
  if (job.m == kRows) {
    nibble_few<V, kKind, kRows>(job, panel_begin, panel_end);
  } else if constexpr (kRows > 1) {
    nibble_few_of_kind<V, kKind, kRows - 1>(job, panel_begin, panel_end);
  }
}

template <class V, NibbleKind kKind, int kRows>
inline void nibble_packed_tile(const GemmJob& job, int64_t row, const float* packed, int64_t panel) {
  alignas(64) float sums[kRows * kPanelWidth];
  for (int column = 0; column < kPanelWidth; column += V::kTileVecs * V::kLanes) {
    nibble_tile<V, kKind, kRows, V::kTileVecs, 1>(job.nibbles, packed, 1, kRows, nibble_panel(job, panel), column,
                                                  job.k, job.leaf_k, sums + column, kPanelWidth);
  }
  gemm_epilogue<V>(job, row, kRows, panel * kPanelWidth, kPanelWidth, sums, kPanelWidth);
}

template <class V, NibbleKind kKind, int kRows = V::kTileRows>
inline void nibble_any_tile(const GemmJob& job, int64_t row, int64_t rows, const float* packed, int64_t panel) {
  if (rows == kRows) {
    nibble_packed_tile<V, kKind, kRows>(job, row, packed, panel);
  } else if constexpr (kRows > 1) {
    nibble_any_tile<V, kKind, kRows - 1>(job, row, rows, packed, panel);
  }
}

template <class V, NibbleKind kKind>
inline void nibble_tiles_of_kind(const GemmJob& job, int64_t num_tiles, int64_t tile_begin, int64_t tile_end,
                                 const float* packed, int64_t panel_begin, int64_t panel_end) {
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    const float* x = packed;
    for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
      const int64_t row = even_split(job.m, num_tiles, tile);
      const int64_t rows = even_split(job.m, num_tiles, tile + 1) - row;
      nibble_any_tile<V, kKind>(job, row, rows, x, panel);
      x += rows * job.k;
    }
  }
}

template <class V>
void nibble_few_rows(const GemmJob& job, int64_t panel_begin, int64_t panel_end) {
  if (job.nibbles.input_groups != nullptr) {
    nibble_few_of_kind<V, NibbleKind::kInputGroups>(job, panel_begin, panel_end);
  } else if (job.nibbles.has_zero) {
    nibble_few_of_kind<V, NibbleKind::kZeros>(job, panel_begin, panel_end);
  } else {
    nibble_few_of_kind<V, NibbleKind::kScales>(job, panel_begin, panel_end);
  }
}

template <class V>
void nibble_tiles(const GemmJob& job, int64_t num_tiles, int64_t tile_begin, int64_t tile_end, const float* packed,
                  int64_t panel_begin, int64_t panel_end) {
  const auto run = job.nibbles.input_groups != nullptr ? &nibble_tiles_of_kind<V, NibbleKind::kInputGroups>
                   : job.nibbles.has_zero              ? &nibble_tiles_of_kind<V, NibbleKind::kZeros>
                                                       : &nibble_tiles_of_kind<V, NibbleKind::kScales>;
  run(job, num_tiles, tile_begin, tile_end, packed, panel_begin, panel_end);
}

}  // namespace transept
