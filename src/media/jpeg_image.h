// One JPEG, over libjpeg-turbo: its head when it is opened, its pixels when it is decoded. As Pillow 12.3 decodes it:
// accurate integer DCT, fancy upsampling, the library's guess of the colour space; CMYK and YCCK are inverted, as
// Adobe's files want it. A progressive file that lacks its last scans is smoothed as the library's version does it, and
// 2.1.5 does it otherwise than Pillow's 3.1. Used by image_reader.h, whose errors these are.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "media/image_types.h"

namespace transept {

class JpegImage final {
 public:
  // Borrows the bytes, which begin with FF D8 FF.
  static StatusOr<std::unique_ptr<JpegImage>> open(std::span<const uint8_t> bytes, const ImageLimits& limits);

  const ImageInfo& info() const { return info_; }

  // Throws std::bad_alloc.
  StatusOr<RgbImage> decode(ImageAlpha alpha) const;

 private:
  JpegImage() = default;

  std::span<const uint8_t> bytes_;
  ImageInfo info_;
  bool has_many_scans_ = false;
  int32_t max_scans_ = 0;
};

}  // namespace transept
