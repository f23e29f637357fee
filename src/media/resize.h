// Resamples 8-bit pictures as Pillow 3.3 to 12 does, to the bit (Image.py, resize; libImaging, Resample.c, Reduce.c,
// Geometry.c): for each output pixel the window of input pixels within the filter's support, times max(scale, 1);
// weights in double, normalised and rounded half away from zero to 22 bits; the horizontal pass first, its result
// clipped to 8 bits, then the vertical pass; a pass is left out where the side keeps its length. A picture more than
// 100 times as high as wide that loses height takes the vertical pass first. Pillow 13 takes it first for more sizes,
// and gives other pixels: checkpoints were trained with this order, and it is the golden one.
//
// Besides the result, a call takes at most the reduced picture (of reducing_gap), 50 bytes of weights per pixel of each
// side, and a band of rows: 512 KiB, up to 13 MiB where the height shrinks more than 400 times.
//
// Thread-safe: functions of their arguments.
#pragma once

#include <cstdint>

#include "base/isa.h"
#include "base/status.h"
#include "media/image_types.h"
#include "media/resize_options.h"

namespace transept {

inline constexpr int32_t kMaxResizeSide = 65535;  // of the picture, and of the result

// Returns `image` at width x height. `isa` chooses the kernel, never the bits. Errors: kInvalidArgument for a side (of
// the picture or the result) below 1 or above kMaxResizeSide, a box that is empty or not within the picture, a gap
// below 1; kResourceExhausted without memory. REQUIRES (CHECK): as many bytes in image.pixels as its sides ask for.
StatusOr<RgbImage> resize(const RgbImage& image, int32_t width, int32_t height, const ResizeOptions& options, Isa isa);

// Image.reduce(): means of factor_x x factor_y pixels, of the smaller rest at the right and the bottom. Throws
// std::bad_alloc. REQUIRES: factors >= 1.
RgbImage reduce(const RgbImage& image, int32_t factor_x, int32_t factor_y);

}  // namespace transept
