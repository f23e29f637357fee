#include "apps/live_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string le(uint64_t value, int num_bytes) {
  std::string bytes;
  for (int i = 0; i < num_bytes; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

std::string chunk(std::string_view name, std::string_view body) {
  return std::string(name) + le(body.size(), 4) + std::string(body) + std::string(body.size() % 2, '\0');
}

struct Wav {
  uint64_t tag = 1, channels = 1, rate = 16000, bits = 16;
  uint64_t data_bytes = 0xFFFFFFFF;
  std::string before = {};  // chunks before the sound, behind the format

  std::string head() const {
    return "RIFF" + le(0xFFFFFFFF, 4) + "WAVE" +
           chunk("fmt ", le(tag, 2) + le(channels, 2) + le(rate, 4) + le(rate * channels * bits / 8, 4) +
                             le(channels * bits / 8, 2) + le(bits, 2)) +
           before + "data" + le(data_bytes, 4);
  }
};

// In pieces of `step` bytes.
StatusOr<std::vector<int16_t>> samples_of(std::string_view bytes, size_t step, std::optional<int32_t>* rate = nullptr,
                                          std::string_view format = "auto") {
  auto input = LiveInput::create(format);
  if (!input.ok()) return input.status();
  std::vector<int16_t> samples;
  for (size_t at = 0; at < bytes.size(); at += step) {
    RETURN_IF_ERROR(input->feed(bytes.substr(at, step), samples));
  }
  if (rate != nullptr) *rate = input->sampling_rate();
  return samples;
}

std::string error_of(std::string_view bytes, std::string_view format = "auto") {
  return error_message(samples_of(bytes, 7, nullptr, format).status());
}

const std::string kSound = le(1, 2) + le(0x8000, 2) + le(0x7FFF, 2) + le(0xFFFF, 2) + std::string(16, '\1');

TEST(LiveInput, RawSamplesAreLittleEndianInAnyPieces) {
  for (const size_t step : {1, 2, 3, 5, 100}) {
    std::optional<int32_t> rate;
    auto samples = samples_of(kSound, step, &rate, "s16le:8000");
    ASSERT_TRUE(samples.ok()) << samples.status();
    ASSERT_THAT(*samples, SizeIs(12));
    EXPECT_THAT(std::vector(samples->begin(), samples->begin() + 5), ElementsAre(1, -32768, 32767, -1, 0x0101));
    EXPECT_EQ(rate, 8000);
    samples = samples_of(kSound + "x", step, &rate);  // half a sample waits for its other half
    ASSERT_TRUE(samples.ok()) << samples.status();
    EXPECT_THAT(*samples, SizeIs(12));
    EXPECT_EQ(rate, 16000);
  }
}

TEST(LiveInput, FewBytesTellNothing) {
  std::optional<int32_t> rate;
  const auto samples = samples_of("RIFF1234WAV", 4, &rate);
  ASSERT_TRUE(samples.ok());
  EXPECT_THAT(*samples, SizeIs(0));
  EXPECT_EQ(rate, std::nullopt);
}

TEST(LiveInput, AWavFileIsReadBehindItsHead) {
  const Wav lists{.rate = 44100, .before = chunk("LIST", "odd") + chunk("fact", "1234")};
  for (const Wav& wav : {Wav(), lists, Wav{.rate = 48000, .data_bytes = 0}, Wav{.data_bytes = 0x7FFFFFFF}}) {
    for (const size_t step : {1, 3, 11, 1000}) {
      std::optional<int32_t> rate;
      const auto samples = samples_of(wav.head() + kSound, step, &rate);
      ASSERT_TRUE(samples.ok()) << samples.status();
      ASSERT_THAT(*samples, SizeIs(12)) << step;
      EXPECT_EQ(samples->front(), 1);
      EXPECT_EQ(rate, static_cast<int32_t>(wav.rate));
    }
  }
}

TEST(LiveInput, WhatIsBehindASoundOfKnownLengthIsDropped) {
  for (const size_t step : {1, 4, 1000}) {
    for (const uint64_t bytes : {4, 5}) {
      const auto samples = samples_of(Wav{.data_bytes = bytes}.head() + kSound, step);
      ASSERT_TRUE(samples.ok());
      EXPECT_THAT(*samples, ElementsAre(1, -32768)) << step;
    }
  }
}

TEST(LiveInput, AnExtensibleFormatOfPcmIsPcm) {
  const std::string extra = le(22, 2) + le(16, 2) + le(4, 4) + le(1, 2) + std::string(14, '\0');
  const std::string format = le(0xFFFE, 2) + le(1, 2) + le(16000, 4) + le(32000, 4) + le(2, 2) + le(16, 2) + extra;
  const auto bytes = "RIFF" + le(0, 4) + "WAVE" + chunk("fmt ", format) + "data" + le(0, 4) + kSound;
  const auto samples = samples_of(bytes, 9);
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_THAT(*samples, SizeIs(12));
}

TEST(LiveInput, OtherWavFilesAreRefusedWithWhatToDo) {
  EXPECT_THAT(error_of(Wav{.channels = 2}.head()), HasSubstr("2 channels with 16 bits; live audio is mono"));
  EXPECT_THAT(error_of(Wav{.bits = 24}.head()), HasSubstr("1 channel with 24 bits"));
  EXPECT_THAT(error_of(Wav{.tag = 3, .bits = 32}.head()), HasSubstr("not PCM"));
  EXPECT_THAT(error_of(Wav{.tag = 0xFFFE}.head()), HasSubstr("not PCM"));
  EXPECT_THAT(error_of(Wav{.rate = 7999}.head()), HasSubstr("7999 hertz; live audio has 8000 to 48000"));
  EXPECT_THAT(error_of(Wav{.rate = 48001}.head()), HasSubstr("48001"));
  EXPECT_THAT(error_of("RIFF1234WAVEfmt " + le(15, 4) + std::string(16, '\0')), HasSubstr("a format of 15 bytes"));
  EXPECT_THAT(error_of("RIFF1234WAVEdata" + le(15, 4)), HasSubstr("sound is before its format"));
  EXPECT_THAT(error_of("RIFF1234WAVELIST" + le(0xFFFFFFFF, 4)), HasSubstr("1048576 bytes before its sound"));
  std::string many = "RIFF1234WAVE";
  while (many.size() < LiveInput::kMaxHeadBytes) many += chunk("LIST", std::string(30000, 'x'));
  EXPECT_THAT(error_of(many), HasSubstr("before its sound"));
  EXPECT_THAT(error_of(Wav{.channels = 2}.head()), HasSubstr("ffmpeg -i INPUT"));
}

TEST(LiveInput, ContainersAreNamed) {
  EXPECT_THAT(error_of("OggS............"), HasSubstr("standard input is Ogg"));
  EXPECT_THAT(error_of("fLaC............"), HasSubstr("FLAC"));
  EXPECT_THAT(error_of("1234ftypisom...."), HasSubstr("MP4"));
  EXPECT_THAT(error_of("\x1A\x45\xDF\xA3............"), HasSubstr("WebM"));
}

TEST(LiveInput, FormatsAreChecked) {
  for (const std::string_view format : {"", "s16le", "s16le:", "s16le:7999", "s16le:48001", "s16le:16000x", "s16le:-1",
                                        "s16le:99999999999", "f32le:16000", "wav"}) {
    EXPECT_THAT(error_of("", format), HasSubstr("auto, or s16le:RATE with 8000 to 48000 hertz")) << format;
  }
  EXPECT_TRUE(samples_of("RIFF1234WAVEfmt ", 3, nullptr, "s16le:48000").ok());  // what is named is not looked at
}

}  // namespace
}  // namespace transept
