// One PNG, over libpng: its head when it is opened, its pixels when it is decoded; of an animation the first picture.
// libpng sees the header and the data: it inflates and unfilters. Stricter than Pillow, which leaves rows black where a
// whole stream of data ends before them, and makes black of a palette that is missing. Used by image_reader.h, whose
// errors these are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "media/image_types.h"
#include "media/png_head.h"

namespace transept {

class PngImage final {
 public:
  // Borrows the bytes, which begin with PNG's signature.
  static StatusOr<std::unique_ptr<PngImage>> open(std::span<const uint8_t> bytes, const ImageLimits& limits);

  const ImageInfo& info() const { return info_; }

  // Throws std::bad_alloc.
  StatusOr<RgbImage> decode(ImageAlpha alpha) const;

 private:
  PngImage() = default;

  ImageInfo info_;
  PngHead head_;
  size_t max_chunk_bytes_ = 0;
};

}  // namespace transept
