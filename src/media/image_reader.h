// Decodes JPEG, PNG and WebP to 8-bit RGB, as Pillow 12 over the same libraries does, to the bit: EXIF's orientation is
// applied, grey is three equal channels, CMYK and YCCK are inverted as Adobe's files want it, alpha and transparent
// palettes are laid on white (ImageAlpha), profiles and gamma are ignored. One departure: 16-bit grey is taken by its
// upper byte, as 16-bit RGB is, where Pillow clips it to white.
//
// The input is untrusted. The format is found by the first bytes, never by a name; everything that costs memory is
// checked in the head. The only public header over libjpeg-turbo, libpng and libwebp: it exposes no type of theirs.
//
// Owned by the caller; used by one thread at a time. Different readers are independent.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "media/image_types.h"

namespace transept {

class ImageReader {
 public:
  // Reads the head. Borrows the bytes, which must outlive the reader. Errors (messages give the reason; the caller adds
  // the name): kInvalidArgument for no bytes, bytes of no known format, a picture without pixels, a head that is cut or
  // contradicts itself, more than a limit (names the limit and both numbers); kUnimplemented by name for formats that
  // are known and not read (GIF, TIFF, BMP, HEIF, AVIF, JPEG 2000, JPEG XL, SVG, PDF) and kinds of JPEG that libjpeg
  // does not read (12 bits, lossless, arithmetic).
  static StatusOr<std::unique_ptr<ImageReader>> open(std::span<const uint8_t> bytes, const ImageLimits& limits = {});

  virtual ~ImageReader() = default;
  ImageReader(const ImageReader&) = delete;
  ImageReader& operator=(const ImageReader&) = delete;

  const ImageInfo& info() const { return info_; }

  // Decodes and orients. Call once. Errors: kInvalidArgument for bytes that end early (names the row reached), a bad
  // checksum, more scans than the limit, or whatever the library finds; kResourceExhausted without memory. Pictures
  // that Pillow takes with a warning are taken.
  virtual StatusOr<RgbImage> decode(ImageAlpha alpha = ImageAlpha::kWhite) = 0;

 protected:
  ImageReader() = default;

  ImageInfo info_;
};

}  // namespace transept
