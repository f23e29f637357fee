// WAV without FFmpeg gives the samples that FFmpeg gives, at the file's rate and at others; what it cannot read is
// refused with the reason.
#include "media/wav_input.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "media/media_testing.h"
#include "media/sinc_resampler.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

StatusOr<std::vector<float>> read_wav(std::string content) {
  ASSIGN_OR_RETURN(const std::unique_ptr<WavInput> input, WavInput::open(AudioBytes::from_string(std::move(content))));
  std::vector<float> samples;
  for (size_t count = 1; count > 0;) {
    ASSIGN_OR_RETURN(count, input->next(samples));
  }
  return samples;
}

std::string error_of(std::string content) { return std::string(read_wav(std::move(content)).status().message()); }

TEST(WavInput, GivesTheSamplesThatFfmpegGives) {
  for (const char* name : {"s16.wav", "u8.wav", "s24.wav", "s32.wav", "f32.wav", "f64.wav", "extensible.wav",
                           "stereo44.wav", "rate_96000.wav"}) {
    SCOPED_TRACE(name);
    const std::string content = file_text(fixture_path(name));
    auto input = WavInput::open(AudioBytes::from_string(content));
    ASSERT_TRUE(input.ok()) << input.status();
    const AudioInfo info = (*input)->info();
    auto reader = open_text(content, {.sampling_rate = info.sampling_rate});
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ(info.container, (*reader)->info().container);
    EXPECT_EQ(info.codec, (*reader)->info().codec);
    EXPECT_EQ(info.sampling_rate, (*reader)->info().sampling_rate);
    EXPECT_EQ(info.num_channels, (*reader)->info().num_channels);
    EXPECT_NEAR(info.duration_seconds, (*reader)->info().duration_seconds, 1e-3);
    const auto theirs = read_all(**reader);
    const auto ours = read_wav(content);
    ASSERT_TRUE(theirs.ok() && ours.ok());
    ASSERT_EQ(ours->size(), theirs->size());
    for (size_t i = 0; i < ours->size(); ++i) ASSERT_NEAR((*ours)[i], (*theirs)[i], 1.01 / 32768) << "sample " << i;
  }
}

TEST(WavInput, OtherRatesAreCloseToFfmpegs) {
  for (const char* name : {"stereo44.wav", "rate_96000.wav"}) {
    SCOPED_TRACE(name);
    const std::string content = file_text(fixture_path(name));
    const auto theirs = decode_text(content);
    const auto input = WavInput::open(AudioBytes::from_string(content));
    const auto samples = read_wav(content);
    ASSERT_TRUE(theirs.ok() && input.ok() && samples.ok());
    SincResampler resampler((*input)->info().sampling_rate, 16000);
    std::vector<float> ours;
    resampler.convert(*samples, ours);
    resampler.flush(ours);
    ASSERT_NEAR(static_cast<double>(ours.size()), static_cast<double>(theirs->size()), 2);
    double error = 0, power = 0;  // the ends apart, where what is beyond them counts
    for (size_t i = 50; i + 50 < std::min(ours.size(), theirs->size()); ++i) {
      error += std::pow(ours[i] - (*theirs)[i], 2);
      power += std::pow((*theirs)[i], 2);
    }
    EXPECT_LT(error, 1e-5 * power);  // 50 dB
  }
}

TEST(WavInput, FloatsThatAreNoSoundAreTamed) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
  const auto samples = read_wav(make_wav({.format = 3, .bits = 32}, bytes_of<float>({nan, infinite, -infinite, 0.5f})));
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_THAT(*samples, ::testing::ElementsAre(0.0f, 1024.0f, -1024.0f, 0.5f));
}

TEST(WavInput, AFileThatWasCutGivesItsWholeFrames) {
  std::string content = make_wav({.channels = 2}, bytes_of<int16_t>({8192, 16384, -8192, -16384, 100, 200}));
  content.resize(content.size() - 3);
  const auto samples = read_wav(content);
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_THAT(*samples, ::testing::ElementsAre(0.375f, -0.375f));
}

TEST(WavInput, SkipsChunksOfOddSize) {
  const std::string whole = make_wav({}, bytes_of<int16_t>({16384}));
  const std::string note = str_cat("LIST", little(3, 4), "abc", std::string(1, '\0'));
  const auto samples = read_wav(str_cat(whole.substr(0, 36), note, whole.substr(36)));
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_THAT(*samples, ::testing::ElementsAre(0.5f));
}

TEST(WavInput, SaysWhatItCannotRead) {
  const std::string sample = bytes_of<int16_t>({1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(error_of("RIFF"), HasSubstr("no WAV"));
  EXPECT_THAT(error_of(make_wav({}, sample).substr(0, 36)), HasSubstr("holds no samples"));
  EXPECT_THAT(error_of(make_wav({.channels = 3, .bits = 32}, sample)), HasSubstr("3 channels; one or two"));
  EXPECT_THAT(error_of(make_wav({.channels = 0}, sample)), HasSubstr("0 channels"));
  EXPECT_THAT(error_of(make_wav({.rate = 999}, sample)), HasSubstr("999 Hz"));
  EXPECT_THAT(error_of(make_wav({.rate = 768001}, sample)), HasSubstr("768001 Hz"));
  EXPECT_THAT(error_of(make_wav({.format = 6, .bits = 8}, sample)), HasSubstr("format 6 with 8 bits"));
  EXPECT_THAT(error_of(make_wav({.bits = 20}, sample)), HasSubstr("20 bits"));
  EXPECT_THAT(error_of(make_wav({.format = 3, .bits = 16}, sample)), HasSubstr("format 3 with 16 bits"));
  std::string content = make_wav({}, sample);
  content[32] = 3;
  EXPECT_THAT(error_of(content), HasSubstr("frames of a size"));
  content = make_wav({}, sample);
  EXPECT_THAT(error_of(str_cat(content.substr(0, 12), content.substr(36))), HasSubstr("before their format"));
}

}  // namespace
}  // namespace transept
