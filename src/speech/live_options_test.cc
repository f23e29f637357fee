#include "speech/live_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "speech/decoding_rules.h"
#include "speech/transcriber_testing.h"

namespace transept::testing {
namespace {

TEST(LiveDelay, NamesAreThoseOfTheApi) {
  for (const std::string_view name : {"minimal", "low", "medium", "high", "xhigh"}) {
    const auto delay = parse_live_delay(name);
    ASSERT_TRUE(delay.has_value());
    EXPECT_EQ(live_delay_name(*delay), name);
  }
  EXPECT_FALSE(parse_live_delay("").has_value());
  EXPECT_FALSE(parse_live_delay("Low").has_value());
}

// A longer delay needs as many hypotheses at least, and words as sure at least.
TEST(LiveDelay, ALongerOneIsNeverLessStrict) {
  const std::vector<LiveDelay> delays = {LiveDelay::kMinimal, LiveDelay::kLow, LiveDelay::kMedium, LiveDelay::kHigh};
  const LivePolicy* shorter = nullptr;
  std::vector<LivePolicy> policies;
  policies.reserve(delays.size());
  for (const LiveDelay delay : delays) policies.push_back(live_policy(delay));
  for (const LivePolicy& policy : policies) {
    EXPECT_TRUE(policy.has_hypotheses);
    EXPECT_EQ(policy.least_mean_logprob, DecodingThresholds().logprob);
    EXPECT_EQ(policy.agreement.front(), INFINITY);  // one hypothesis is none that could agree
    EXPECT_EQ(policy.agreement.back(), -INFINITY);  // nothing waits for ever
    EXPECT_TRUE(std::ranges::is_sorted(policy.agreement, std::greater()));
    EXPECT_LE(policy.agreement.size(), 8u);
    if (shorter != nullptr) {
      EXPECT_GE(policy.hop_seconds, shorter->hop_seconds);
      for (size_t i = 0; i < shorter->agreement.size(); ++i) EXPECT_GE(policy.agreement[i], shorter->agreement[i]);
    }
    shorter = &policy;
  }
  EXPECT_EQ(policies[0].hop_seconds, 0.3);
  EXPECT_EQ(policies[1].hop_seconds, 0.5);
  EXPECT_FALSE(live_policy(LiveDelay::kXhigh).has_hypotheses);
}

// Who waits for a transcript goes first, then who looks at hypotheses, then files.
TEST(LiveOptions, FinalsComeBeforeHypothesesAndTheseBeforeFiles) {
  EXPECT_LT(kLiveFinalPriority, kLiveHypothesisPriority);  // lower is earlier
  EXPECT_LT(kLiveHypothesisPriority, RequestSpec().priority);
  EXPECT_EQ(TranscribeLimits().priority, RequestSpec().priority);
}

TEST(LiveOptions, WhatIsOutOfRangeIsNamed) {
  House house;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const struct {
    std::string_view field;
    void (*set)(LiveOptions&);
  } cases[] = {
      {"sampling_rate", [](LiveOptions& o) { o.sampling_rate = 7999; }},
      {"sampling_rate", [](LiveOptions& o) { o.sampling_rate = 48001; }},
      {"language", [](LiveOptions& o) { o.language = "xx"; }},
      {"languages",
       [](LiveOptions& o) {
         o.languages = {"en", "xx"};
       }},
      {"max_item_seconds", [](LiveOptions& o) { o.max_item_seconds = 0; }},
      {"max_item_seconds", [](LiveOptions& o) { o.max_item_seconds = kNan; }},
      {"max_item_seconds", [](LiveOptions& o) { o.max_item_seconds = 14401; }},
      {"turn_detection.threshold", [](LiveOptions& o) { o.turn_detection->threshold = -1; }},
      {"turn_detection.threshold", [](LiveOptions& o) { o.turn_detection->threshold = kNan; }},
      {"turn_detection.prefix_padding_ms", [](LiveOptions& o) { o.turn_detection->prefix_padding_ms = -1; }},
      {"turn_detection.prefix_padding_ms", [](LiveOptions& o) { o.turn_detection->prefix_padding_ms = 10001; }},
      {"turn_detection.silence_duration_ms", [](LiveOptions& o) { o.turn_detection->silence_duration_ms = 19; }},
      {"turn_detection.silence_duration_ms", [](LiveOptions& o) { o.turn_detection->silence_duration_ms = 10001; }},
  };
  EXPECT_TRUE(check_live_options({}, house.speech()).ok());
  for (const auto& [field, set] : cases) {
    LiveOptions options;
    set(options);
    EXPECT_EQ(error_param(check_live_options(options, house.speech())), field);
  }
  LiveOptions german;
  german.language = "German";
  german.languages = {"de", "es"};
  EXPECT_TRUE(check_live_options(german, house.speech()).ok());
}

TEST(LiveOptions, FillThoseOfATranscription) {
  House house;
  TranscribeOptions base;
  base.skip_silence = true;
  base.beam_size = 3;
  LiveOptions options;
  options.language = "de";
  options.languages = {"en"};
  options.prompt = " A talk. ";
  options.hotwords = "Transept ";
  options.cache_salt = "salt";
  TranscribeOptions made = live_transcribe_options(base, options, house.speech());
  EXPECT_EQ(made.language, "de");
  EXPECT_TRUE(made.languages.empty());
  EXPECT_EQ(made.initial_prompt, "A talk.");
  EXPECT_EQ(made.hotwords, "Transept");
  EXPECT_EQ(made.cache_salt, "salt");
  EXPECT_TRUE(made.skip_silence);
  EXPECT_EQ(made.beam_size, 3);
  options.language.clear();
  made = live_transcribe_options(base, options, house.speech());
  EXPECT_EQ(made.languages, (std::vector<std::string>{"en"}));
}

// Detection among some languages: the others have no probability.
TEST(LiveOptions, LanguagesRestrictDetection) {
  House house;
  const AudioSource audio = synthetic_source(3, 3);
  TranscribeOptions options = greedy_options();
  options.language = "";
  std::vector<LanguageGuess> guesses;
  TranscribeObserver observer;
  observer.on_language = [&](const std::vector<LanguageGuess>& told) { guesses = told; };
  ASSERT_TRUE(house.transcribe(audio, options, observer).ok());
  ASSERT_EQ(guesses.size(), 4u);
  const std::vector<LanguageGuess> all = guesses;
  options.languages = {all[2].code, all[1].code};
  const auto result = house.transcribe(audio, options, observer);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->transcript.language, all[1].code);
  ASSERT_EQ(guesses.size(), 2u);
  EXPECT_NEAR(guesses[0].probability + guesses[1].probability, 1, 1e-4);
  // One is not detected.
  guesses.clear();
  options.languages = {all[3].code};
  EXPECT_EQ(house.transcribe(audio, options, observer)->transcript.language, all[3].code);
  EXPECT_TRUE(guesses.empty());
  options.languages = {"xx"};
  EXPECT_EQ(error_param(house.transcribe(audio, options).status()), "languages");
}

}  // namespace
}  // namespace transept::testing
