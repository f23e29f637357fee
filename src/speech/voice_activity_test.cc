#include "speech/voice_activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/allocation_count_testing.h"
#include "speech/speech_spans.h"

namespace transept {
namespace {

constexpr int kBins = 80;
constexpr float kSilence = -10;

// Frames of log10 power, drawn part by part.
class Audio {
 public:
  // White noise: in each bin the power of some independent draws.
  Audio& noise(int num_frames, float level) {
    for (int i = 0; i < num_frames; ++i) {
      for (int k = 0; k < kBins; ++k) frames_.push_back(level + noise_bin(k));
    }
    return *this;
  }
  Audio& silence(int num_frames) {
    frames_.resize(frames_.size() + static_cast<size_t>(num_frames) * kBins, kSilence);
    return *this;
  }
  // Syllables, five a second: every other 0.1 s a third of the bins rises `above` the noise, with a short fall between.
  Audio& speech(int num_frames, float level, float above) {
    for (int i = 0; i < num_frames; ++i) {
      const int syllable = i / 20;
      const float envelope = above * static_cast<float>(std::sin(3.14159265 * (i % 20 + 0.5) / 20));
      for (int k = 0; k < kBins; ++k) {
        const bool voiced = (k + 7 * syllable) % 3 == 0;
        frames_.push_back(std::max(kSilence, level + noise_bin(k) + (voiced ? envelope : 0.0f)));
      }
    }
    return *this;
  }

  const std::vector<float>& frames() const { return frames_; }
  std::vector<SpeechSpan> spans() const { return find_speech(detect_voice(frames_, kBins)); }

 private:
  float noise_bin(int k) {
    const int draws = 1 + k / 20;
    double power = 0;
    for (int i = 0; i < draws; ++i) power += exponential_(random_);
    return static_cast<float>(std::log10(power / draws + 1e-4));
  }

  std::mt19937 random_{7};
  std::exponential_distribution<double> exponential_{1};
  std::vector<float> frames_;
};

TEST(VoiceActivityTest, SilenceAndStationaryNoiseAreNoSpeech) {
  EXPECT_TRUE(Audio().silence(1500).spans().empty());
  EXPECT_TRUE(Audio().silence(3).spans().empty());
  EXPECT_TRUE(Audio().spans().empty());
  for (const float level : {-8.0f, -4.0f, 0.0f, 3.0f}) {
    EXPECT_TRUE(Audio().noise(2000, level).spans().empty()) << level;
    EXPECT_TRUE(Audio().noise(60, level).spans().empty()) << level;
    EXPECT_TRUE(Audio().silence(500).noise(600, level).silence(500).spans().empty()) << level;
  }
}

TEST(VoiceActivityTest, SpeechIsFoundWhereItIs) {
  for (const float level : {-9.0f, -5.0f, -1.0f}) {
    SCOPED_TRACE(level);
    const std::vector<SpeechSpan> spans = Audio()
                                              .noise(700, level)
                                              .speech(300, level, 2.5f)
                                              .noise(800, level)
                                              .speech(200, level, 2.5f)
                                              .noise(300, level)
                                              .spans();
    ASSERT_EQ(spans.size(), 2u);
    EXPECT_NEAR(spans[0].start, 6.8, 0.15);
    EXPECT_NEAR(spans[0].end, 10.2, 0.25);
    EXPECT_NEAR(spans[1].start, 17.8, 0.15);
    EXPECT_NEAR(spans[1].end, 20.2, 0.25);
  }
}

TEST(VoiceActivityTest, SpeechFromTheFirstFrameToTheLastIsFound) {
  for (const int num_frames : {100, 300, 3000}) {
    const std::vector<SpeechSpan> spans = Audio().speech(num_frames, -4, 3).spans();
    ASSERT_EQ(spans.size(), 1u) << num_frames;
    EXPECT_EQ(spans[0], (SpeechSpan{0, num_frames / 100.0}));
  }
}

TEST(VoiceActivityTest, ResultsDoNotDependOnLoudness) {
  const std::vector<SpeechSpan> loud = Audio().noise(500, -2).speech(300, -2, 3).noise(500, -2).spans();
  EXPECT_EQ(Audio().noise(500, -6).speech(300, -6, 3).noise(500, -6).spans(), loud);
}

TEST(VoiceActivityTest, EveryFrameHasAResultWhateverItHolds) {
  std::mt19937 random(3);
  const float odd[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity(),
                       1e30f,
                       -1e30f,
                       10.0f,
                       0.0f};
  for (const int num_frames : {0, 1, 4, 5, 6, 149, 150, 151, 400, 1111}) {
    std::vector<float> frames(static_cast<size_t>(num_frames) * kBins);
    for (float& value : frames) value = odd[random() % std::size(odd)];
    const std::vector<FrameVoice> voice = detect_voice(frames, kBins);
    ASSERT_EQ(voice.size(), static_cast<size_t>(num_frames));
    for (const FrameVoice& frame : voice) {
      EXPECT_TRUE(frame.probability >= 0 && frame.probability <= 1) << frame.probability;
      EXPECT_TRUE(std::isfinite(frame.level));
    }
  }
}

// The header's sources as they are written there, in double precision and over the whole audio at once.
class ObviousDetector {
 public:
  explicit ObviousDetector(const std::vector<float>& frames) {
    for (size_t i = 0; i < frames.size(); i += kBins) {
      powers_.emplace_back();
      for (size_t k = 0; k < kBins; ++k) powers_.back().push_back(std::pow(10.0, static_cast<double>(frames[i + k])));
    }
  }

