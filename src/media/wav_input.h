// Reads WAV files without FFmpeg, where that is not installed: integers of 8, 16, 24 and 32 bits and floats of 32 and
// 64, one channel or two, RIFF with or without WAVE_FORMAT_EXTENSIBLE. The input is untrusted. Owned by a reader; used
// by one thread at a time. Source: Multimedia Programming Interface and Data Specifications 1.0 (IBM, Microsoft, 1991).
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "media/audio_types.h"

namespace transept {

// Whether the content begins as a RIFF file of sound does.
bool is_wav(const AudioBytes& audio);

class WavInput final {
 public:
  // Errors: kInvalidArgument for bytes that are no such file, with the reason; as AudioBytes::read.
  static StatusOr<std::unique_ptr<WavInput>> open(AudioBytes audio);

  // info().codec and .container are FFmpeg's names. The duration counts the samples that the file has.
  const AudioInfo& info() const { return info_; }

  // Appends the next samples, at most 65,536, as mono: the mean of the channels, full scale 1. Returns their number; 0
  // is the end. Floats are clamped to +-1024, NaN to 0. Errors: as AudioBytes::read.
  StatusOr<size_t> next(std::vector<float>& out);

 private:
  WavInput() = default;
  Status read_chunks();
  Status read_format(size_t offset, size_t size);

  AudioBytes audio_;
  AudioInfo info_;
  bool is_float_ = false;
  size_t sample_bytes_ = 0;  // of one channel
  size_t position_ = 0;      // of the next frame in the file
  size_t end_ = 0;           // of the last whole frame
  std::vector<uint8_t> buffer_;
};

}  // namespace transept
