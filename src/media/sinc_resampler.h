// Changes the sampling rate of mono floats without FFmpeg: a sinc under a Kaiser window, 16 zero crossings to each
// side, beta 9, cut off at 0.97 of the lower rate's half, as swresample's default. Owned by a reader; used by one
// thread at a time. Source: Smith, Digital Audio Resampling (CCRMA, 2020).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace transept {

class SincResampler final {
 public:
  // Rates in hertz. REQUIRES: kMinSamplingRate to kMaxSamplingRate.
  SincResampler(int32_t from, int32_t to);

  // Takes the samples that come next and appends the output that is complete. Equal rates: the samples themselves.
  void convert(std::span<const float> samples, std::vector<float>& out);

  // Appends what is left: in all, the output has ceil(count * to / from) samples. Nothing may follow.
  void flush(std::vector<float>& out);

 private:
  void run(int64_t end, std::vector<float>& out);

  int64_t from_, to_;  // without common factors
  int64_t half_ = 0;   // taps before the output's place, and after it
  int64_t num_phases_ = 1;
  std::vector<float> taps_;    // [num_phases_ + 1, 2 * half_]
  std::vector<float> window_;  // input from position first_ - half_ + 1 on
  int64_t first_ = 0;
  int64_t num_in_ = 0, num_out_ = 0;
};

}  // namespace transept
