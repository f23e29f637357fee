// What TranscribeOptions::reference chooses: faster-whisper's ways where they are not openai-whisper's. Texts are
// compared with faster-whisper's own in tests/python/test_same_texts.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "speech/transcriber_testing.h"

namespace transept::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr SpeechReference kOpenai = SpeechReference::kOpenaiWhisper, kFaster = SpeechReference::kFasterWhisper;

// faster-whisper asks of 30 s from the first clip on, and of less silence after the audio.
TEST(SpeechReferenceTest, SaysWhatTellsTheLanguage) {
  const auto guess = [](SpeechReference reference, double seconds, std::string clips, double sure = 1) {
    TranscribeOptions options = greedy_options();
    options.language = "";
    options.reference = reference;
    options.sure_language = sure;
    options.clip_timestamps = std::move(clips);
    double probability = -1;
    TranscribeObserver observer;
    observer.on_language = [&](const std::vector<LanguageGuess>& guesses) { probability = guesses[0].probability; };
    const auto result = House().transcribe(synthetic_source(5, seconds), options, observer);
    EXPECT_TRUE(result.ok()) << result.status();
    return probability;
  };
  EXPECT_EQ(guess(kFaster, 40, "0"), guess(kOpenai, 40, "0"));
  EXPECT_NE(guess(kFaster, 20, "0"), guess(kOpenai, 20, "0"));
  EXPECT_NE(guess(kFaster, 20, "0"), guess(kFaster, 20, "0", 0)) << "one frame of silence more than the window";
  EXPECT_EQ(guess(kOpenai, 40, "4,9"), guess(kOpenai, 40, "0,9"));
  EXPECT_NE(guess(kFaster, 40, "4,9"), guess(kFaster, 40, "0,9"));
  EXPECT_EQ(guess(kFaster, 40, "40,50"), guess(kFaster, 40, "0")) << "a clip behind the audio";
  EXPECT_EQ(guess(kFaster, 40, "20,21"), guess(kFaster, 40, "20,39")) << "of all that follows, not of the clip alone";
}

// Of silence itself, so that a caller always has a language.
TEST(SpeechReferenceTest, SilenceHasALanguageInFasterWhisper) {
  for (const double seconds : {2.0, 40.0}) {
    for (const bool is_filter : {false, true}) {
      TranscribeOptions options = greedy_options();
      options.language = "";
      options.skip_silence = !is_filter;
      options.vad_filter = is_filter;
      std::vector<LanguageGuess> told;
      TranscribeObserver observer;
      observer.on_language = [&](const std::vector<LanguageGuess>& guesses) { told = guesses; };
      const AudioSource silence(raw_audio(std::vector<int16_t>(static_cast<size_t>(seconds * 16000))));
      EXPECT_EQ(House().transcribe(silence, options, observer)->transcript.language, "");
      EXPECT_THAT(told, IsEmpty());
      options.reference = kFaster;
      const Transcript transcript = House().transcribe(silence, options, observer)->transcript;
      ASSERT_THAT(told, Not(IsEmpty()));
      EXPECT_EQ(transcript.language, told.front().code);
      EXPECT_EQ(transcript.text, "");
    }
  }
}

// faster-whisper gives the prefix to a window at 0 s alone.
TEST(SpeechReferenceTest, APrefixStandsAtTheBeginningOfTheAudio) {
  const AudioSource audio = synthetic_source(3, 20);
  const auto text = [&](SpeechReference reference, std::string clips, TranscribeMode mode) {
    TranscribeOptions options = greedy_options();
    options.mode = mode;
    options.reference = reference;
    options.prefix = "the harbour";
    options.clip_timestamps = std::move(clips);
    return House().transcribe(audio, options)->transcript.text;
  };
  const auto begins = StartsWith(" the harbour");
  EXPECT_THAT(text(kFaster, "0", TranscribeMode::kSequential), begins);
  EXPECT_THAT(text(kFaster, "4", TranscribeMode::kSequential), Not(begins));
  EXPECT_THAT(text(kFaster, "4,6,8", TranscribeMode::kSequential), Not(begins));
  EXPECT_THAT(text(kOpenai, "4", TranscribeMode::kSequential), begins);
  EXPECT_THAT(text(kFaster, "4", TranscribeMode::kBatched), begins) << "whose windows begin anywhere";
}

TEST(SpeechReferenceTest, LongHotwordsAndPrefixesAreCut) {
  const AudioSource audio = synthetic_source(3, 5);
  for (std::string TranscribeOptions::*const member : {&TranscribeOptions::hotwords, &TranscribeOptions::prefix}) {
    TranscribeOptions options = greedy_options();
    options.*member = std::string(500, 'x');
    EXPECT_FALSE(House().transcribe(audio, options).ok());
    options.reference = kFaster;
    const auto cut = House().transcribe(audio, options);
    ASSERT_TRUE(cut.ok()) << cut.status();
    (options.*member).resize(490);
    expect_same(cut->transcript, House().transcribe(audio, options)->transcript);
  }
}

}  // namespace
}  // namespace transept::testing
