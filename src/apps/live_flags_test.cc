#include "apps/live_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/transcribe_flags.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

StatusOr<std::optional<LiveSettings>> settings_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "model");
  ASSIGN_OR_RETURN(const Flags flags, Flags::parse(transcribe_flags(), arguments));
  return live_settings(flags);
}

std::string refusal(const std::vector<std::string>& arguments) {
  return error_message(settings_of(arguments).status());
}

TEST(LiveFlags, NoneWithoutLive) {
  const auto got = settings_of({"talk.wav", "--word-timestamps"});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_FALSE(got->has_value());
  EXPECT_EQ(refusal({"talk.wav", "--live-delay", "low"}), "--live-delay: needs --live");
  EXPECT_EQ(refusal({"talk.wav", "--live-format", "auto"}), "--live-format: needs --live");
}

TEST(LiveFlags, StandardInputIsTheOnlyInput) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--live"}, std::vector<std::string>{"--live", "-"}}) {
    const auto got = settings_of(arguments);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(got->has_value());
    EXPECT_FALSE((*got)->has_files);
    EXPECT_EQ((*got)->delay, LiveDelay::kMedium);
    EXPECT_EQ((*got)->input.sampling_rate(), std::nullopt);
  }
  EXPECT_THAT(refusal({"--live", "talk.wav"}), HasSubstr("--live reads standard input"));
  EXPECT_THAT(refusal({"--live", "-", "talk.wav"}), HasSubstr("--live reads standard input"));
}

TEST(LiveFlags, FilesAreWrittenIfAFlagOfTheirsIsGiven) {
  for (const std::vector<std::string>& flag : {std::vector<std::string>{"-f", "srt"}, {"--output-dir", "out"}}) {
    std::vector<std::string> arguments = flag;
    arguments.emplace_back("--live");
    const auto got = settings_of(arguments);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE((*got)->has_files);
  }
  EXPECT_THAT(refusal({"--live", "--output-dir", "-"}), HasSubstr("--output-dir -: not with --live"));
}

TEST(LiveFlags, WhatIsOfFilesIsRefused) {
  for (const std::string flag : {"--word-timestamps", "--resume", "--recursive", "--vad-filter"}) {
    EXPECT_THAT(refusal({"--live", flag}), HasSubstr(flag + ": not with --live"));
  }
  for (const std::string flag : {"--prefix", "--clip-timestamps", "--mode", "--num-workers", "--shard"}) {
    EXPECT_THAT(refusal({"--live", flag, "1"}), HasSubstr(flag + ": not with --live"));
  }
}

TEST(LiveFlags, FormatAndDelayAreChecked) {
  EXPECT_EQ(refusal({"--live", "--live-format", "s16le:99"}),
            "--live-format s16le:99: auto, or s16le:RATE with 8000 to 48000 hertz");
  EXPECT_THAT(refusal({"--live", "--live-delay", "none"}), HasSubstr("--live-delay"));
  const auto got = settings_of({"--live", "--live-format", "s16le:8000", "--live-delay", "xhigh"});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)->input.sampling_rate(), 8000);
  EXPECT_EQ((*got)->delay, LiveDelay::kXhigh);
}

TEST(LiveFlags, ASessionTakesTheRequestsOptions) {
  TranscribeOptions options;
  options.language = "de";
  options.initial_prompt = "prompt";
  options.hotwords = "words";
  const LiveOptions live = live_options({.delay = LiveDelay::kHigh}, options);
  EXPECT_EQ(live.language, "de");
  EXPECT_EQ(live.prompt, "prompt");
  EXPECT_EQ(live.hotwords, "words");
  EXPECT_EQ(live.delay, LiveDelay::kHigh);
  EXPECT_TRUE(live.turn_detection.has_value());
  EXPECT_TRUE(live.wants_hypotheses);
}

}  // namespace
}  // namespace transept