  // P(speech | the frames so far): likelihood ratios of Sohn et al., eq. (3), in a Markov chain of two states.
  std::vector<double> probabilities() const {
    std::vector<double> out, speech(kBins, 0), noise;
    double odds = 0.01 / 0.1;  // begins, ends
    for (int frame = 0; frame < std::ssize(powers_); ++frame) {
      if (frame % 5 == 0) noise = noise_at(frame);
      const std::vector<double> power = mean(frame, 2);
      double log_ratio = 0;
      for (size_t k = 0; k < kBins; ++k) {
        const double posterior = std::min(power[k] / noise[k], 1e3);
        // Decision-directed (Ephraim and Malah, 1984, eq. 51), at least -15 dB.
        const double prior = std::max(0.9 * speech[k] + 0.1 * std::max(posterior - 1, 0.0), std::pow(10.0, -1.5));
        const double gain = prior / (1 + prior);
        log_ratio += std::min(posterior * gain - std::log(1 + prior), 20.0) / kBins;
        speech[k] = gain * gain * posterior;
      }
      odds = (0.01 + 0.9 * odds) / (0.99 + 0.1 * odds) * std::exp(log_ratio);
      out.push_back(odds / (1 + odds));
    }
    return out;
  }

 private:
  std::vector<double> mean(int frame, int reach) const {
    std::vector<double> sum(kBins, 0);
    const int begin = std::max(frame - reach, 0), end = std::min(frame + reach + 1, static_cast<int>(powers_.size()));
    for (int i = begin; i < end; ++i) {
      for (size_t k = 0; k < kBins; ++k) sum[k] += powers_[static_cast<size_t>(i)][k] / (end - begin);
    }
    return sum;
  }
  std::vector<double> least(int begin, int end) const {
    std::vector<double> out(kBins, 1e30);
    for (int i = begin; i < end; ++i) {
      const std::vector<double> smoothed = mean(i, 5);
      for (size_t k = 0; k < kBins; ++k) out[k] = std::min(out[k], smoothed[k]);
    }
    return out;
  }
  // The greater of two sides' minima over 1.5 s; a side of less than 0.75 s does not count while the other is longer.
  std::vector<double> noise_at(int frame) const {
    const int count = static_cast<int>(powers_.size());
    const std::vector<double> past = least(std::max(frame - 149, 0), frame + 1);
    const std::vector<double> future = least(frame, std::min(frame + 150, count));
    const bool has_past = frame >= 75, has_future = count - 1 - frame >= 75;
    std::vector<double> noise;
    for (size_t k = 0; k < kBins; ++k) {
      const double chosen = has_past && has_future ? std::max(past[k], future[k])
                            : has_past             ? past[k]
                            : has_future           ? future[k]
                                                   : std::min(past[k], future[k]);
      noise.push_back(std::max(1.8 * chosen, 1e-9));
    }
    return noise;
  }

