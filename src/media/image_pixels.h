// What the decoders of images share: the check of a head's size, the result with its orientation, and transparency.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "media/image_types.h"

namespace transept {

// Errors: kInvalidArgument for a picture without pixels or beyond a limit, which it names with both numbers. After it
// a few times 3 * width * height + 4096 * (width + height) fits in size_t.
Status check_image_size(int64_t width, int64_t height, const ImageLimits& limits);

// The value of a channel with `alpha` over white, to the bit as Image.alpha_composite over an opaque white picture
// (Pillow 12, AlphaComposite.c, with its seven more bits).
constexpr uint8_t on_white(uint32_t value, uint32_t alpha) {
  const uint32_t sum = ((value * alpha + 255 * (255 - alpha)) << 7) + (128 << 7);
  return static_cast<uint8_t>(((sum >> 8) + sum) >> 8 >> 7);
}

// The result of a decoder, filled in the file's order of rows and turned on the way, without a second picture. Owned by
// a decoder; used by one thread. It allocates when it is constructed and never after, so that a library's callback may
// fill it.
class OrientedRows final {
 public:
  // Rows that a decoder may have open at a time: row() keeps those of one group of so many valid together. They stay in
  // a processor's cache until they are turned or appended.
  static constexpr int32_t kGroup = 16;

  // Throws std::bad_alloc.
  explicit OrientedRows(const ImageInfo& info);

  // What a decode takes for one of these. REQUIRES: check_image_size.
  static size_t bytes_needed(const ImageInfo& info);

  // A decoder uses one of these three.

  // Where the RGB of row `y` of the file goes, 3 * width bytes. REQUIRES: 0 <= y < height; every row is asked for, and
  // none of a group before that of the last call. Valid until a row of a later group is asked for.
  uint8_t* row(int32_t y);

  // Writes pixels of row `y` at first_x, first_x + step, ... REQUIRES: within the file's row.
  void put(int32_t y, int32_t first_x, int32_t step, int32_t count, const uint8_t* rgb);

  // All rows, black. REQUIRES: orientation 1.
  uint8_t* whole();

  // Call once, when every pixel is there.
  RgbImage finish();

 private:
  size_t num_bytes() const;
  void flush();

  RgbImage image_;
  int32_t width_;  // of the file
  int32_t height_;
  // A pixel (x, y) of the file is at first_ + x * pixel_step_ + y * row_step_.
  ptrdiff_t first_ = 0;
  ptrdiff_t pixel_step_ = 0;
  ptrdiff_t row_step_ = 0;
  std::vector<uint8_t> group_;  // rows that are still to be turned or appended
  int32_t group_start_ = 0;     // of the file's rows
  bool is_appended_ = false;    // orientation 1: the result grows in the memory that was reserved for it
};

}  // namespace transept
