#include "media/png_pixels.h"

#include <algorithm>
#include <optional>

#include "media/image_pixels.h"

namespace transept {
namespace {

uint32_t big_endian16(const uint8_t* bytes) { return uint32_t{bytes[0]} << 8 | bytes[1]; }

// A palette's tRNS with one entry of 0 and else of 255 makes that entry transparent. Pillow finds it by a regular
// expression whose $ also stands before a last line feed, so a last entry of 10 is opaque then.
std::optional<size_t> single_transparent_entry(std::span<const uint8_t> alphas) {
  if (!alphas.empty() && alphas.back() == '\n') alphas = alphas.first(alphas.size() - 1);
  const auto is_not_opaque = [](uint8_t alpha) { return alpha != 255; };
  const auto found = std::find_if(alphas.begin(), alphas.end(), is_not_opaque);
  if (found == alphas.end() || *found != 0 || std::any_of(found + 1, alphas.end(), is_not_opaque)) return std::nullopt;
  return static_cast<size_t>(found - alphas.begin());
}

}  // namespace

PngPixels::PngPixels(const PngHead& head, ImageAlpha alpha)
    : is_white_(alpha == ImageAlpha::kWhite), bit_depth_(head.bit_depth), num_channels_(head.num_channels()) {
  if (head.color == PngColor::kPalette) {
    make_palette(head);
    return;
  }
  if (head.color == PngColor::kGrey && bit_depth_ <= 8) {
    make_greys(head);
    return;
  }
  if (!head.is_transparent || !is_white_) return;
  has_key_ = true;
  for (size_t i = 0; i < (head.color == PngColor::kGrey ? 1u : 3u); ++i) {
    key_[i] = static_cast<uint16_t>(big_endian16(head.transparency.data() + 2 * i));
  }
}

// Of 2 and 4 bits Pillow compares the key, as it is stored, with values that are scaled to 8.
void PngPixels::make_greys(const PngHead& head) {
  has_table_ = true;
  const uint32_t most = (1u << bit_depth_) - 1;
  std::optional<uint32_t> key;
  if (head.is_transparent && is_white_) key = big_endian16(head.transparency.data());
  if (key && bit_depth_ == 1) key = *key != 0 ? 255 : 0;
  for (uint32_t i = 0; i <= most; ++i) {
    const uint32_t value = i * (255 / most);
    const bool is_key = key && (*key & 0xff) == value;
    table_[i].fill(static_cast<uint8_t>(is_key ? 255 : value));
  }
}

// Entries that the file does not have are black.
void PngPixels::make_palette(const PngHead& head) {
  has_table_ = true;
  for (size_t i = 0; i < head.palette.size() / 3; ++i) {
    std::copy_n(head.palette.data() + 3 * i, 3, table_[i].data());
  }
  if (!head.is_transparent || !is_white_) return;
  const std::optional<size_t> single = single_transparent_entry(head.transparency);
  for (size_t i = 0; i < head.transparency.size(); ++i) {
    const uint32_t alpha = !single ? head.transparency[i] : i == *single ? 0 : 255;
    for (uint8_t& value : table_[i]) value = on_white(value, alpha);
  }
}

void PngPixels::convert(const uint8_t* row, int32_t count, uint8_t* rgb) const {
  return has_table_ ? convert_indices(row, count, rgb) : convert_samples(row, count, rgb);
}

// The leftmost pixel of a byte is in its highest bits.
void PngPixels::convert_indices(const uint8_t* row, int32_t count, uint8_t* rgb) const {
  const uint32_t mask = (1u << bit_depth_) - 1;
  int32_t shift = 8 - bit_depth_;
  for (int32_t i = 0; i < count; ++i, rgb += 3) {
    const auto& color = table_[*row >> shift & mask];
    rgb[0] = color[0];
    rgb[1] = color[1];
    rgb[2] = color[2];
    shift -= bit_depth_;
    if (shift >= 0) continue;
    shift = 8 - bit_depth_;
    ++row;
  }
}

// The first byte of a sample is its upper one, or the only one. Pillow compares the upper bytes of RGB with the lower
// bytes of the key; 16-bit grey, where Pillow has no picture to agree with, is compared in 16 bits as PNG wants it.
void PngPixels::convert_samples(const uint8_t* row, int32_t count, uint8_t* rgb) const {
  const int32_t bytes = bit_depth_ / 8;
  const bool is_grey = num_channels_ <= 2;
  const bool has_alpha = num_channels_ % 2 == 0 && is_white_;
  if (num_channels_ == 3 && bytes == 1 && !has_key_) {
    std::copy_n(row, ptrdiff_t{count} * 3, rgb);
    return;
  }
  const int32_t green = is_grey ? 0 : bytes, blue = is_grey ? 0 : 2 * bytes, alpha = (num_channels_ - 1) * bytes;
  for (int32_t i = 0; i < count; ++i, rgb += 3, row += ptrdiff_t{num_channels_} * bytes) {
    rgb[0] = row[0];
    rgb[1] = row[green];
    rgb[2] = row[blue];
    if (has_alpha) {
      for (int c = 0; c < 3; ++c) rgb[c] = on_white(rgb[c], row[alpha]);
    } else if (has_key_) {
      const bool is_key = is_grey
                              ? big_endian16(row) == key_[0]
                              : rgb[0] == (key_[0] & 0xff) && rgb[1] == (key_[1] & 0xff) && rgb[2] == (key_[2] & 0xff);
      if (is_key) rgb[0] = rgb[1] = rgb[2] = 255;
    }
  }
}

}  // namespace transept
