// A PNG's stored pixels, of every color type and depth, as 8-bit RGB: what Pillow 12.3 and transformers 5.23's
// convert_to_rgb make of them. 16 bits become 8 by the upper byte.
#pragma once

#include <array>
#include <cstdint>

#include "media/image_types.h"
#include "media/png_head.h"

namespace transept {

// Immutable: thread-safe.
class PngPixels final {
 public:
  // Keeps nothing of the head.
  PngPixels(const PngHead& head, ImageAlpha alpha);

  // Converts `count` pixels from the start of a row. `rgb` has 3 * count bytes.
  void convert(const uint8_t* row, int32_t count, uint8_t* rgb) const;

 private:
  void make_greys(const PngHead& head);
  void make_palette(const PngHead& head);
  void convert_indices(const uint8_t* row, int32_t count, uint8_t* rgb) const;
  void convert_samples(const uint8_t* row, int32_t count, uint8_t* rgb) const;

  bool is_white_;  // ImageAlpha::kWhite
  int32_t bit_depth_;
  int32_t num_channels_;
  bool has_table_ = false;  // pixels of at most 8 bits are looked up
  std::array<std::array<uint8_t, 3>, 256> table_{};
  bool has_key_ = false;  // one color is transparent
  std::array<uint16_t, 3> key_{};
};

}  // namespace transept
