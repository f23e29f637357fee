// Resamples 8-bit pictures as Pillow 3.3 to 12 does, to the bit (libImaging, Resample.c and Reduce.c): for each output
// pixel the window of input pixels within the filter's support, times max(scale, 1); weights in double, normalised and
// rounded half away from zero to 22 bits; the horizontal pass first, its result clipped to 8 bits, then the vertical
// pass; a pass is left out where the side keeps its length. Pillow 13 takes the vertical pass first for some sizes, and
// gives other pixels: checkpoints were trained with this order, and it is the golden one.
//
// Thread-safe: functions of their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/isa.h"
#include "base/status.h"
#include "media/image_types.h"

namespace transept {

// Numbers are those of PIL.Image.Resampling, which preprocessor_config.json has in "resample".
enum class ResizeFilter : uint8_t { kNearest = 0, kLanczos = 1, kBilinear = 2, kBicubic = 3, kBox = 4, kHamming = 5 };

// "nearest", "lanczos", ...
std::string_view resize_filter_name(ResizeFilter filter);

// A part of a picture in pixels; fractions are allowed, as `reducing_gap` makes them.
struct ResizeBox {
  double left = 0, top = 0, right = 0, bottom = 0;
};

struct ResizeOptions {
  ResizeFilter filter = ResizeFilter::kBicubic;
  // Image.resize(reducing_gap=): the picture is first reduced by whole factors, so that it stays this many times larger
  // than the result; >= 1. None: it is not. kNearest takes none.
  std::optional<double> reducing_gap;
  std::optional<ResizeBox> box;  // none: the whole picture
};

// Returns `image` at width x height. `isa` chooses the kernel, never the bits. Errors: kInvalidArgument for a side below
// 1 or above 65535, a box that is empty or not within the picture, a gap below 1; kResourceExhausted without memory.
StatusOr<RgbImage> resize(const RgbImage& image, int32_t width, int32_t height, const ResizeOptions& options,
                          Isa isa);

// Image.reduce(): means of factor_x x factor_y pixels, of the smaller rest at the right and the bottom. REQUIRES:
// factors >= 1.
RgbImage reduce(const RgbImage& image, int32_t factor_x, int32_t factor_y);

}  // namespace transept
