// Images before and after they are decoded: what the file's head says, what is accepted, and pixels. Values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace transept {

enum class ImageFormat : uint8_t { kJpeg, kPng, kWebp };

// "JPEG", "PNG", "WebP".
std::string_view image_format_name(ImageFormat format);

// What happens to the colour below a transparent pixel.
enum class ImageAlpha : uint8_t {
  kWhite,  // the picture is laid on white (transformers 5.23, image_transforms.py, convert_to_rgb)
  kDrop,   // the colour stays as it is stored (Pillow's convert("RGB"))
};

// Checked against the head, before any memory is taken for pixels.
struct ImageLimits {
  int64_t max_pixels = int64_t{1} << 26;     // width x height, of the file
  int32_t max_side = 32768;                  // pixels, of the file
  int32_t max_scans = 100;                   // of a progressive JPEG
  size_t max_chunk_bytes = size_t{8} << 20;  // of a PNG's chunk that is kept while it is read
};

// What the head says.
struct ImageInfo {
  ImageFormat format = ImageFormat::kJpeg;
  int32_t width = 0;         // pixels, as stored: before the orientation is applied
  int32_t height = 0;        // the same
  int32_t num_channels = 0;  // of the file: 1 grey, 2 grey and alpha, 3, 4; a palette's are those of its entries
  int32_t orientation = 1;   // EXIF's, 1 to 8; 1: none, or malformed
  size_t decode_bytes = 0;   // the most memory that decode() takes, its result included

  // Of the decoded picture.
  int32_t oriented_width() const { return orientation > 4 ? height : width; }
  int32_t oriented_height() const { return orientation > 4 ? width : height; }
};

// 8-bit pixels, row-major, channels of a pixel side by side.
struct RgbImage {
  static constexpr int32_t kNumChannels = 3;

  int32_t width = 0;
  int32_t height = 0;
  std::vector<uint8_t> pixels;  // width * height * kNumChannels

  bool operator==(const RgbImage&) const = default;
};

}  // namespace transept
