#include "media/exif.h"

#include <optional>
#include <string_view>

namespace transept {
namespace {

using namespace std::string_view_literals;

constexpr uint32_t kOrientationTag = 0x0112;
constexpr size_t kEntryBytes = 12;

// TIFF's types by number: how many bytes one value has (0: not a type), and whether it is an integer that is looked at.
struct TagType {
  uint8_t bytes;
  bool is_number;
};
constexpr TagType kTypes[] = {{0, false}, {1, false}, {1, false}, {2, true},  {4, true},  {8, false},
                              {1, true},  {1, false}, {2, true},  {4, true},  {8, false}, {4, false},
                              {8, false}, {4, true},  {0, false}, {0, false}, {8, false}};

// Numbers of a TIFF file, in its byte order. Reads within the bytes are the caller's duty.
class TiffBytes {
 public:
  TiffBytes(std::string_view bytes, bool is_little) : bytes_(bytes), is_little_(is_little) {}

  bool has(size_t offset, size_t size) const { return offset <= bytes_.size() && size <= bytes_.size() - offset; }

  uint32_t number(size_t offset, size_t size) const {
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) {
      const size_t at = is_little_ ? offset + size - 1 - i : offset + i;
      value = value << 8 | static_cast<uint8_t>(bytes_[at]);
    }
    return value;
  }

 private:
  std::string_view bytes_;
  bool is_little_;
};

// The tag's value; nullopt if there is no such tag. A value that is no single number counts as 1.
std::optional<int32_t> exif_orientation(std::string_view exif) {
  while (exif.starts_with("Exif\0\0"sv)) exif.remove_prefix(6);
  const bool is_little = exif.starts_with("II*\0"sv) || exif.starts_with("II\0*"sv);
  const bool is_big = exif.starts_with("MM\0*"sv) || exif.starts_with("MM*\0"sv);
  const TiffBytes tiff(exif, is_little);
  if ((!is_little && !is_big) || !tiff.has(4, 4)) return std::nullopt;

  const size_t directory = tiff.number(4, 4);
  if (!tiff.has(directory, 2)) return std::nullopt;
  const uint32_t num_entries = tiff.number(directory, 2);
  std::optional<int32_t> found;
  for (uint32_t i = 0; i < num_entries; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (!tiff.has(entry, kEntryBytes)) break;
    const uint32_t type_number = tiff.number(entry + 2, 2);
    const TagType type = type_number < std::size(kTypes) ? kTypes[type_number] : TagType{0, false};
    const uint64_t size = uint64_t{tiff.number(entry + 4, 4)} * type.bytes;
    if (size == 0) continue;
    if (size > 4 && !tiff.has(tiff.number(entry + 8, 4), size)) break;
    if (tiff.number(entry, 2) != kOrientationTag) continue;
    const bool is_one_number = type.is_number && size == type.bytes;
    found = is_one_number ? static_cast<int32_t>(tiff.number(entry + 8, type.bytes)) : 1;
  }
  return found;
}

// The first tiff:Orientation="6" or <tiff:Orientation>6.
std::optional<int32_t> xmp_orientation(std::string_view xmp) {
  constexpr std::string_view kName = "tiff:Orientation";
  for (size_t at = xmp.find(kName); at != std::string_view::npos; at = xmp.find(kName, at)) {
    at += kName.size();
    std::string_view rest = xmp.substr(at);
    if (rest.starts_with("=\"")) {
      rest.remove_prefix(2);
    } else if (rest.starts_with(">")) {
      rest.remove_prefix(1);
    } else {
      continue;
    }
    if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') return rest[0] - '0';
  }
  return std::nullopt;
}

std::string_view text_of(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

int32_t find_orientation(std::span<const uint8_t> exif, std::span<const uint8_t> xmp) {
  std::optional<int32_t> found = exif_orientation(text_of(exif));
  if (!found) found = xmp_orientation(text_of(xmp));
  return found && *found >= 1 && *found <= 8 ? *found : 1;
}

}  // namespace transept
