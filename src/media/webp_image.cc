#include "media/webp_image.h"

#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "media/exif.h"
#include "media/image_pixels.h"
#include "media/webp_lossless.h"

namespace transept {
namespace {

constexpr size_t kRiffHeader = 12;
constexpr size_t kChunkHeader = 8;
constexpr size_t kFrameHeader = 16;    // of ANMF, before the frame's own chunks
constexpr size_t kLosslessHeader = 5;  // of VP8L's data
constexpr size_t kMaxChunks = 16384;   // libwebp keeps some 100 bytes of each
constexpr size_t kFixedBytes = size_t{64} << 10;
// libwebp's lossy decoder keeps so much of each column of 16 pixels: frame_dec.c, AllocateMemory.
constexpr size_t kColumnBytes = 2304;

struct DeleteDemuxer {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};
using Demuxer = std::unique_ptr<WebPDemuxer, DeleteDemuxer>;

uint32_t little_endian32(const uint8_t* bytes) {
  return uint32_t{bytes[3]} << 24 | uint32_t{bytes[2]} << 16 | uint32_t{bytes[1]} << 8 | bytes[0];
}

struct Chunk {
  std::string_view name;
  std::span<const uint8_t> data;     // cut with the bytes
  std::span<const uint8_t> further;  // behind the chunk
};

// REQUIRES: kChunkHeader bytes.
Chunk chunk_at(std::span<const uint8_t> bytes) {
  const size_t size = little_endian32(bytes.data() + 4);
  const auto data = bytes.subspan(kChunkHeader);
  return {std::string_view(reinterpret_cast<const char*>(bytes.data()), 4), data.first(std::min(size, data.size())),
          data.subspan(std::min(size + size % 2, data.size()))};
}

// Before libwebp lists them. It looks for chunks within a frame's, too.
Status check_num_chunks(std::span<const uint8_t> bytes) {
  auto rest = bytes.subspan(kRiffHeader);
  for (size_t count = 0; rest.size() >= kChunkHeader; ++count) {
    if (count == kMaxChunks) return invalid_argument("has more than ", kMaxChunks, " chunks");
    const Chunk chunk = chunk_at(rest);
    rest = chunk.name == "ANMF" ? rest.subspan(std::min(kChunkHeader + kFrameHeader, rest.size())) : chunk.further;
  }
  return ok_status();
}

std::span<const uint8_t> chunk_of(const WebPDemuxer* demuxer, const char (&name)[5]) {
  WebPChunkIterator found;
  if (WebPDemuxGetChunk(demuxer, name, 1, &found) == 0) return {};
  const std::span<const uint8_t> data(found.chunk.bytes, found.chunk.size);  // of the file: it stays
  WebPDemuxReleaseChunkIterator(&found);
  return data;
}

// What libwebp takes for a lossless picture beside its result: pixels of 4 bytes and the rows that are being worked on;
// the transforms' and the groups' pictures, each a sixteenth of its size at most; and its codes.
StatusOr<size_t> lossless_bytes(std::span<const uint8_t> bits, int32_t width, int32_t height) {
  ASSIGN_OR_RETURN(const size_t code_bytes, lossless_code_bytes(bits, width, height));
  const auto w = static_cast<size_t>(width), h = static_cast<size_t>(height);
  return code_bytes + 4 * (w * h + 17 * w) + 3 * 4 * ((w + 3) / 4) * ((h + 3) / 4);
}

// What libwebp takes for the frame beside its result. Errors: as lossless_code_bytes.
StatusOr<size_t> frame_bytes(std::span<const uint8_t> frame, int32_t width, int32_t height) {
  const auto w = static_cast<size_t>(width), h = static_cast<size_t>(height);
  size_t bytes = kFixedBytes;
  for (auto rest = frame; rest.size() >= kChunkHeader;) {
    const Chunk chunk = chunk_at(rest);
    rest = chunk.further;
    if (chunk.name == "VP8L") {
      const auto bits = chunk.data.subspan(std::min(kLosslessHeader, chunk.data.size()));
      ASSIGN_OR_RETURN(const size_t more, lossless_bytes(bits, width, height));
      bytes += more;
    } else if (chunk.name == "VP8 ") {
      bytes += (w + 15) / 16 * kColumnBytes + 2 * w;
    } else if (chunk.name == "ALPH" && !chunk.data.empty()) {
      bytes += 2 * w * h;
      if ((chunk.data[0] & 3) != 1) continue;
      ASSIGN_OR_RETURN(const size_t more, lossless_bytes(chunk.data.subspan(1), width, height));
      bytes += more;
    }
  }
  return bytes;
}

std::string_view reason(VP8StatusCode code) {
  switch (code) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED: return "its data end early";
    case VP8_STATUS_UNSUPPORTED_FEATURE: return "it uses what libwebp does not know";
    default: return "its data contradict themselves";
  }
}

}  // namespace

