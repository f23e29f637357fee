// What sequential mode decodes with vad_filter: the parts and their times alone, then transcriptions.
#include "speech/spoken_audio.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "speech/transcriber_testing.h"

namespace transept::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kSecond = 100;  // frames

std::vector<FrameVoice> voice_in(int64_t count, const std::vector<FrameRange>& spoken) {
  std::vector<FrameVoice> voice(static_cast<size_t>(count), {.probability = 0, .level = -3});
  for (const FrameRange& range : spoken) {
    for (int64_t i = range.begin; i < range.end; ++i) voice[static_cast<size_t>(i)].probability = 1;
  }
  return voice;
}

FrameRange seconds_of(int64_t begin, int64_t end) { return {begin * kSecond, end * kSecond}; }

// Speech at 10 to 12 s, 13 to 15 s (the pause is kept) and 40 to 50 s, each with 0.4 s on both sides.
class SpokenAudioTest : public ::testing::Test {
 protected:
  const std::vector<FrameVoice> voice_ =
      voice_in(60 * kSecond, {seconds_of(10, 12), seconds_of(13, 15), seconds_of(40, 50)});
  const std::vector<FrameRange> all_ = {seconds_of(0, 60)};
  const SpokenAudio spoken_{voice_, all_};
};

TEST_F(SpokenAudioTest, LongPausesAreLeftOut) {
  EXPECT_EQ(spoken_.num_frames(), 580 + 1080);
  EXPECT_THAT(spoken_.clips(), ElementsAre(FrameRange{0, 1660}));
  EXPECT_THAT(spoken_.parts({0, 1660}), ElementsAre(FrameRange{960, 1540}, FrameRange{3960, 5040}));
  EXPECT_THAT(spoken_.parts({100, 580}), ElementsAre(FrameRange{1060, 1540}));
  EXPECT_THAT(spoken_.parts({579, 581}), ElementsAre(FrameRange{1539, 1540}, FrameRange{3960, 3961}));
  EXPECT_THAT(spoken_.parts({580, 580}), IsEmpty());
  EXPECT_EQ(spoken_.file_frame(0), 960);
  EXPECT_EQ(spoken_.file_frame(580), 1540);
  EXPECT_EQ(spoken_.file_frame(581), 3961);
  EXPECT_EQ(spoken_.file_frame(1660), 5040);
}

TEST_F(SpokenAudioTest, TimesAreThoseOfTheFile) {
  Segment segment;
  segment.seek = 580;
  segment.start = 1.5;
  segment.end = 5.8;  // where the first part ends
  spoken_.restore_times(segment);
  EXPECT_EQ(segment.seek, 3960);
  EXPECT_DOUBLE_EQ(segment.start, 11.1);
  EXPECT_DOUBLE_EQ(segment.end, 15.4);
  segment.start = 5.8;  // where the second begins
  segment.end = 16.6;
  spoken_.restore_times(segment);
  EXPECT_DOUBLE_EQ(segment.start, 39.6);
  EXPECT_DOUBLE_EQ(segment.end, 50.4);
}

TEST_F(SpokenAudioTest, AWordLiesInThePartOfItsMiddle) {
  Segment segment;
  segment.start = 0;
  segment.end = 16;
  segment.words = {{.word = " a", .start = 5.6, .end = 5.9}, {.word = " b", .start = 5.7, .end = 6.1}};
  spoken_.restore_times(segment);
  EXPECT_DOUBLE_EQ(segment.words[0].start, 15.2);
  EXPECT_DOUBLE_EQ(segment.words[0].end, 15.5);
  EXPECT_DOUBLE_EQ(segment.words[1].start, 39.5);
  EXPECT_DOUBLE_EQ(segment.words[1].end, 39.9);
  EXPECT_DOUBLE_EQ(segment.start, 15.2);
  EXPECT_DOUBLE_EQ(segment.end, 39.9);
}

TEST_F(SpokenAudioTest, ClipsKeepTheirOrder) {
  const std::vector<FrameRange> clips = {seconds_of(45, 60), seconds_of(20, 30), {1450, 1549}, {2000, 2099}};
  const SpokenAudio spoken(voice_, clips);
  EXPECT_THAT(spoken.clips(),
              ElementsAre(FrameRange{0, 540}, FrameRange{540, 540}, FrameRange{540, 630}, FrameRange{630, 729}));
  EXPECT_THAT(spoken.parts({0, 729}),
              ElementsAre(FrameRange{4500, 5040}, FrameRange{1450, 1540}, FrameRange{2000, 2099}));
}

