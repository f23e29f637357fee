#include "server/realtime_audio.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace transept {
namespace {

// The values of a law from the decision values of G.711's tables, in 16 bits: from interval to interval, in eight
// segments of 16. A value is the middle of its interval.
std::vector<int> middles(int first_edge, const std::vector<int>& widths) {
  std::vector<int> values;
  int edge = first_edge;
  for (const int width : widths) {
    for (int i = 0; i < 16; ++i, edge += width) values.push_back(edge + width / 2);
  }
  return values;
}

TEST(RealtimeAudio, MuLawIsThatOfTheStandardsIntervals) {
  // Table 2a: the first interval goes from -1 to 1 of 8159 (here -4 to 4); steps of 2, 4, ... 256.
  const std::vector<int> values = middles(-4, {8, 16, 32, 64, 128, 256, 512, 1024});
  EXPECT_EQ(values[127], 32124);
  for (int i = 0; i < 128; ++i) {
    EXPECT_EQ(sample_of_mu_law(static_cast<uint8_t>(0xFF - i)), values[static_cast<size_t>(i)]) << i;
    EXPECT_EQ(sample_of_mu_law(static_cast<uint8_t>(0x7F - i)), -values[static_cast<size_t>(i)]) << i;
  }
}

TEST(RealtimeAudio, ALawIsThatOfTheStandardsIntervals) {
  // Table 1a: steps of 2 of 4096 (here 16) in both of the first segments, then twice the one before.
  const std::vector<int> values = middles(0, {16, 16, 32, 64, 128, 256, 512, 1024});
  EXPECT_EQ(values[127], 32256);
  for (int i = 0; i < 128; ++i) {
    EXPECT_EQ(sample_of_a_law(static_cast<uint8_t>((i | 0x80) ^ 0x55)), values[static_cast<size_t>(i)]) << i;
    EXPECT_EQ(sample_of_a_law(static_cast<uint8_t>(i ^ 0x55)), -values[static_cast<size_t>(i)]) << i;
  }
}

TEST(RealtimeAudio, PcmIsLittleEndianHoweverItIsCut) {
  const std::string bytes("\x01\x00\xFF\xFF\x00\x80\xFF\x7F", 8);
  const std::vector<int16_t> expected = {1, -1, -32768, 32767};
  for (size_t first = 0; first <= bytes.size(); ++first) {
    for (size_t second = first; second <= bytes.size(); ++second) {
      RealtimeAudio audio;
      std::vector<int16_t> samples;
      audio.read({}, std::string_view(bytes).substr(0, first), samples);
      EXPECT_EQ(audio.has_half_sample(), first % 2 == 1);
      audio.read({}, std::string_view(bytes).substr(first, second - first), samples);
      audio.read({}, std::string_view(bytes).substr(second), samples);
      EXPECT_EQ(samples, expected) << first << ' ' << second;
    }
  }
}

TEST(RealtimeAudio, AForgottenHalfIsNoPartOfTheNextSample) {
  RealtimeAudio audio;
  std::vector<int16_t> samples;
  audio.read({}, "x", samples);
  audio.reset();
  EXPECT_FALSE(audio.has_half_sample());
  audio.read({}, std::string_view("\x02\x01", 2), samples);
  EXPECT_EQ(samples, std::vector<int16_t>{0x0102});
}

TEST(RealtimeAudio, OfTelephonesAByteIsASample) {
  RealtimeAudio audio;
  std::vector<int16_t> samples;
  audio.read({RealtimeFormat::Kind::kPcmu, 8000}, std::string_view("\xFF\x80", 2), samples);
  audio.read({RealtimeFormat::Kind::kPcma, 8000}, std::string_view("\xD5", 1), samples);
  EXPECT_EQ(samples, (std::vector<int16_t>{0, 32124, 8}));
  EXPECT_FALSE(audio.has_half_sample());
}

}  // namespace
}  // namespace transept
