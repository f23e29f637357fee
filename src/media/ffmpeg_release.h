// The releases of FFmpeg that are known, and where their structures have the fields that moved between them. Everything
// else that src/media touches is at the same place in all of them. tools/ffmpeg_fields.py compiles both claims against
// the headers of every release. Constants; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace transept {

struct FfmpegRelease {
  int version;                                // FFmpeg's
  int avutil, swresample, avcodec, avformat;  // major versions of its libraries

  // Offsets in bytes.
  struct Format {  // AVFormatContext
    size_t flags, io_open, max_streams, probesize, duration, duration_estimation_method;
  } format;
  struct Stream {  // AVStream
    size_t index, codecpar, time_base, duration, discard;
  } stream;
  struct Parameters {  // AVCodecParameters
    size_t sample_rate, num_channels;
  } parameters;
  struct Codec {  // AVCodecContext
    size_t pkt_timebase, thread_count, sample_rate, num_channels;
  } codec;
  struct Frame {  // AVFrame; layout: AVChannelLayout, and the mask in FFmpeg 4
    size_t sample_rate, layout, num_channels;
  } frame;
  int pcm_s64le;  // AVCodecID; AV_CODEC_ID_PCM_S64BE is the next

  constexpr bool has_channel_layouts() const { return version > 4; }  // AVChannelLayout, of FFmpeg 5.1
};

// The newest first.
std::span<const FfmpegRelease> ffmpeg_releases();

// A field of one of FFmpeg's objects. REQUIRES: the offset of a field of type T.
template <typename T>
T& field(void* object, size_t offset) {
  return *reinterpret_cast<T*>(static_cast<char*>(object) + offset);
}
template <typename T>
const T& field(const void* object, size_t offset) {
  return *reinterpret_cast<const T*>(static_cast<const char*>(object) + offset);
}

}  // namespace transept
