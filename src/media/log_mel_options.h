#pragma once

#include <cstdint>

namespace transept {

// The front end's parameters, as preprocessor_config.json names them. A value.
struct LogMelOptions {
  int32_t num_mel_bins = 80;  // feature_size; 1..1024
  int32_t n_fft = 400;        // samples a frame; even, 2..4096
  int32_t hop_length = 160;   // samples from frame to frame; 1..n_fft
  int32_t sampling_rate = 16000;
};

}  // namespace transept
