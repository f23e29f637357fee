// The mel filters of a file of whisper.cpp are known when they are Whisper's own.
#include "foreign/ggml_whisper.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace transept {
namespace {

constexpr int32_t kBins = 201;

double slaney_mel(double hertz) {
  return hertz < 1000 ? hertz * 3 / 200 : 15 + std::log(hertz / 1000) * 27 / std::log(6.4);
}
double slaney_hertz(double mel) { return mel < 15 ? mel * 200 / 3 : 1000 * std::exp((mel - 15) * std::log(6.4) / 27); }

// librosa.filters.mel(sr=16000, n_fft=400, n_mels=mels), from its definition.
std::vector<float> librosa_filters(int32_t mels) {
  std::vector<double> edges;
  edges.reserve(static_cast<size_t>(mels) + 2);
  for (int32_t i = 0; i < mels + 2; ++i) edges.push_back(slaney_hertz(slaney_mel(8000) * i / (mels + 1)));
  std::vector<float> filters;
  for (size_t i = 0; i < static_cast<size_t>(mels); ++i) {
    for (int32_t j = 0; j < kBins; ++j) {
      const double hertz = 40.0 * j;
      const double rise = (hertz - edges[i]) / (edges[i + 1] - edges[i]);
      const double fall = (edges[i + 2] - hertz) / (edges[i + 2] - edges[i + 1]);
      filters.push_back(static_cast<float>(std::max(0.0, std::min(rise, fall)) * 2 / (edges[i + 2] - edges[i])));
    }
  }
  return filters;
}

TEST(GgmlWhisper, KnowsWhispersMelFilters) {
  for (const int32_t mels : {80, 128}) {
    std::vector<float> filters = librosa_filters(mels);
    EXPECT_TRUE(are_own_mel_filters(filters, mels)) << mels;
    EXPECT_FALSE(are_own_mel_filters(filters, mels - 1));
    for (const float change : {2e-6f, -2e-6f, NAN}) {
      std::vector<float> other = filters;
      other[other.size() / 2] += change;
      EXPECT_FALSE(are_own_mel_filters(other, mels)) << change;
    }
    filters.back() += 5e-7f;
    EXPECT_TRUE(are_own_mel_filters(filters, mels)) << "rounding";
  }
  EXPECT_FALSE(are_own_mel_filters({}, 0));
}

}  // namespace
}  // namespace transept
