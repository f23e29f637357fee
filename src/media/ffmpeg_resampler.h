// Converts blocks of samples of any format, rate and number of channels to mono floats at one rate, with the defaults
// of FFmpeg's swresample: the results equal those of the ffmpeg program. Owned by a reader; used by one thread at a
// time.
#pragma once

#include <vector>

#include "base/status.h"
#include "media/ffmpeg.h"

namespace transept {

// A view of samples.
struct SampleBlock {
  const uint8_t* const* planes = nullptr;  // one, or one per channel if the format is planar
  int num_samples = 0;                     // per channel
  AVSampleFormat format = AV_SAMPLE_FMT_NONE;
  int sampling_rate = 0;
  const AVChannelLayout* layout = nullptr;  // without positions: the default ones of that many channels
};

class FfmpegResampler final {
 public:
  // sampling_rate: of the output. in_16_bit: rounds and clips to 16 bits and divides by 32768, as openai-whisper reads
  // files; else the output keeps float precision and range.
  FfmpegResampler(int sampling_rate, bool in_16_bit);

  // Converts samples [begin, begin + count) of the block and appends the output that is complete. If format, rate or
  // channels differ from the block before, flushes that one's sound first. REQUIRES: at most kMaxAudioChannels
  // channels. Errors: kInvalidArgument for more than 256 configurations, or channels and rates that FFmpeg cannot
  // convert; kResourceExhausted without memory; as set_up_ffmpeg.
  Status convert(const SampleBlock& block, int begin, int count, std::vector<float>& out);

  // Appends the output that is still buffered; the next block starts anew. Errors: as convert.
  Status flush(std::vector<float>& out);

 private:
  Status configure(const SampleBlock& block);
  Status run(const uint8_t** planes, int count, std::vector<float>& out);

  int sampling_rate_;
  bool in_16_bit_;
  FfmpegPtr<SwrContext> context_;  // null: no block since the beginning or the last flush
  AVSampleFormat format_ = AV_SAMPLE_FMT_NONE;
  int in_rate_ = 0;
  ChannelLayout layout_;
  int num_configurations_ = 0;
  std::vector<int16_t> shorts_;
};

}  // namespace transept
