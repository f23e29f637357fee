#include "media/jpeg_head.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "media/exif.h"

namespace transept {
namespace {

using namespace std::string_view_literals;

constexpr size_t kMaxExifBytes = size_t{1} << 20;  // of all segments together: one has 64 KiB at most, two are rare
constexpr std::string_view kExifName = "Exif\0\0"sv;
constexpr std::string_view kXmpName = "http://ns.adobe.com/xap/1.0/\0"sv;

enum Marker : uint8_t {
  kSof0 = 0xc0,
  kSof1 = 0xc1,
  kSof2 = 0xc2,
  kDht = 0xc4,
  kJpg = 0xc8,
  kDac = 0xcc,
  kSof15 = 0xcf,
  kRst0 = 0xd0,
  kEoi = 0xd9,
  kSos = 0xda,
  kApp1 = 0xe1,
  kJpg0 = 0xf0,
  kJpg13 = 0xfd,
};

uint32_t big_endian16(const uint8_t* bytes) { return uint32_t{bytes[0]} << 8 | bytes[1]; }

bool starts_with(std::span<const uint8_t> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

// Markers without a segment behind them: restarts, the start and the end of an image, and those that are reserved.
bool stands_alone(uint8_t marker) {
  return (marker >= kRst0 && marker <= kEoi) || marker == kJpg || (marker >= kJpg0 && marker <= kJpg13);
}

bool is_frame(uint8_t marker) {
  return marker >= kSof0 && marker <= kSof15 && marker != kDht && marker != kJpg && marker != kDac;
}

std::string_view unread_process(uint8_t frame) {
  switch (frame) {
    case 0xc3: return "lossless coding";
    case 0xc9:
    case 0xca: return "arithmetic coding";
    case 0xcb: return "lossless arithmetic coding";
    default: return "hierarchical coding";
  }
}

// What the walk over the segments gathers.
struct Walk {
  JpegHead head;
  std::vector<uint8_t> exif;
  std::span<const uint8_t> xmp;
};

Status read_frame(uint8_t marker, std::span<const uint8_t> segment, JpegHead& head) {
  if (head.num_components != 0) return invalid_argument("is damaged: it has two frame headers");
  if (marker > kSof2) return unimplemented("is a JPEG with ", unread_process(marker), ", which is not read");
  if (segment.size() < 6) return invalid_argument("is damaged: its frame header is too short");
  if (segment[0] != 8) {
    return unimplemented("is a JPEG with ", int{segment[0]}, " bits a sample; those with 8 are read");
  }
  head.height = static_cast<int32_t>(big_endian16(&segment[1]));
  head.width = static_cast<int32_t>(big_endian16(&segment[3]));
  head.num_components = segment[5];
  if (head.num_components != 1 && head.num_components != 3 && head.num_components != 4) {
    return unimplemented("is a JPEG of ", head.num_components, " components; those of 1, 3 and 4 are read");
  }
  if (segment.size() != 6 + 3 * static_cast<size_t>(head.num_components)) {
    return invalid_argument("is damaged: its frame header has ", segment.size(), " bytes for ", head.num_components,
                            " components");
  }
  for (int32_t i = 0; i < head.num_components; ++i) {
    const uint8_t factors = segment[7 + 3 * static_cast<size_t>(i)];
    JpegHead::Component& component = head.components[static_cast<size_t>(i)];
    component = {factors >> 4, factors & 15};
    if (std::min(component.h_samples, component.v_samples) < 1 ||
        std::max(component.h_samples, component.v_samples) > 4) {
      return invalid_argument("is damaged: component ", i, " has ", component.h_samples, " x ", component.v_samples,
                              " samples; 1 to 4 are possible");
    }
  }
  head.is_progressive = marker == kSof2;
  return ok_status();
}

Status read_segment(uint8_t marker, std::span<const uint8_t> segment, Walk& walk) {
  if (is_frame(marker)) return read_frame(marker, segment, walk.head);
  if (marker != kApp1) return ok_status();
  if (starts_with(segment, kExifName)) {
    // Further segments go on where the first ended.
    const auto more = walk.exif.empty() ? segment : segment.subspan(kExifName.size());
    const size_t count = std::min(more.size(), kMaxExifBytes - walk.exif.size());
    walk.exif.insert(walk.exif.end(), more.begin(), more.begin() + static_cast<ptrdiff_t>(count));
  } else if (starts_with(segment, kXmpName)) {
    walk.xmp = segment.subspan(kXmpName.size());
  }
  return ok_status();
}

StatusOr<JpegHead> finish_head(std::span<const uint8_t> scan, Walk& walk) {
  JpegHead& head = walk.head;
  if (head.num_components == 0) return invalid_argument("is damaged: it has a scan before the frame header");
  if (scan.empty()) return invalid_argument("is damaged: its first scan has no components");
  head.has_many_scans = head.is_progressive || scan[0] < head.num_components;
  head.orientation = find_orientation(walk.exif, walk.xmp);
  return head;
}

}  // namespace

StatusOr<JpegHead> read_jpeg_head(std::span<const uint8_t> bytes) {
  Walk walk;
  size_t at = 2;
  for (;;) {
    // What is no marker is skipped, as are bytes that fill up before one.
    while (at < bytes.size() && bytes[at] != 0xff) ++at;
    while (at < bytes.size() && bytes[at] == 0xff) ++at;
    if (at >= bytes.size()) return invalid_argument("ends in its head, before the first scan");
    const uint8_t marker = bytes[at++];
    if (marker == 0 || stands_alone(marker)) continue;
    if (marker < kSof0) return invalid_argument("is damaged: it has an unknown marker ", int{marker}, " in its head");

    const size_t size = bytes.size() - at >= 2 ? big_endian16(&bytes[at]) : 0;
    if (bytes.size() - at < std::max<size_t>(size, 2)) {
      return invalid_argument("ends in its head, in a segment of marker ", int{marker});
    }
    if (size < 2) return invalid_argument("is damaged: a segment of its head has a size of ", size);
    const auto segment = bytes.subspan(at + 2, size - 2);
    if (marker == kSos) return finish_head(segment, walk);
    RETURN_IF_ERROR(read_segment(marker, segment, walk));
    at += size;
  }
}

}  // namespace transept
