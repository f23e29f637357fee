// The first audio track of encoded audio: container to packets to decoded frames, through FFmpeg. What may be read
// stands here in two lists; everything else about a hostile file (loops, lies, bombs) is bounded here too, but for the
// length, which is audio_reader.cc's. One thread at a time.
#pragma once

#include <memory>
#include <string>

#include "media/audio_types.h"
#include "media/ffmpeg.h"

namespace transept {

class FfmpegInput final {
 public:
  // Errors: as AudioReader::open, but for the length.
  static StatusOr<std::unique_ptr<FfmpegInput>> open(AudioBytes audio);
  ~FfmpegInput();
  FfmpegInput(const FfmpegInput&) = delete;
  FfmpegInput& operator=(const FfmpegInput&) = delete;

  const AudioInfo& info() const { return info_; }

  // False: info().duration_seconds is a guess from the bit rate.
  bool duration_is_from_header() const { return duration_is_from_header_; }

  // The next frame with sound in it: samples, a rate and channels in range, no sample that is not finite. Null: the
  // end. Valid until the next call. Errors: the file costs more reading or more packets without sound than any honest
  // one, or cannot be read any more.
  StatusOr<AVFrame*> next_frame();

  // What was passed over so far: "3 damaged packets were left out", or "".
  std::string warning() const;

 private:
  struct ByteSource;
  FfmpegInput();
  Status open_container(AudioBytes audio);
  Status choose_track();
  Status open_decoder();
  void read_info();
  Status send_packet();
  bool accept_frame();

  std::unique_ptr<ByteSource> source_;  // outlives the two that read from it
  FfmpegPtr<AVIOContext> io_;
  FfmpegPtr<AVFormatContext> container_;
  FfmpegPtr<AVCodecContext> decoder_;
  FfmpegPtr<AVPacket> packet_;
  FfmpegPtr<AVFrame> frame_;
  AVStream* track_ = nullptr;
  AudioInfo info_;
  bool duration_is_from_header_ = false;
  bool draining_ = false;         // the last packet is sent
  int64_t num_damaged_ = 0;       // packets and frames left out
  int64_t num_silent_steps_ = 0;  // packets more than frames
  int end_error_ = 0;             // FFmpeg's, of a container that broke off
};

}  // namespace transept
