// The two passes of resize.h over a picture. A function of its arguments: thread-safe. Throws std::bad_alloc.
#pragma once

#include <cstdint>

#include "base/isa.h"
#include "media/image_types.h"
#include "media/resize_kernels.h"
#include "media/resize_options.h"

namespace transept {

// As the reference's: what Python gives in double, libImaging takes in single precision.
struct FloatBox {
  float left = 0, top = 0, right = 0, bottom = 0;
};

const ResizeKernels& resize_kernels(Isa isa);

// ImagingResampleInner(). REQUIRES: sides of 1 to kMaxResizeSide; a box within the picture, not turned round; not
// kNearest.
RgbImage resample(const RgbImage& image, int32_t width, int32_t height, ResizeFilter filter, const FloatBox& box,
                  const ResizeKernels& kernels);

}  // namespace transept
