// One WebP, over libwebp: its head when it is opened, its pixels when it is decoded; of an animation the first frame,
// on its canvas. As Pillow 12.3 decodes it, which takes no file that is cut. Used by image_reader.h, whose errors these
// are.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "media/image_types.h"

namespace transept {

class WebpImage final {
 public:
  // Borrows the bytes, which begin with RIFF's header of WebP.
  static StatusOr<std::unique_ptr<WebpImage>> open(std::span<const uint8_t> bytes, const ImageLimits& limits);

  const ImageInfo& info() const { return info_; }

  // Throws std::bad_alloc.
  StatusOr<RgbImage> decode(ImageAlpha alpha) const;

 private:
  WebpImage() = default;

  ImageInfo info_;  // of the canvas
  // The first frame: its chunks ALPH and "VP8 ", or VP8L; where it is on the canvas.
  std::span<const uint8_t> frame_;
  int32_t x_ = 0;
  int32_t y_ = 0;
  int32_t width_ = 0;
  int32_t height_ = 0;
};

}  // namespace transept