TEST_F(SpokenAudioTest, WhereNobodySpeaksThereIsNothing) {
  const SpokenAudio spoken(voice_in(60 * kSecond, {}), all_);
  EXPECT_EQ(spoken.num_frames(), 0);
  EXPECT_EQ(spoken.file_frame(7), 7);
  Segment segment;
  segment.start = 3;
  spoken.restore_times(segment);
  EXPECT_EQ(segment.start, 3);
}

// ---- Transcriptions

TranscribeOptions filtering() {
  TranscribeOptions options = greedy_options();
  options.mode = TranscribeMode::kSequential;
  options.without_timestamps = true;
  options.vad_filter = true;
  return options;
}

// 20 s, a minute of silence, 20 s: 40 s of speech are two windows, and not four.
TEST(VadFilter, PausesAreNotDecoded) {
  const House house;
  const AudioSource audio = synthetic_source(5, 100, {{20 * 16000, 80 * 16000}});
  TranscribeOptions options = filtering();
  const auto filtered = house.transcribe(audio, options);
  options.vad_filter = false;
  const auto all = house.transcribe(audio, options);
  ASSERT_TRUE(filtered.ok() && all.ok());
  EXPECT_EQ(all->counts.num_windows, 4);
  EXPECT_EQ(filtered->counts.num_windows, 2);
  ASSERT_EQ(filtered->transcript.segments.size(), 2u);
  EXPECT_NEAR(filtered->transcript.segments.front().start, 0, 1);
  EXPECT_GT(filtered->transcript.segments.front().end, 85) << "over the pause";
  EXPECT_GT(filtered->transcript.segments.back().end, 90);
  EXPECT_LE(filtered->transcript.segments.back().end, 100);
  EXPECT_EQ(filtered->transcript.duration, 100);
}

TEST(VadFilter, WithTimestampsAndWordsEverythingLiesWhereSomebodySpeaks) {
  const House house;
  TranscribeOptions options = filtering();
  options.without_timestamps = false;
  options.word_timestamps = true;
  options.skip_silence = true;  // of the file's frames: says nothing of joined ones
  double done = 0;
  TranscribeObserver observer;
  observer.on_progress = [&](double now, double) {
    EXPECT_GE(now, done);
    done = now;
  };
  const auto result = house.transcribe(synthetic_source(5, 100, {{20 * 16000, 80 * 16000}}), options, observer);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_FALSE(result->transcript.segments.empty());
  EXPECT_GT(done, 95);
  for (const Segment& segment : result->transcript.segments) {
    for (const Word& word : segment.words) {
      const double middle = (word.start + word.end) / 2;
      EXPECT_TRUE(middle < 21 || middle > 79) << middle;
      EXPECT_LE(word.end, 100.5);
    }
  }
}

TEST(VadFilter, SilenceAloneIsNoTextAndTellsNoLanguage) {
  const House house;
  TranscribeOptions options = filtering();
  options.language = "";
  const AudioSource silence(raw_audio(std::vector<int16_t>(size_t{10} * 16000)));
  const auto result = house.transcribe(silence, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->counts.num_windows, 0);
  EXPECT_THAT(result->transcript.segments, IsEmpty());
  EXPECT_EQ(result->transcript.language, "");
}

// The language is told from what is spoken first: with it given, nothing changes.
TEST(VadFilter, WhatIsSpokenTellsTheLanguage) {
  const House house;
  TranscribeOptions options = filtering();
  options.language = "";
  const AudioSource audio = synthetic_source(5, 100, {{0, 60 * 16000}});
  const auto detected = house.transcribe(audio, options);
  ASSERT_TRUE(detected.ok()) << detected.status();
  EXPECT_EQ(detected->counts.num_windows, 2) << "the first window tells it";
  options.language = detected->transcript.language;
  expect_same(detected->transcript, house.transcribe(audio, options)->transcript);
}

}  // namespace
}  // namespace transept::testing
