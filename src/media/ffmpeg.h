// FFmpeg's headers, owners for what they allocate, and its errors as words. For the files of this folder that decode
// and resample; nothing of it reaches a public header.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "media/ffmpeg_library.h"

namespace transept {

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

// Loads FFmpeg, and sets, once, what it keeps for the whole process: its messages go to our log at debug level, and no
// single allocation of it exceeds 64 MiB, whatever a file claims. Errors: load_ffmpeg's.
Status set_up_ffmpeg();

// Why FFmpeg gave up, for people: "its data is damaged".
std::string ffmpeg_error(int code);

// A channel layout that frees itself.
class ChannelLayout final {
 public:
  ChannelLayout() = default;
  ~ChannelLayout() {
    if (layout_.nb_channels > 0) ffmpeg().av_channel_layout_uninit(&layout_);
  }
  ChannelLayout(const ChannelLayout&) = delete;
  ChannelLayout& operator=(const ChannelLayout&) = delete;

  // The usual layout of so many channels; where there is none, channels without a place.
  void set_default(int num_channels) {
    ffmpeg().av_channel_layout_uninit(&layout_);
    ffmpeg().av_channel_layout_default(&layout_, num_channels);
  }
  // False: no memory.
  bool copy(const AVChannelLayout& other) { return ffmpeg().av_channel_layout_copy(&layout_, &other) >= 0; }
  bool equals(const AVChannelLayout& other) const { return ffmpeg().av_channel_layout_compare(&layout_, &other) == 0; }
  const AVChannelLayout& get() const { return layout_; }
  AVChannelLayout* get() { return &layout_; }  // for functions that only read it, and do not say so
  int num_channels() const { return layout_.nb_channels; }

 private:
  AVChannelLayout layout_{};
};

}  // namespace transept
