// Any bytes as a WAV file: an error, or samples that are finite.
#include <cmath>
#include <cstdlib>
#include <string>

#include "media/wav_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto input = transept::WavInput::open(
      transept::AudioBytes::from_string(std::string(reinterpret_cast<const char*>(data), size)));
  if (!input.ok()) return 0;
  std::vector<float> samples;
  for (;;) {
    const auto count = (*input)->next(samples);
    if (!count.ok() || *count == 0) break;
  }
  if (samples.size() > size) std::abort();  // a sample is a byte or more
  for (const float x : samples) {
    if (!std::isfinite(x)) std::abort();
  }
  return 0;
}
