#include "media/image_sniff.h"

#include <algorithm>
#include <string_view>

namespace transept {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kRead = "JPEG, PNG and WebP are read";
constexpr size_t kMarkupBytes = 1024;  // in which an SVG's first element stands; comments may come before it
constexpr size_t kMaxBrands = 16;      // of an ISO media file: one that names more is not looked into

// "" where the bytes end before.
std::string_view part(std::string_view bytes, size_t offset, size_t size) {
  return offset <= bytes.size() ? bytes.substr(offset, size) : std::string_view();
}

// HEIF and AVIF are ISO media files (ISO/IEC 14496-12): a box "ftyp" names the brands that a file is of.
std::string_view iso_media_name(std::string_view bytes) {
  if (part(bytes, 4, 4) != "ftyp") return {};
  bool is_heif = false;
  for (size_t i = 0; i < kMaxBrands; ++i) {
    if (i == 1) continue;  // the version of the first
    const std::string_view brand = part(bytes, 8 + 4 * i, 4);
    if (brand == "avif" || brand == "avis") return "AVIF";
    for (const std::string_view heif : {"heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1"}) {
      is_heif |= brand == heif;
    }
  }
  return is_heif ? "HEIF" : "";
}

// Two letters make no bitmap: the reserved words are 0, and the second header has one of its sizes.
bool is_bmp(std::string_view bytes) {
  if (!bytes.starts_with("BM") || part(bytes, 6, 4) != "\0\0\0\0"sv || part(bytes, 15, 3) != "\0\0\0"sv) return false;
  constexpr std::string_view kHeaderSizes = "\x0c\x28\x34\x38\x40\x6c\x7c";
  return kHeaderSizes.find(bytes[14]) != std::string_view::npos;
}

bool is_svg(std::string_view bytes) {
  const size_t start = bytes.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (start == std::string_view::npos || bytes[start] != '<') return false;
  return bytes.substr(0, kMarkupBytes).find("<svg") != std::string_view::npos;
}

// The name of a format that is known and not read; "" for others.
std::string_view unread_format(std::string_view bytes) {
  struct Magic {
    std::string_view first_bytes, name;
  };
  constexpr Magic kMagics[] = {
      {"GIF87a", "GIF"},
      {"GIF89a", "GIF"},
      {"II*\0"sv, "TIFF"},
      {"MM\0*"sv, "TIFF"},
      {"II+\0"sv, "TIFF"},
      {"MM\0+"sv, "TIFF"},
      {"\0\0\0\x0cjP  \r\n\x87\n"sv, "JPEG 2000"},
      {"\xff\x4f\xff\x51", "JPEG 2000"},
      {"\0\0\0\x0cJXL \r\n\x87\n"sv, "JPEG XL"},
      {"\xff\x0a", "JPEG XL"},
      {"%PDF-", "PDF"},
  };
  for (const Magic& magic : kMagics) {
    if (bytes.starts_with(magic.first_bytes)) return magic.name;
  }
  if (is_bmp(bytes)) return "BMP";
  if (is_svg(bytes)) return "SVG";
  return iso_media_name(bytes);
}

}  // namespace

StatusOr<ImageFormat> sniff_image(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.empty()) return invalid_argument("is empty");
  if (text.starts_with("\xff\xd8\xff")) return ImageFormat::kJpeg;
  if (text.starts_with("\x89PNG\r\n\x1a\n")) return ImageFormat::kPng;
  if (text.starts_with("RIFF") && part(text, 8, 4) == "WEBP") return ImageFormat::kWebp;
  if (const std::string_view name = unread_format(text); !name.empty()) {
    return unimplemented("is of the format ", name, ", which is not read; ", kRead);
  }
  return invalid_argument("is no image of a known format; ", kRead);
}

}  // namespace transept
