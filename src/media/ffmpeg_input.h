// Decodes the first audio track of encoded audio: container to packets to frames, by FFmpeg. The .cc file has the
// allow-lists of containers and codecs, and bounds every other cost of a hostile file (loops, false claims, compression
// bombs) except the length, which audio_reader.cc bounds. Owned by a reader; used by one thread at a time.
#pragma once

#include <memory>
#include <string>

#include "media/audio_types.h"
#include "media/ffmpeg.h"

namespace transept {

class FfmpegInput final {
 public:
  // Errors: as AudioReader::open, except those of the options, the length and missing samples.
  static StatusOr<std::unique_ptr<FfmpegInput>> open(AudioBytes audio);
  ~FfmpegInput();
  FfmpegInput(const FfmpegInput&) = delete;
  FfmpegInput& operator=(const FfmpegInput&) = delete;

  const AudioInfo& info() const { return info_; }

  // False: info().duration_seconds is an estimate from the bit rate.
  bool duration_is_from_header() const { return duration_is_from_header_; }

  // Decodes the next frame with samples, its rate and channels in range. Floats are clamped to +-1024, NaN to 0. Skips
  // other frames and damaged packets. Returns null at the end. The frame is valid until the next call. Errors:
  // kInvalidArgument after reading 16 times the size of the file plus 16 MiB, after 200,000 more packets than frames,
  // or if the file cannot be read.
  StatusOr<AVFrame*> next_frame();

  // Returns what was skipped so far: "3 damaged packets were left out"; "" if nothing was.
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

  std::unique_ptr<ByteSource> source_;  // first: io_ and container_ read from it
  FfmpegPtr<AVIOContext> io_;
  FfmpegPtr<AVFormatContext> container_;
  FfmpegPtr<AVCodecContext> decoder_;
  FfmpegPtr<AVPacket> packet_;
  FfmpegPtr<AVFrame> frame_;
  AVStream* track_ = nullptr;
  AudioInfo info_;
  bool duration_is_from_header_ = false;
  bool draining_ = false;         // the last packet is sent
  int64_t num_damaged_ = 0;       // skipped packets and frames
  int64_t num_silent_steps_ = 0;  // packets beyond the number of frames
  int end_error_ = 0;             // FFmpeg's error of a container that ended early; 0: none
};

}  // namespace transept
