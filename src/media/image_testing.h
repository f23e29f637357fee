// What the tests of images share: the fixtures of tools/make_image_fixtures.py, and files that are put together by
// hand.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/content_digest.h"
#include "media/image_reader.h"
#include "media/media_testing.h"

namespace transept {

inline std::span<const uint8_t> bytes_of_text(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

inline std::string image_fixture(std::string_view name) { return file_text(fixture_path(str_cat("images/", name))); }

// Every fixture's name, in expected.jsonl's order.
inline std::vector<std::string> image_fixtures() {
  std::vector<std::string> names;
  for (const Json& row : read_jsonl(fixture_path("images/expected.jsonl"))) {
    names.push_back(row.find("file")->as_string());
  }
  EXPECT_GT(names.size(), 100u);
  return names;
}

inline StatusOr<RgbImage> decode_image(std::string_view content, const ImageLimits& limits = {},
                                       ImageAlpha alpha = ImageAlpha::kWhite) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ImageReader> reader, ImageReader::open(bytes_of_text(content), limits));
  return reader->decode(alpha);
}

// What is said of a content that cannot be decoded; "" where it can.
inline std::string image_error(std::string_view content, const ImageLimits& limits = {}) {
  const StatusOr<RgbImage> image = decode_image(content, limits);
  return image.ok() ? "" : error_message(image.status());
}

inline ImageInfo image_info(std::string_view content) {
  const auto reader = ImageReader::open(bytes_of_text(content));
  EXPECT_TRUE(reader.ok()) << reader.status();
  return reader.ok() ? (*reader)->info() : ImageInfo();
}

// SHA-256 of the RGB bytes.
inline std::string pixels_digest(const RgbImage& image) {
  DigestBuilder digest;
  digest.add_bytes(std::as_bytes(std::span(image.pixels)));
  return digest_hex(digest.finish());
}

// Numbers as a file's bytes, the highest byte first.
inline std::string big(uint64_t value, int num_bytes) {
  std::string bytes;
  for (int i = num_bytes - 1; i >= 0; --i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

// CRC-32 of PNG, bit by bit.
inline uint32_t png_crc(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? 0xedb88320u ^ crc >> 1 : crc >> 1;
  }
  return ~crc;
}

inline std::string png_chunk(std::string_view name, std::string_view data) {
  const std::string body = str_cat(name, data);
  return str_cat(big(data.size(), 4), body, big(png_crc(body), 4));
}

inline constexpr std::string_view kPngSignature = "\x89PNG\r\n\x1a\n";

struct PngHeader {
  uint32_t width = 4, height = 4;
  uint32_t bit_depth = 8, color = 2;
  uint32_t compression = 0, filter = 0, interlace = 0;
};

// The signature and the header.
inline std::string png_start(const PngHeader& header) {
  return str_cat(kPngSignature,
                 png_chunk("IHDR", str_cat(big(header.width, 4), big(header.height, 4), big(header.bit_depth, 1),
                                           big(header.color, 1), big(header.compression, 1), big(header.filter, 1),
                                           big(header.interlace, 1))));
}

}  // namespace transept
