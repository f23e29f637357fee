#include "media/png_head.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "media/exif.h"

namespace transept {
namespace {

using namespace std::string_view_literals;

constexpr size_t kSignatureBytes = 8;
constexpr size_t kHeaderBytes = 13;
constexpr std::string_view kXmpKeyword = "XML:com.adobe.xmp\0"sv;

uint32_t big_endian32(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

// CRC-32 of ISO 3309, PNG's annex D. Data of pictures do not pass through it.
constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? 0xedb88320u ^ crc >> 1 : crc >> 1;
    table[i] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = make_crc_table();

uint32_t crc32(std::span<const uint8_t> bytes) {
  uint32_t crc = 0xffffffff;
  for (const uint8_t byte : bytes) crc = kCrcTable[(crc ^ byte) & 0xff] ^ crc >> 8;
  return ~crc;
}

bool is_letter(uint8_t byte) {  // as Pillow takes them: a letter, a digit or _
  return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '_';
}

std::string name_text(uint32_t name) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(name >> shift & 0xff);
  return text;
}

Status check_crc(const PngChunk& chunk) {
  const uint32_t stored = big_endian32(chunk.whole.data() + 8 + chunk.size);
  if (crc32(chunk.whole.subspan(4, 4 + chunk.size)) == stored) return ok_status();
  return invalid_argument("is damaged: the checksum of its ", name_text(chunk.name), " chunk is wrong");
}

bool is_possible(PngColor color, uint32_t bit_depth) {
  switch (color) {
    case PngColor::kGrey:
      return bit_depth == 1 || bit_depth == 2 || bit_depth == 4 || bit_depth == 8 || bit_depth == 16;
    case PngColor::kPalette: return bit_depth == 1 || bit_depth == 2 || bit_depth == 4 || bit_depth == 8;
    case PngColor::kRgb:
    case PngColor::kGreyAlpha:
    case PngColor::kRgbAlpha: return bit_depth == 8 || bit_depth == 16;
  }
  return false;
}

Status read_header(const PngChunk& chunk, PngHead& head) {
  if (chunk.size != kHeaderBytes) {
    return invalid_argument("is damaged: its header has ", chunk.size, " bytes; it takes ", kHeaderBytes);
  }
  const uint8_t* data = chunk.data.data();
  head.width = big_endian32(data);
  head.height = big_endian32(data + 4);
  head.bit_depth = data[8];
  head.color = static_cast<PngColor>(data[9]);
  if (!is_possible(head.color, head.bit_depth)) {
    return invalid_argument("is damaged: color type ", int{data[9]}, " with ", int{data[8]}, " bits does not exist");
  }
  if (data[10] != 0 || data[11] != 0 || data[12] > 1) {
    return invalid_argument("is damaged: compression ", int{data[10]}, ", filter ", int{data[11]}, ", interlace ",
                            int{data[12]}, "; known are 0, 0, and 0 or 1");
  }
  head.is_interlaced = data[12] == 1;
  head.header = chunk.whole;
  return ok_status();
}

Status read_palette(const PngChunk& chunk, PngHead& head) {
  if (head.color != PngColor::kPalette) return ok_status();  // a suggestion
  if (chunk.size / 3 > 256) return invalid_argument("is damaged: its palette has ", chunk.size / 3, " entries");
  head.palette = chunk.data;
  head.has_palette = true;
  return ok_status();
}

Status read_transparency(const PngChunk& chunk, PngHead& head) {
  const bool is_key = head.color == PngColor::kGrey || head.color == PngColor::kRgb;
  if (!is_key && head.color != PngColor::kPalette) return ok_status();  // it has alpha, which counts
  const size_t needed = head.color == PngColor::kGrey ? 2 : head.color == PngColor::kRgb ? 6 : 0;
  if (chunk.size < needed || (!is_key && chunk.size > 256)) {
    return invalid_argument("is damaged: its tRNS chunk has ", chunk.size, " bytes");
  }
  head.transparency = chunk.data;
  head.is_transparent = true;
  return ok_status();
}

// The packet of an iTXt chunk; empty if it has another text or is compressed.
std::span<const uint8_t> xmp_of(std::span<const uint8_t> data) {
  const size_t flags = kXmpKeyword.size();
  if (data.size() < flags + 2 || std::memcmp(data.data(), kXmpKeyword.data(), flags) != 0 || data[flags] != 0)
    return {};
  auto rest = data.subspan(flags + 2);
  for (int field = 0; field < 2; ++field) {  // language, translated keyword
    const auto end = std::find(rest.begin(), rest.end(), 0);
    if (end == rest.end()) return {};
    rest = rest.subspan(static_cast<size_t>(end - rest.begin()) + 1);
  }
  return rest;
}

// Behind the data the file may end anywhere but within a chunk's data, and its checksums are not looked at.
StatusOr<PngHead> read_chunks(std::span<const uint8_t> bytes) {
  PngHead head;
  std::span<const uint8_t> exif, xmp;
  bool is_animated = false;
  for (auto rest = bytes.subspan(kSignatureBytes);;) {
    const StatusOr<PngChunk> found = png_chunk_at(rest);
    if (!found.ok() && !head.image.empty()) break;
    if (!found.ok()) return found.status();
    const PngChunk& chunk = *found;
    const bool is_image = chunk.name == png_chunk_name("IDAT");
    if (chunk.name == png_chunk_name("IEND")) break;
    // The next picture of an animation.
    if (is_animated && !head.image.empty() && chunk.name == png_chunk_name("fcTL")) break;
    if (head.header.empty() && chunk.name != png_chunk_name("IHDR")) {
      return invalid_argument("is damaged: it begins with a chunk ", name_text(chunk.name));
    }
    if (is_image && head.image.empty()) head.image = rest;
    if (!is_image && (chunk.data.size() < chunk.size || (head.image.empty() && !chunk.is_whole()))) {
      return invalid_argument("ends in its ", name_text(chunk.name), " chunk");
    }
    if (!is_image && head.image.empty()) RETURN_IF_ERROR(check_crc(chunk));
    switch (chunk.name) {
      case png_chunk_name("IHDR"):
        if (head.header.empty()) RETURN_IF_ERROR(read_header(chunk, head));
        break;
      case png_chunk_name("PLTE"):
        if (head.image.empty()) RETURN_IF_ERROR(read_palette(chunk, head));
        break;
      case png_chunk_name("tRNS"): RETURN_IF_ERROR(read_transparency(chunk, head)); break;
      case png_chunk_name("acTL"): is_animated = true; break;
      case png_chunk_name("eXIf"): exif = chunk.data; break;
      case png_chunk_name("iTXt"):
        if (const auto packet = xmp_of(chunk.data); !packet.empty()) xmp = packet;
        break;
      default: break;
    }
    if (!chunk.is_whole()) break;
    rest = rest.subspan(chunk.whole.size());
  }
  head.orientation = find_orientation(exif, xmp);
  return head;
}

}  // namespace

int32_t PngHead::num_channels() const {
  switch (color) {
    case PngColor::kGrey:
    case PngColor::kPalette: return 1;
    case PngColor::kGreyAlpha: return 2;
    case PngColor::kRgb: return 3;
    case PngColor::kRgbAlpha: return 4;
  }
  return 0;
}

StatusOr<PngChunk> png_chunk_at(std::span<const uint8_t> bytes) {
  if (bytes.size() < 8) return invalid_argument("ends in its head, before the picture's data");
  if (!std::all_of(bytes.begin() + 4, bytes.begin() + 8, is_letter)) {
    return invalid_argument("is damaged: a chunk has no name");
  }
  PngChunk chunk;
  chunk.size = big_endian32(bytes.data());
  chunk.name = big_endian32(bytes.data() + 4);
  chunk.data = bytes.subspan(8, std::min(chunk.size, bytes.size() - 8));
  chunk.whole = bytes.first(std::min(chunk.size + PngChunk::kOverhead, bytes.size()));
  return chunk;
}

StatusOr<PngHead> read_png_head(std::span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(const PngHead head, read_chunks(bytes));
  if (head.image.empty()) return invalid_argument("is damaged: it has no data of a picture");
  if (head.color == PngColor::kPalette && !head.has_palette) {
    return invalid_argument("is damaged: its palette is missing");
  }
  return head;
}

}  // namespace transept
