// What image processors do with 8-bit pictures, and how those become values (transformers, image_transforms.py). Since
// every step up to the values is of 8 bits, a value is a function of its channel and level. Pure functions and
// immutable tables: thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/isa.h"
#include "base/status.h"
#include "media/image_types.h"
#include "media/resize_float.h"
#include "media/resize_options.h"
#include "multimodal/image_processor_config.h"
#include "multimodal/image_sizes.h"

namespace transept {

inline ImageSize size_of(const RgbImage& image) { return {image.height, image.width}; }

// resize(), for sizes that depend on the picture. Errors: kInvalidArgument, naming both sizes, for a side of 0 or above
// kMaxImageSide, or more than 2^26 pixels: what proportions such as 1 : 1000 give.
StatusOr<RgbImage> resized(RgbImage image, const ImageSize& size, const ResizeOptions& options, Isa isa);

// Turned by 90 degrees: what was left is on top (numpy's rot90(k=3) of rows and columns).
RgbImage turned(const RgbImage& image);

// The picture in black of `size`, its left upper corner at (top, left), which may be negative: what is outside is cut.
RgbImage placed(const RgbImage& image, const ImageSize& size, int64_t top, int64_t left);

// center_crop(): the middle of the picture, in black where it is smaller.
RgbImage center_cropped(const RgbImage& image, const ImageSize& size);

// Values of the three channels.
class PixelTable final {
 public:
  explicit PixelTable(const PixelOptions& options);

  float of(int channel, uint8_t level) const { return values_[static_cast<size_t>(channel)][level]; }
  // Fills out [channels, height, width] of a larger array whose rows are row_stride and whose channels are
  // channel_stride floats apart, with the part of the picture from (top, left).
  struct Place {
    int64_t top = 0, left = 0, height = 0, width = 0;
    int64_t channel_stride = 0, row_stride = 0;
  };
  void fill(const RgbImage& image, const Place& place, float* out) const;

 private:
  std::array<LevelValues, 3> values_;
};

}  // namespace transept
