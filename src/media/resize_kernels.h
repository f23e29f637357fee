// The inner loops of resize.h, one table a level. ops/kernels.h has the rule for this header, resize_kernel.h and the
// files with -m flags: C headers only, and every function is a template over a level's own type, or static. Kernels
// have no state: thread-safe.
//
// All levels give the same bits. A sum is exact in 32 bits that wrap: a weight, 22 bits behind the point, is
// high * 2^12 + low, so that pairs of 16-bit products add up (pmaddwd), and the sums of both parts are joined at the
// end.
#pragma once

#include <stdint.h>

namespace transept {

static constexpr int kResizeChannels = 3;     // of a pixel, side by side
static constexpr int kResizeLowBits = 12;     // of a weight's lower part
static constexpr int kResizeWeightBits = 22;  // behind the point
static constexpr int kResizeTapStep = 8;      // room for the weights of an output is a multiple of it
// How far behind the last pixel of a window a kernel may read. What stands there does not count.
static constexpr int kResizeSlackBytes = 32;

// The weights of one axis, borrowed from ResizeWeights.
struct ResizeAxis {
  const int32_t* first;  // [outputs]: the first input of each output's window ...
  const int32_t* count;  // ... and its number of inputs; 0: the output is 0
  // [outputs, stride]: both parts of the weights; zeros behind the window.
  const int16_t* high;  // [-2^15, 2^15)
  const int16_t* low;   // [0, 2^12)
  int64_t stride;
};

struct ResizeKernels {
  // Fills out[r] [end - begin, channels] with outputs [begin, end) of rows in[r], for all r below num_rows. A row is
  // readable for kResizeSlackBytes behind its last pixel. Rows of `in` and of `out` do not overlap.
  void (*horizontal)(const ResizeAxis& axis, int32_t begin, int32_t end, const uint8_t* const* in, int32_t num_rows,
                     uint8_t* const* out);
  // Fills out [num_bytes] with one output of the axis, of count[output] rows [num_bytes].
  void (*vertical)(const ResizeAxis& axis, int32_t output, const uint8_t* const* rows, int64_t num_bytes, uint8_t* out);
};

// Rounds a sum of 8-bit values times weights to 8 bits.
static inline uint8_t resize_clip(uint32_t sum) {
  const int32_t value = static_cast<int32_t>(sum + (uint32_t{1} << (kResizeWeightBits - 1))) >> kResizeWeightBits;
  return static_cast<uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

static inline uint32_t resize_weight(const ResizeAxis& axis, int32_t output, int32_t tap) {
  const int64_t at = output * axis.stride + tap;
  return static_cast<uint32_t>(axis.high[at] * (1 << kResizeLowBits) + axis.low[at]);
}

// One byte of ResizeKernels::vertical.
static inline uint8_t resize_column(const ResizeAxis& axis, int32_t output, const uint8_t* const* rows,
                                    int64_t column) {
  uint32_t sum = 0;
  for (int32_t tap = 0; tap < axis.count[output]; ++tap) sum += resize_weight(axis, output, tap) * rows[tap][column];
  return resize_clip(sum);
}

namespace generic {
extern const ResizeKernels kResizeKernels;
}
namespace avx2 {
extern const ResizeKernels kResizeKernels;
}
namespace avx512 {
extern const ResizeKernels kResizeKernels;
}

}  // namespace transept