StatusOr<std::unique_ptr<WebpImage>> WebpImage::open(std::span<const uint8_t> bytes, const ImageLimits& limits) {
  const size_t size = size_t{little_endian32(bytes.data() + 4)} + kChunkHeader;
  if (size > bytes.size()) return invalid_argument("ends early: it has ", bytes.size(), " of ", size, " bytes");
  RETURN_IF_ERROR(check_num_chunks(bytes.first(std::max(size, kRiffHeader))));
  const WebPData data = {bytes.data(), bytes.size()};
  const Demuxer demuxer(WebPDemux(&data));
  WebPIterator first;
  if (demuxer == nullptr || WebPDemuxGetFrame(demuxer.get(), 1, &first) == 0) {
    return invalid_argument("is damaged: its chunks contradict themselves");
  }
  std::unique_ptr<WebpImage> image(new WebpImage);
  image->frame_ = {first.fragment.bytes, first.fragment.size};
  image->x_ = first.x_offset;
  image->y_ = first.y_offset;
  image->width_ = first.width;
  image->height_ = first.height;
  WebPDemuxReleaseIterator(&first);

  const int64_t width = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH);
  const int64_t height = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT);
  RETURN_IF_ERROR(check_image_size(width, height, limits));
  WebPBitstreamFeatures features;
  const bool has_features = WebPGetFeatures(bytes.data(), bytes.size(), &features) == VP8_STATUS_OK;
  ImageInfo& info = image->info_;
  info.format = ImageFormat::kWebp;
  info.width = static_cast<int32_t>(width);
  info.height = static_cast<int32_t>(height);
  info.num_channels = has_features && features.has_alpha == 0 ? 3 : 4;
  info.orientation = find_orientation(chunk_of(demuxer.get(), "EXIF"), chunk_of(demuxer.get(), "XMP "));
  ASSIGN_OR_RETURN(const size_t decoder_bytes, frame_bytes(image->frame_, image->width_, image->height_));
  info.decode_bytes = OrientedRows::bytes_needed(info) + decoder_bytes;
  if (info.num_channels == 4 || info.orientation != 1) {
    info.decode_bytes += static_cast<size_t>(info.num_channels) * static_cast<size_t>(width * height);
  }
  return image;
}

StatusOr<RgbImage> WebpImage::decode(ImageAlpha alpha) const {
  OrientedRows rows(info_);
  const size_t num_channels = info_.num_channels == 4 && alpha == ImageAlpha::kWhite ? 4 : 3;
  const auto width = static_cast<size_t>(info_.width), height = static_cast<size_t>(info_.height);
  // What the frame does not cover is transparent black, or black.
  const bool is_direct = num_channels == 3 && info_.orientation == 1;
  std::vector<uint8_t> own_canvas(is_direct ? 0 : num_channels * width * height);
  uint8_t* const canvas = is_direct ? rows.whole() : own_canvas.data();

  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0)
    return invalid_argument("cannot be decoded: this libwebp is another version");
  const size_t stride = num_channels * width;
  config.output.colorspace = num_channels == 4 ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.stride = static_cast<int>(stride);
  config.output.u.RGBA.size = stride * static_cast<size_t>(height_ - 1) + num_channels * static_cast<size_t>(width_);
  config.output.u.RGBA.rgba = canvas + stride * static_cast<size_t>(y_) + num_channels * static_cast<size_t>(x_);
  const VP8StatusCode code = WebPDecode(frame_.data(), frame_.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (code == VP8_STATUS_OUT_OF_MEMORY) return resource_exhausted("cannot be decoded: no memory");
  if (code != VP8_STATUS_OK) return invalid_argument("is damaged: ", reason(code));
  if (is_direct) return rows.finish();

  for (int32_t y = 0; y < info_.height; ++y) {
    const uint8_t* from = canvas + stride * static_cast<size_t>(y);
    uint8_t* to = rows.row(y);
    if (num_channels == 3) {
      std::copy_n(from, stride, to);
      continue;
    }
    for (size_t x = 0; x < width; ++x, from += 4, to += 3) {
      for (int c = 0; c < 3; ++c) to[c] = on_white(from[c], from[3]);
    }
  }
  return rows.finish();
}

}  // namespace transept