  std::vector<std::vector<double>> powers_;
};

TEST(VoiceActivityTest, ProbabilitiesAreThoseOfTheObviousDetector) {
  const Audio parts[] = {Audio().noise(200, -3).speech(120, -3, 1.5f).noise(250, -3).speech(30, -3, 0.8f).noise(90, -3),
                         Audio().speech(140, -5, 2), Audio().silence(100).noise(260, -4).silence(80),
                         Audio().noise(60, -2)};
  for (const Audio& audio : parts) {
    const std::vector<FrameVoice> voice = detect_voice(audio.frames(), kBins);
    const std::vector<double> wanted = ObviousDetector(audio.frames()).probabilities();
    ASSERT_EQ(voice.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(voice[i].probability, wanted[i], 1e-4) << "frame " << i;
  }
}

// ---- Causal

std::vector<SpeechSpan> causal_spans(const Audio& audio) {
  return find_speech(detect_voice(audio.frames(), kBins, VoiceMode::kCausal));
}

TEST(CausalVoiceTest, DecisionsAreEightyMillisecondsLate) {
  const Audio audio = Audio().noise(100, -3).speech(200, -3, 2);
  VoiceActivityDetector detector(kBins, VoiceMode::kCausal);
  std::vector<FrameVoice> voice;
  for (size_t i = 0; i < 300; ++i) {
    detector.push(std::span(audio.frames()).subspan(i * kBins, kBins), voice);
    EXPECT_EQ(voice.size(), i < 8 ? 0 : i - 7);
  }
  // And they are what the whole gives.
  const std::vector<FrameVoice> whole = detect_voice(audio.frames(), kBins, VoiceMode::kCausal);
  for (size_t i = 0; i < voice.size(); ++i) EXPECT_EQ(voice[i].probability, whole[i].probability);
  detector.finish(voice);
  EXPECT_EQ(voice.size(), 300u);
}

TEST(CausalVoiceTest, SilenceAndQuietNoiseAreNoSpeech) {
  EXPECT_TRUE(causal_spans(Audio().silence(1500)).empty());
  EXPECT_TRUE(causal_spans(Audio()).empty());
  for (const float level : {-8.0f, -6.0f}) {
    EXPECT_TRUE(causal_spans(Audio().noise(2000, level)).empty()) << level;
    EXPECT_TRUE(causal_spans(Audio().silence(50).noise(2000, level).silence(100).noise(500, level)).empty()) << level;
  }
}

// A loud hum is taken for a word while there is nothing to compare it with, and no longer.
TEST(CausalVoiceTest, LoudNoiseIsSpeechForAWhileAtMost) {
  for (const float level : {-4.0f, 0.0f, 3.0f}) {
    const std::vector<SpeechSpan> first = causal_spans(Audio().noise(2000, level));
    ASSERT_LE(first.size(), 1u) << level;
    if (!first.empty()) {
      EXPECT_LE(first[0].end, 1.3) << level;
    }
    // A gap of digital silence does not make it new.
    EXPECT_EQ(causal_spans(Audio().noise(500, level).silence(30).noise(500, level).silence(2).noise(300, level)).size(),
              first.size())
        << level;
    // Noise that grows all at once.
    const std::vector<SpeechSpan> grown = causal_spans(Audio().noise(400, -7).noise(1000, level));
    ASSERT_LE(grown.size(), 1u) << level;
    if (!grown.empty()) {
      // By its level, which was steady for 0.5 s: minima of 1.5 s still have the quiet noise before.
      EXPECT_LE(grown[0].end, 4 + 1.1) << level;
    }
  }
}

TEST(CausalVoiceTest, SpeechIsFoundWhereItIs) {
  for (const float level : {-9.0f, -6.0f}) {
    SCOPED_TRACE(level);
    const std::vector<SpeechSpan> spans = causal_spans(Audio()
                                                           .noise(700, level)
                                                           .speech(300, level, 2.5f)
                                                           .noise(800, level)
                                                           .speech(200, level, 2.5f)
                                                           .noise(300, level));
    ASSERT_EQ(spans.size(), 2u);
    EXPECT_NEAR(spans[0].start, 6.8, 0.15);
    EXPECT_NEAR(spans[0].end, 10.2, 0.25);
    EXPECT_NEAR(spans[1].start, 17.8, 0.15);
    EXPECT_NEAR(spans[1].end, 20.2, 0.25);
  }
}

TEST(CausalVoiceTest, AWordAtTheBeginningIsFound) {
  for (const int num_frames : {100, 300, 3000}) {
    const std::vector<SpeechSpan> spans = causal_spans(Audio().speech(num_frames, -4, 3));
    ASSERT_EQ(spans.size(), 1u) << num_frames;
    EXPECT_EQ(spans[0], (SpeechSpan{0, num_frames / 100.0}));
  }
  // Behind digital silence, as microphones begin.
  const std::vector<SpeechSpan> spans = causal_spans(Audio().silence(150).speech(200, -4, 3).silence(100));
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_NEAR(spans[0].start, 1.3, 0.1);
  EXPECT_NEAR(spans[0].end, 3.7, 0.15);
}

TEST(CausalVoiceTest, EveryFrameHasAResultWhateverItHolds) {
  std::mt19937 random(3);
  const float odd[] = {
      std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -1e30f, -10.0f, 10.0f, 0.0f};
  for (const int num_frames : {0, 1, 7, 8, 9, 400, 1111}) {
    std::vector<float> frames(static_cast<size_t>(num_frames) * kBins);
    for (float& value : frames) value = odd[random() % std::size(odd)];
    const std::vector<FrameVoice> voice = detect_voice(frames, kBins, VoiceMode::kCausal);
    ASSERT_EQ(voice.size(), static_cast<size_t>(num_frames));
    for (const FrameVoice& frame : voice) {
      EXPECT_TRUE(frame.probability >= 0 && frame.probability <= 1) << frame.probability;
    }
  }
}

TEST(VoiceActivityTest, LongAudioTakesNoMoreMemory) {
  const Audio audio = Audio().noise(300, -3).speech(300, -3, 3);
  VoiceActivityDetector detector(kBins);
  std::vector<FrameVoice> voice;
  voice.reserve(20'000);
  const int64_t before = testing::num_allocations();
  for (int i = 0; i < 20'000; ++i) {
    detector.push(std::span(audio.frames()).subspan(static_cast<size_t>(i % 600) * kBins, kBins), voice);
  }
  EXPECT_GT(voice.size(), 19'000u);
  detector.finish(voice);
  EXPECT_EQ(voice.size(), 20'000u);
  EXPECT_EQ(testing::num_allocations(), before);
}

// One frame a character: '.' no speech, '?' in between, 'S' speech.
std::vector<FrameVoice> voice_of(const std::string& pattern) {
  std::vector<FrameVoice> voice;
  for (const char c : pattern) voice.push_back({.probability = c == 'S' ? 0.9f : c == '?' ? 0.4f : 0.1f});
  return voice;
}
std::string repeated(int count, char c) { return std::string(static_cast<size_t>(count), c); }

TEST(FindSpeechTest, PausesJoinShortSpeechGoesPaddingStaysInside) {
  const SpeechSpanOptions options = {.min_speech_seconds = 0.05, .min_silence_seconds = 0.1, .padding_seconds = 0.02};
  EXPECT_EQ(find_speech(voice_of(".....SSSSSSSSSS....."), options), (std::vector<SpeechSpan>{{0.03, 0.17}}));
  EXPECT_EQ(find_speech(voice_of("SSSSS.........SSSSS"), options), (std::vector<SpeechSpan>{{0, 0.19}}));
  EXPECT_EQ(find_speech(voice_of("SSSSS..........SSSSS"), options), (std::vector<SpeechSpan>{{0, 0.07}, {0.13, 0.2}}));
  EXPECT_TRUE(find_speech(voice_of("....SSSS....."), options).empty());
  EXPECT_EQ(find_speech(voice_of("...SS????SS..."), options), (std::vector<SpeechSpan>{{0.01, 0.13}}));
  EXPECT_TRUE(find_speech(voice_of("...?????????..."), options).empty());
  EXPECT_TRUE(find_speech({}, options).empty());
}

TEST(CutWindowsTest, NeighboursAreJoinedWhileTheyFit) {
  const std::vector<FrameVoice> frames = voice_of(repeated(10'000, '.'));
  const std::vector<SpeechSpan> spans = {{1, 10}, {11, 20}, {21, 32}, {34, 40}, {50, 51}};
  EXPECT_EQ(cut_windows(spans, frames), (std::vector<SpeechSpan>{{1, 20}, {21, 40}, {50, 51}}));
  EXPECT_EQ(cut_windows(spans, frames, {.max_window_seconds = 20, .max_pause_seconds = 0.5}), spans);
  EXPECT_TRUE(cut_windows({}, frames).empty());
}

TEST(CutWindowsTest, LongSpeechIsCutAtItsQuietestMoment) {
  std::vector<FrameVoice> frames = voice_of(repeated(7000, 'S'));
  for (const int quiet : {500, 2500, 4600}) {
    for (int i = quiet - 5; i <= quiet + 5; ++i) frames[static_cast<size_t>(i)].level = -3;
  }
  const std::vector<SpeechSpan> windows = cut_windows(std::vector<SpeechSpan>{{0, 70}}, frames);
  ASSERT_EQ(windows.size(), 3u);
  EXPECT_EQ(windows[0], (SpeechSpan{0, 25}));
  EXPECT_EQ(windows[1], (SpeechSpan{25, 46}));
  EXPECT_EQ(windows[2], (SpeechSpan{46, 70}));
}

TEST(CutWindowsTest, SpansThatAreNotOfTheseFramesDoNotHang) {
  EXPECT_FALSE(cut_windows(std::vector<SpeechSpan>{{0, 1e6}}, voice_of("SSS")).empty());
}

}  // namespace
}  // namespace transept
