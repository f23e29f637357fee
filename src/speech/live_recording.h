// The samples of a live session from the beginning of the open item on, as they came. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "media/audio_types.h"

namespace transept {

class LiveRecording final {
 public:
  void append(std::span<const int16_t> samples);
  // Forgets the samples before `position`, which count from the first that was appended.
  void forget(int64_t position);

  int64_t begin() const { return begin_; }
  int64_t end() const { return begin_ + std::ssize(samples_) - dropped_; }
  int64_t size() const { return end() - begin(); }

  // Returns samples [begin, end) as the WAV file that a caller would have made of them: 16 bits, mono. REQUIRES:
  // begin() <= begin <= end <= end(); a rate of kMinSamplingRate to kMaxSamplingRate; less than 2^31 bytes.
  AudioBytes wav(int64_t begin, int64_t end, int32_t sampling_rate) const;

 private:
  int64_t begin_ = 0;
  int64_t dropped_ = 0;  // of samples_: before begin_
  std::vector<int16_t> samples_;
};

}  // namespace transept
