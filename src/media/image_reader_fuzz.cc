// Any bytes as an image: opening answers with a status, decoding ends, and the picture has the size that was said.
// Checksums of a PNG's chunks are mended: else nothing of what is changed would be looked at.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "media/image_reader.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

uint32_t crc32(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? 0xedb88320u ^ crc >> 1 : crc >> 1;
  }
  return ~crc;
}

void mend_checksums(std::string& png) {
  const auto byte_at = [&](size_t at) { return uint32_t{static_cast<uint8_t>(png[at])}; };
  for (size_t at = 8; at + 12 <= png.size();) {
    const size_t size = byte_at(at) << 24 | byte_at(at + 1) << 16 | byte_at(at + 2) << 8 | byte_at(at + 3);
    if (size > png.size() - at - 12) return;
    const uint32_t crc = crc32(std::string_view(png).substr(at + 4, size + 4));
    for (size_t i = 0; i < 4; ++i) png[at + 8 + size + i] = static_cast<char>(crc >> (24 - 8 * i));
    at += size + 12;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string content(reinterpret_cast<const char*>(data), size);
  if (content.starts_with("\x89PNG")) mend_checksums(content);
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  const transept::ImageLimits limits{.max_pixels = 1 << 16, .max_side = 2048, .max_scans = 20, .max_chunk_bytes = 4096};
  const auto reader = transept::ImageReader::open(bytes, limits);
  if (!reader.ok()) {
    require(!reader.status().message().empty());
    return 0;
  }
  const transept::ImageInfo info = (*reader)->info();
  require(info.width > 0 && info.height > 0 && info.width <= limits.max_side && info.height <= limits.max_side);
  require(int64_t{info.width} * info.height <= limits.max_pixels);
  require(info.orientation >= 1 && info.orientation <= 8 && info.num_channels >= 1 && info.num_channels <= 4);
  if (info.decode_bytes > size_t{256} << 20) return 0;  // of lossless WebP: admission's to refuse
  const auto image = (*reader)->decode(size % 2 == 0 ? transept::ImageAlpha::kWhite : transept::ImageAlpha::kDrop);
  if (!image.ok()) {
    require(!image.status().message().empty());
    return 0;
  }
  require(image->width == info.oriented_width() && image->height == info.oriented_height());
  require(image->pixels.size() == size_t{3} * static_cast<size_t>(info.width) * static_cast<size_t>(info.height));
  return 0;
}
