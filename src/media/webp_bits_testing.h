// Writes bits of lossless WebP (RFC 9649, 3) for tests: no encoder makes such files.
#pragma once

#include <cstdint>
#include <string>

#include "media/image_testing.h"

namespace transept {

class WebpBits final {
 public:
  void put(uint64_t value, int count) {
    for (int i = 0; i < count; ++i, ++num_bits_) {
      if (num_bits_ % 8 == 0) bytes_ += '\0';
      if ((value >> i & 1) != 0) bytes_.back() = static_cast<char>(bytes_.back() | 1 << num_bits_ % 8);
    }
  }

  // A code of the symbol alone, which has no bits then.
  void put_symbol(uint32_t symbol) {
    put(0b101, 3);  // a simple code, one symbol, of eight bits
    put(symbol, 8);
  }

  void put_plain_group() {
    for (int i = 0; i < 5; ++i) put_symbol(0);
  }

  // A picture within the stream. Every pixel is black but the first, whose red and green are `group`.
  void put_picture(int64_t num_pixels, uint32_t group = 0) {
    put(0, 1);  // no cache
    for (const uint32_t value : {group & 255, group >> 8}) {
      put(0b11, 2);  // a simple code of two symbols: 0, and the other one. Of equal ones one is left.
      put(0b1, 1);
      put(0, 8);
      put(value == 0 ? 1 : value, 8);
    }
    for (int i = 0; i < 3; ++i) put_symbol(0);
    put((group & 255) != 0 ? 1 : 0, 1);
    put(group >> 8 != 0 ? 1 : 0, 1);
    for (int64_t i = 1; i < num_pixels; ++i) put(0, 2);
  }

  std::string bytes() const { return bytes_; }

 private:
  std::string bytes_;
  uint64_t num_bits_ = 0;
};

// The bits of a picture whose groups, of 4 x 4 pixels, have numbers up to num_groups - 1 and codes of one symbol, which
// make every pixel transparent black.
inline std::string webp_with_groups(uint32_t num_groups, int32_t width = 4096, int32_t height = 4096) {
  WebpBits bits;
  bits.put(0b100, 3);  // no transform, no cache, groups
  bits.put(0, 3);      // of 4 x 4 pixels
  bits.put_picture(int64_t{(width + 3) / 4} * ((height + 3) / 4), num_groups - 1);
  for (uint32_t i = 0; i < num_groups; ++i) bits.put_plain_group();
  return bits.bytes();
}

// A file around such bits.
inline std::string webp_file(std::string_view bits, int32_t width, int32_t height) {
  const std::string data =
      str_cat("\x2f", little(static_cast<uint64_t>(width - 1) | static_cast<uint64_t>(height - 1) << 14, 4), bits);
  const std::string padded = str_cat(data, std::string(data.size() % 2, '\0'));
  return str_cat("RIFF", little(12 + padded.size(), 4), "WEBPVP8L", little(data.size(), 4), padded);
}

}  // namespace transept
