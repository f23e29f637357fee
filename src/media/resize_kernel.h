// Both passes of resize.h over the vectors of a level. Obeys the rule in resize_kernels.h. A level has
//   Reg, kTaps, kBytes         a vector of kBytes bytes, in parts of 16; it takes kTaps inputs of an output at once
//   load_pixels(p)             kTaps pixels of 3 bytes at p as 16-bit numbers: part i holds pixels 2 i and 2 i + 1, as
//                              R R' G G' B B' 0 0. Reads at most kResizeSlackBytes from p
//   load_weights(w)            kTaps weights: part i holds weights 2 i and 2 i + 1, four times
//   fold(a)                    the sums of the parts as R, G, B: rounded to 8 bits, in the low bytes of 32 bits
//   zero, load, store, set1, add, shift_left (by kResizeLowBits), madd, unpack_low, unpack_high, round, pack
//                              as the processor's instructions of these names: in each part alone
#pragma once

#include <stdint.h>
#include <string.h>

#include "media/resize_kernels.h"

namespace transept {

template <typename Level>
struct ResizeKernel {
  using Reg = typename Level::Reg;
  static constexpr int kRowsAtOnce = 4;  // share the loading of weights; their sums fill the registers

  static Reg joined(Reg high, Reg low) { return Level::add(Level::shift_left(high), low); }

  template <int kRows>
  static void horizontal_rows(const ResizeAxis& axis, int32_t begin, int32_t end, const uint8_t* const* in,
                              uint8_t* const* out) {
    for (int32_t x = begin; x < end; ++x) {
      Reg high[kRows], low[kRows];
      for (int r = 0; r < kRows; ++r) high[r] = low[r] = Level::zero();
      const int16_t* const weights_high = axis.high + x * axis.stride;
      const int16_t* const weights_low = axis.low + x * axis.stride;
      const int64_t from = int64_t{kResizeChannels} * axis.first[x];
      for (int32_t tap = 0; tap < axis.count[x]; tap += Level::kTaps) {
        const Reg by_high = Level::load_weights(weights_high + tap), by_low = Level::load_weights(weights_low + tap);
        for (int r = 0; r < kRows; ++r) {
          const Reg pixels = Level::load_pixels(in[r] + from + int64_t{kResizeChannels} * tap);
          high[r] = Level::add(high[r], Level::madd(pixels, by_high));
          low[r] = Level::add(low[r], Level::madd(pixels, by_low));
        }
      }
      for (int r = 0; r < kRows; ++r) {
        const uint32_t pixel = Level::fold(joined(high[r], low[r]));
        memcpy(out[r] + int64_t{kResizeChannels} * (x - begin), &pixel, kResizeChannels);
      }
    }
  }

  // ResizeKernels::horizontal.
  static void horizontal(const ResizeAxis& axis, int32_t begin, int32_t end, const uint8_t* const* in, int32_t num_rows,
                         uint8_t* const* out) {
    int32_t row = 0;
    for (; row + kRowsAtOnce <= num_rows; row += kRowsAtOnce)
      horizontal_rows<kRowsAtOnce>(axis, begin, end, in + row, out + row);
    for (; row < num_rows; ++row) horizontal_rows<1>(axis, begin, end, in + row, out + row);
  }

  // kBytes columns.
  static void vertical_block(const ResizeAxis& axis, int32_t output, const uint8_t* const* rows, int64_t column,
                             uint8_t* out) {
    Reg high[4], low[4];
    for (int i = 0; i < 4; ++i) high[i] = low[i] = Level::zero();
    const Reg zero = Level::zero();
    const int32_t count = axis.count[output];
    for (int32_t tap = 0; tap < count; tap += 2) {
      const Reg by_high = Level::set1(axis.high + output * axis.stride + tap);
      const Reg by_low = Level::set1(axis.low + output * axis.stride + tap);
      const Reg a = Level::load(rows[tap] + column);
      const Reg b = Level::load(rows[tap + 1 < count ? tap + 1 : tap] + column);  // of the last, the weight is 0
      const Reg near = Level::unpack_low(a, b), far = Level::unpack_high(a, b);
      const Reg pairs[4] = {Level::unpack_low(near, zero), Level::unpack_high(near, zero), Level::unpack_low(far, zero),
                            Level::unpack_high(far, zero)};
      for (int i = 0; i < 4; ++i) {
        high[i] = Level::add(high[i], Level::madd(pairs[i], by_high));
        low[i] = Level::add(low[i], Level::madd(pairs[i], by_low));
      }
    }
    for (int i = 0; i < 4; ++i) low[i] = Level::round(joined(high[i], low[i]));
    Level::store(out + column, Level::pack(low));
  }

  // ResizeKernels::vertical. The last block overlaps the one before: each column is a function of its rows alone.
  static void vertical(const ResizeAxis& axis, int32_t output, const uint8_t* const* rows, int64_t num_bytes,
                       uint8_t* out) {
    if (num_bytes < Level::kBytes) {
      for (int64_t column = 0; column < num_bytes; ++column) out[column] = resize_column(axis, output, rows, column);
      return;
    }
    int64_t column = 0;
    for (; column + Level::kBytes < num_bytes; column += Level::kBytes) vertical_block(axis, output, rows, column, out);
    vertical_block(axis, output, rows, num_bytes - Level::kBytes, out);
  }
};

}  // namespace transept
