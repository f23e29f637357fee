// Blocks of samples of any format, rate and channels to mono at one rate, by FFmpeg's swresample with its defaults, so
// that the result is what the ffmpeg program gives. One thread at a time.
#pragma once

#include <vector>

#include "base/status.h"
#include "media/ffmpeg.h"

namespace transept {

// Samples where they lie.
struct SampleBlock {
  const uint8_t* const* planes = nullptr;  // one, or one a channel if the format is planar
  int num_samples = 0;                     // a channel
  AVSampleFormat format = AV_SAMPLE_FMT_NONE;
  int sampling_rate = 0;
  const AVChannelLayout* layout = nullptr;  // without places: the usual ones of so many channels
};

class FfmpegResampler final {
 public:
  // in_16_bit: the result is rounded and clipped to 16 bits, as a file of them would hold it; else it is floats.
  FfmpegResampler(int sampling_rate, bool in_16_bit);

  // Appends what the first `count` samples from `begin` on give. A block unlike the one before ends that one's sound
  // first. Errors: parameters that change more often than in any honest file;
  // FFmpeg cannot be loaded.
  Status convert(const SampleBlock& block, int begin, int count, std::vector<float>& out);

  // Appends what is still inside; the next block begins anew.
  Status flush(std::vector<float>& out);

 private:
  Status configure(const SampleBlock& block);
  Status run(const uint8_t** planes, int count, std::vector<float>& out);

  int sampling_rate_;
  bool in_16_bit_;
  FfmpegPtr<SwrContext> context_;  // null: nothing has come since the beginning or the last flush
  AVSampleFormat format_ = AV_SAMPLE_FMT_NONE;
  int in_rate_ = 0;
  ChannelLayout layout_;
  int num_configurations_ = 0;
  std::vector<int16_t> shorts_;
};

}  // namespace transept
