// A tone keeps its frequency, height and place at every rate; what the lower rate cannot carry is gone; pieces make the
// same samples as the whole.
#include "media/sinc_resampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace transept {
namespace {

float tone(double hertz, int rate, int64_t i) {
  return static_cast<float>(0.5 * std::sin(2 * std::numbers::pi * hertz * static_cast<double>(i) / rate));
}

std::vector<float> tones(double hertz, int rate, int count) {
  std::vector<float> samples(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) samples[static_cast<size_t>(i)] = tone(hertz, rate, i);
  return samples;
}

std::vector<float> resampled(const std::vector<float>& samples, int from, int to, size_t piece = 1 << 20) {
  SincResampler resampler(from, to);
  std::vector<float> out;
  for (size_t begin = 0; begin < samples.size(); begin += piece) {
    resampler.convert(std::span(samples).subspan(begin, std::min(piece, samples.size() - begin)), out);
  }
  resampler.flush(out);
  return out;
}

struct Rates {
  int from, to;
};

TEST(SincResampler, ATonesSamplesAreThoseOfTheOtherRate) {
  for (const auto& [from, to] : {Rates{44100, 16000}, Rates{48000, 16000}, Rates{8000, 16000}, Rates{11025, 16000},
                                 Rates{44101, 16000}, Rates{768000, 16000}, Rates{1000, 16000}, Rates{16000, 44100}}) {
    SCOPED_TRACE(::testing::Message() << from << " to " << to);
    const double hertz = std::min(from, to) / 10.0;
    const int count = from / 4;
    const std::vector<float> out = resampled(tones(hertz, from, count), from, to);
    ASSERT_EQ(static_cast<int64_t>(out.size()), (int64_t{count} * to + from - 1) / from);
    const size_t margin = out.size() / 4;
    for (size_t i = margin; i + margin < out.size(); ++i) {
      ASSERT_NEAR(out[i], tone(hertz, to, static_cast<int64_t>(i)), 1e-3) << "sample " << i;
    }
  }
}

TEST(SincResampler, WhatTheLowerRateCannotCarryIsGone) {
  const std::vector<float> out = resampled(tones(10000, 48000, 48000), 48000, 16000);
  for (size_t i = 100; i + 100 < out.size(); ++i) ASSERT_NEAR(out[i], 0, 1e-3) << "sample " << i;
}

TEST(SincResampler, PiecesMakeTheSameSamples) {
  const std::vector<float> samples = tones(440, 44100, 20000);
  const std::vector<float> whole = resampled(samples, 44100, 16000);
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{1000}}) {
    EXPECT_EQ(resampled(samples, 44100, 16000, piece), whole) << piece;
  }
}

TEST(SincResampler, EqualRatesAndShortInputs) {
  EXPECT_EQ(resampled({0.25f, -1.0f}, 16000, 16000), (std::vector<float>{0.25f, -1.0f}));
  EXPECT_TRUE(resampled({}, 44100, 16000).empty());
  EXPECT_EQ(resampled({0.5f}, 44100, 16000).size(), 1u);
  EXPECT_EQ(resampled({0.5f}, 8000, 16000).size(), 2u);
}

}  // namespace
}  // namespace transept
