// FFmpeg's headers, owners of its objects, and its errors as text. Only for the files of this folder that decode and
// resample; no header that other folders include may include it. Functions are thread-safe; objects belong to one
// thread at a time.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "media/ffmpeg_library.h"

namespace transept {

// Frees any of FFmpeg's objects.
struct FfmpegDeleter {
  void operator()(AVFormatContext* context) const { ffmpeg().avformat_close_input(&context); }
  void operator()(AVCodecContext* context) const { ffmpeg().avcodec_free_context(&context); }
  void operator()(AVPacket* packet) const { ffmpeg().av_packet_free(&packet); }
  void operator()(AVFrame* frame) const { ffmpeg().av_frame_free(&frame); }
  void operator()(SwrContext* context) const { ffmpeg().swr_free(&context); }
  void operator()(AVIOContext* context) const {
    if (context != nullptr) ffmpeg().av_freep(&context->buffer);
    ffmpeg().avio_context_free(&context);
  }
};
template <typename T>
using FfmpegPtr = std::unique_ptr<T, FfmpegDeleter>;

// Loads FFmpeg and applies its process-wide settings once: its messages go to the log at debug level, and no single
// allocation exceeds 64 MiB, whatever a file claims. Errors: as load_ffmpeg.
Status set_up_ffmpeg();

// Returns the reason of an FFmpeg error code, for people: "its data is damaged".
std::string ffmpeg_error(int code);

// Which FFmpeg is in use, for people: "5.1.6-0+deb12u1". REQUIRES: load_ffmpeg() has succeeded.
std::string ffmpeg_version();

// Of a decoded frame. The layout is a view of the frame's, which stays its owner.
int frame_rate(const AVFrame& frame);
int frame_channels(const AVFrame& frame);
AVChannelLayout frame_layout(const AVFrame& frame);

// Owns a channel layout.
class ChannelLayout final {
 public:
  ChannelLayout() = default;
  ~ChannelLayout() {
    if (layout_.nb_channels > 0) ffmpeg().av_channel_layout_uninit(&layout_);
  }
  ChannelLayout(const ChannelLayout&) = delete;
  ChannelLayout& operator=(const ChannelLayout&) = delete;

  // Sets the default layout of that many channels; channels without a position if there is none.
  void set_default(int num_channels) {
    ffmpeg().av_channel_layout_uninit(&layout_);
    ffmpeg().av_channel_layout_default(&layout_, num_channels);
  }
  // Returns false without memory.
  bool copy(const AVChannelLayout& other) { return ffmpeg().av_channel_layout_copy(&layout_, &other) >= 0; }
  bool equals(const AVChannelLayout& other) const { return ffmpeg().av_channel_layout_compare(&layout_, &other) == 0; }
  const AVChannelLayout& get() const { return layout_; }
  AVChannelLayout* get() { return &layout_; }  // for functions that only read it but are not const-correct
  int num_channels() const { return layout_.nb_channels; }

 private:
  AVChannelLayout layout_{};
};

}  // namespace transept
