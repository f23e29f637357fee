// Resamples pictures of real values, as torch.nn.functional.interpolate(mode="bilinear", antialias=True,
// align_corners=False) does in single precision (aten, UpSampleKernel.cpp): within 3e-7 of values of about 1, since the
// order of sums is the reference's and its fused products are not. The horizontal pass goes first; a pass is left out
// where the side keeps its length. Thread-safe: a function of its arguments.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "media/image_types.h"

namespace transept {

// What each 8-bit level of a picture stands for.
using LevelValues = std::array<float, 256>;

// Fills out [height, width, channels] with the picture of values[level]. Beside it and `image` it takes 48 bytes per
// pixel of each side, and the rows of one window of the vertical pass. Errors: kInvalidArgument for a side below 1 or
// above 65535; kResourceExhausted without memory. REQUIRES (CHECK): these sizes.
Status resize_values(const RgbImage& image, const LevelValues& values, int32_t width, int32_t height,
                     std::span<float> out);

}  // namespace transept
