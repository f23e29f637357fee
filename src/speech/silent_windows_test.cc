// Windows that are passed over because nobody speaks in them: the decision alone, then transcriptions around it.
#include "speech/silent_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "multimodal/multimodal_testing.h"
#include "speech/audio_windows.h"
#include "speech/speech_spans.h"
#include "speech/transcriber_testing.h"

namespace transept::testing {
namespace {

using ::testing::IsEmpty;

constexpr int64_t kSecond = 100;  // frames

std::vector<FrameVoice> frames(int64_t count, float level) {
  return std::vector<FrameVoice>(static_cast<size_t>(count), {.probability = 0, .level = level});
}

TEST(SilentWindowsTest, AWindowWithSpeechInItOrBesideItIsNotSilent) {
  std::vector<FrameVoice> voice = frames(90 * kSecond, -3);
  for (int64_t i = 40 * kSecond; i < 41 * kSecond; ++i) voice[static_cast<size_t>(i)].probability = 1;
  const SilentWindows windows(voice);
  EXPECT_EQ(windows.first_speech({0, 90 * kSecond}), 40 * kSecond - 20);
  EXPECT_EQ(windows.first_speech({40 * kSecond, 90 * kSecond}), 40 * kSecond);
  EXPECT_EQ(windows.first_speech({50 * kSecond, 90 * kSecond}), 90 * kSecond);
  EXPECT_TRUE(windows.is_silent({0, 30 * kSecond}));
  EXPECT_FALSE(windows.is_silent({30 * kSecond, 60 * kSecond}));
  EXPECT_TRUE(windows.is_silent({60 * kSecond, 90 * kSecond}));
  EXPECT_FALSE(windows.is_silent({0, 90 * kSecond}));
  EXPECT_TRUE(windows.is_silent({0, 40 * kSecond - 20}));
  EXPECT_FALSE(windows.is_silent({0, 40 * kSecond - 19}));
  EXPECT_FALSE(windows.is_silent({41 * kSecond + 19, 60 * kSecond}));
  EXPECT_TRUE(windows.is_silent({41 * kSecond + 20, 60 * kSecond}));
}

// What the detector cannot tell yet may be a word; where there is nothing at all, there is none.
TEST(SilentWindowsTest, ShortAudioIsSilentIfItHoldsNothing) {
  for (const int64_t length : {int64_t{1}, kTooShortToJudge - 1}) {
    EXPECT_TRUE(SilentWindows(frames(length, -10)).is_silent({0, length}));
    EXPECT_TRUE(SilentWindows(frames(length, -9.99f)).is_silent({0, length})) << "what rounding makes of the floor";
    EXPECT_FALSE(SilentWindows(frames(length, -6)).is_silent({0, length}));
  }
  EXPECT_TRUE(SilentWindows(frames(kTooShortToJudge, -6)).is_silent({0, kTooShortToJudge}));
  EXPECT_TRUE(SilentWindows(frames(0, 0)).is_silent({0, 0}));
}

// ---- Features of one window

// Returns whether it is silent, which the windows of a file of these samples say, too.
bool told_windows(const AudioProcessor& processor, const std::vector<int16_t>& samples) {
  const auto windows = AudioWindows::open(AudioSource(raw_audio(samples)), processor, {.find_voice = true});
  if (!windows.ok()) ADD_FAILURE() << windows.status();
  const bool expected = SilentWindows((*windows)->voice()).is_silent({0, (*windows)->num_frames()});
  std::vector<float> heard;
  heard.reserve(samples.size());
  for (const int16_t sample : samples) heard.push_back(static_cast<float>(sample) / 32768.0f);
  EXPECT_EQ(is_silent(*processor.features(heard), processor), expected);
  return expected;
}

TEST(SilentFeatures, AreToldAsByTheWindowsOfTheFile) {
  const House house;
  const std::unique_ptr<AudioProcessor> waves = make_waveform_processor(ModelConfig()).value();
  const AudioProcessor* const processors[] = {house.speech().audio, waves.get()};
  for (const AudioProcessor* processor : processors) {
    for (const double seconds : {0.1, 0.7, 2.0, 11.0, 29.99}) {
      const auto count = static_cast<size_t>(seconds * 16000);
      EXPECT_TRUE(told_windows(*processor, std::vector<int16_t>(count))) << seconds;
      for (const uint32_t seed : {3u, 7u}) {
        SCOPED_TRACE(str_cat(seconds, " s, seed ", seed));
        std::vector<int16_t> samples = synthetic_audio(seed, count);
        EXPECT_FALSE(told_windows(*processor, samples));
        for (int16_t& sample : samples) sample = static_cast<int16_t>(sample % 3);  // as a quiet room
        told_windows(*processor, samples);
      }
    }
  }
}

TEST(SilentFeatures, ASingleWordInAWindowIsSpeech) {
  const House house;
  std::vector<int16_t> samples(30 * 16000);
  const std::vector<int16_t> word = synthetic_audio(3, 8000);
  std::copy(word.begin(), word.end(), samples.begin() + 20 * 16000);
  EXPECT_FALSE(told_windows(*house.speech().audio, samples));
}

TEST(SilentFeatures, OfLengthsThatAreNotTheirsAreReadToTheirEnd) {
  const House house;
  EncoderFeatures features = *house.speech().audio->features(std::vector<float>(16000));
  features.audio_seconds = 1e9;
  EXPECT_TRUE(is_silent(features, *house.speech().audio));
}

// Frames that the detector was not made for tell nothing.
TEST(SilentFeatures, OfOtherFramesAreNeverSilent) {
  const auto log_mel = [](std::string_view more) {
    const std::string front_end = str_cat(R"({"feature_size": 5, "n_samples": 2560)", more, "}");
    auto registry = registry_of(kTinyWhisper, front_end);
    EXPECT_TRUE(registry.ok()) << registry.status();
    return std::move(registry).value();
  };
  const auto is_silent_in = [](const MultiModalRegistry& registry) {
    const AudioProcessor& processor = *registry.audio();
    return is_silent(*processor.features(std::vector<float>(1600)), processor);
  };
  EXPECT_TRUE(is_silent_in(*log_mel("")));
  EXPECT_FALSE(is_silent_in(*log_mel(R"(, "sampling_rate": 8000)"))) << "frames of 0.02 s";
  // 442 samples are 0.01 s, and a transform of 1105 of them there is none.
  const auto waves = registry_of(kMoonshine, R"({"sampling_rate": 44200})");
  ASSERT_TRUE(waves.ok()) << waves.status();
  EXPECT_FALSE(is_silent_in(**waves));
}

// ---- Transcriptions

AudioSource silence(double seconds) {
  return AudioSource(raw_audio(std::vector<int16_t>(static_cast<size_t>(seconds * 16000))));
}

TranscribeOptions asking(TranscribeMode mode, bool words) {
  TranscribeOptions options;
  options.mode = mode;
  options.word_timestamps = words;
  options.beam_size = 1;
  options.skip_silence = true;
  return options;
}

TEST(SkippedSilence, IsNotEncodedAndGivesNoText) {
  const House house;
  for (const double seconds : {0.1, 0.7, 2.0, 45.0}) {
    for (const TranscribeMode mode : {TranscribeMode::kSequential, TranscribeMode::kBatched}) {
      for (const bool words : {false, true}) {
        SCOPED_TRACE(str_cat(seconds, " s, ", mode == TranscribeMode::kBatched ? "batched" : "sequential"));
        double done = -1;
        TranscribeObserver observer;
        observer.on_segment = [](const Segment&) { ADD_FAILURE() << "a segment"; };
        observer.on_language = [](const std::vector<LanguageGuess>&) { ADD_FAILURE() << "a language"; };
        observer.on_progress = [&](double now, double /*all*/) { done = now; };
        const auto result = house.transcribe(silence(seconds), asking(mode, words), observer);
        ASSERT_TRUE(result.ok()) << result.status();
        EXPECT_EQ(result->transcript.text, "");
        EXPECT_THAT(result->transcript.segments, IsEmpty());
        EXPECT_EQ(result->transcript.language, "");
        EXPECT_EQ(result->transcript.duration, seconds);
        EXPECT_EQ(result->counts.num_windows, 0);
        EXPECT_NEAR(done, seconds, 0.01);
      }
    }
  }
  EXPECT_EQ(house.num_encoder_runs(), 0);
  TranscribeOptions options = asking(TranscribeMode::kSequential, false);
  options.language = "de";
  EXPECT_EQ(house.transcribe(silence(2), options)->transcript.language, "de");
  options.skip_silence = false;  // the reference decodes it
  EXPECT_GT(house.transcribe(silence(2), options)->counts.num_windows, 0);
}

// Windows with speech are decoded as ever: their text is the one that they had.
TEST(SkippedSilence, BehindSpeechChangesNothingBeforeIt) {
  const House house;
  constexpr size_t kSpeech = 20 * 16000, kAll = 200 * 16000;
  const AudioSource audio(raw_audio(synthetic_audio(5, kAll, {{kSpeech, kAll}})));
  TranscribeOptions options = greedy_options();
  options.without_timestamps = true;  // windows of 30 s, one after the other
  const auto all = house.transcribe(audio, options);
  options.skip_silence = true;
  const auto skipped = house.transcribe(audio, options);
  ASSERT_TRUE(all.ok() && skipped.ok());
  EXPECT_EQ(all->counts.num_windows, 7);
  EXPECT_EQ(skipped->counts.num_windows, 1);
  ASSERT_FALSE(skipped->transcript.segments.empty());
  for (size_t i = 0; i < skipped->transcript.segments.size(); ++i) {
    EXPECT_EQ(skipped->transcript.segments[i].text, all->transcript.segments[i].text);
  }
}

// What is spoken tells the language, not the silence before it.
TEST(SkippedSilence, BeforeSpeechTellsNoLanguage) {
  House house;
  constexpr size_t kSilence = 60 * 16000, kAll = 100 * 16000;
  const std::vector<int16_t> samples = synthetic_audio(5, kAll, {{0, kSilence}});
  TranscribeOptions options = greedy_options();
  options.language = "";
  options.without_timestamps = true;
  options.skip_silence = true;
  std::vector<LanguageGuess> guesses;
  TranscribeObserver observer;
  observer.on_language = [&](const std::vector<LanguageGuess>& found) { guesses = found; };
  const auto result = house.transcribe(AudioSource(raw_audio(samples)), options, observer);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->counts.num_windows, 4) << "from 30 s, 60 s and 90 s, and one for the language";
  const std::vector<LanguageGuess> with_silence_before = guesses;
  const auto windows = AudioWindows::open(AudioSource(raw_audio(samples)), *house.speech().audio, {.find_voice = true});
  ASSERT_TRUE(windows.ok()) << windows.status();
  const double begin = find_speech((*windows)->voice()).front().start;
  EXPECT_GT(begin, 59);
  const std::vector<int16_t> spoken(samples.begin() + std::lround(begin * 16000), samples.end());
  ASSERT_TRUE(house.transcribe(AudioSource(raw_audio(spoken)), options, observer).ok());
  EXPECT_EQ(with_silence_before.front().code, guesses.front().code);
  EXPECT_NEAR(with_silence_before.front().probability, guesses.front().probability, 1e-3);
}

}  // namespace
}  // namespace transept::testing
