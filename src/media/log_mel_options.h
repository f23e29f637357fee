// The parameters of the log-mel front end (media/log_mel.h). A value.
#pragma once

#include <cstdint>

namespace transept {

// Named as in preprocessor_config.json, but num_mel_bins: feature_size there. LogMel::create checks the ranges.
struct LogMelOptions {
  int32_t num_mel_bins = 80;      // 1..1024
  int32_t n_fft = 400;            // samples per frame; even, 2..4096
  int32_t hop_length = 160;       // samples between frames; 1..n_fft
  int32_t sampling_rate = 16000;  // hertz; kMinSamplingRate..kMaxSamplingRate
};

}  // namespace transept
