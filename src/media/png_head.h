// The head of a PNG and where its parts lie, from its chunks alone: nothing is inflated, copied or kept. Sources: PNG,
// second edition (ISO/IEC 15948), 5; as Pillow 12.3's PngImagePlugin: checksums count up to the picture's data and not
// from there on, of several chunks of a kind the last counts, and those behind the data count too. Pure: thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"

namespace transept {

// Values of the file's format.
enum class PngColor : uint8_t { kGrey = 0, kRgb = 2, kPalette = 3, kGreyAlpha = 4, kRgbAlpha = 6 };

struct PngHead {
  uint32_t width = 0;  // to be checked against limits
  uint32_t height = 0;
  uint8_t bit_depth = 0;  // of a sample or a palette's index
  PngColor color = PngColor::kGrey;
  bool is_interlaced = false;
  std::span<const uint8_t> header;        // the whole chunk: length, name, data, checksum
  std::span<const uint8_t> palette;       // data of PLTE: three bytes an entry, at most 256
  std::span<const uint8_t> transparency;  // data of tRNS
  bool has_palette = false;
  bool is_transparent = false;     // there is a tRNS chunk that counts
  std::span<const uint8_t> image;  // from the first IDAT chunk to the end of the file
  int32_t orientation = 1;

  // Of a pixel, as it is stored. REQUIRES: not a palette's index.
  int32_t num_channels() const;
};

// The bytes begin with PNG's signature. Errors: kInvalidArgument for a head that is cut, has a wrong checksum or
// contradicts itself.
StatusOr<PngHead> read_png_head(std::span<const uint8_t> bytes);

// A chunk at the start of `bytes`.
struct PngChunk {
  static constexpr size_t kOverhead = 12;  // length, name, checksum

  uint32_t name = 0;               // its four letters, the first in the highest byte
  size_t size = 0;                 // of its data
  std::span<const uint8_t> data;   // cut with the file
  std::span<const uint8_t> whole;  // the same

  bool is_whole() const { return whole.size() == size + kOverhead; }
};

constexpr uint32_t png_chunk_name(const char (&letters)[5]) {
  return uint32_t{static_cast<uint8_t>(letters[0])} << 24 | uint32_t{static_cast<uint8_t>(letters[1])} << 16 |
         uint32_t{static_cast<uint8_t>(letters[2])} << 8 | uint32_t{static_cast<uint8_t>(letters[3])};
}

// Errors: kInvalidArgument for fewer than 8 bytes, and for a name that is none.
StatusOr<PngChunk> png_chunk_at(std::span<const uint8_t> bytes);

}  // namespace transept
