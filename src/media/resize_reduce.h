// Reduces pictures by whole factors (libImaging, Reduce.c), and copies parts of them. Functions of their arguments:
// thread-safe. They throw std::bad_alloc.
#pragma once

#include <cstdint>

#include "media/image_types.h"

namespace transept {

// Whole pixels; right and bottom are one past the last.
struct PixelBox {
  int32_t left = 0, top = 0, right = 0, bottom = 0;
};

// Means of factor_x x factor_y pixels of the box, from its left upper corner; of the smaller rest at the right and the
// bottom. REQUIRES: factors >= 1; a box within the picture that is not empty.
RgbImage reduce_box(const RgbImage& image, int32_t factor_x, int32_t factor_y, const PixelBox& box);

// REQUIRES: a box within the picture that is not empty.
RgbImage crop(const RgbImage& image, const PixelBox& box);

}  // namespace transept
