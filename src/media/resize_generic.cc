#include "media/resize_kernels.h"

namespace transept::generic {
namespace {

void horizontal(const ResizeAxis& axis, int32_t begin, int32_t end, const uint8_t* const* in, int32_t num_rows,
                uint8_t* const* out) {
  for (int32_t r = 0; r < num_rows; ++r) {
    uint8_t* to = out[r];
    for (int32_t x = begin; x < end; ++x) {
      const uint8_t* from = in[r] + int64_t{kResizeChannels} * axis.first[x];
      uint32_t red = 0, green = 0, blue = 0;
      for (int32_t tap = 0; tap < axis.count[x]; ++tap, from += kResizeChannels) {
        const uint32_t weight = resize_weight(axis, x, tap);
        red += weight * from[0];
        green += weight * from[1];
        blue += weight * from[2];
      }
      *to++ = resize_clip(red);
      *to++ = resize_clip(green);
      *to++ = resize_clip(blue);
    }
  }
}

void vertical(const ResizeAxis& axis, int32_t output, const uint8_t* const* rows, int64_t num_bytes, uint8_t* out) {
  for (int64_t column = 0; column < num_bytes; ++column) out[column] = resize_column(axis, output, rows, column);
}

}  // namespace

const ResizeKernels kResizeKernels = {horizontal, vertical};

}  // namespace transept::generic
