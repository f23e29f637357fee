#include "speech/turn_detector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"

namespace transept {

// For failures.
void PrintTo(const TurnEvent& event, std::ostream* out) { *out << static_cast<int>(event.kind) << "@" << event.ms; }

namespace {

using ::testing::ElementsAre;
using Kind = TurnEvent::Kind;

// Frames of speech or silence, and what was decided when.
class Talk {
 public:
  explicit Talk(LiveTurnDetection options = {}, int64_t first_frame = 0)
      : detector_(options, first_frame), num_frames_(first_frame) {}

  Talk& frames(int64_t count, float probability, float level = 0) {
    for (int64_t i = 0; i < count; ++i) {
      const size_t before = events_.size();
      detector_.push({probability, level}, events_);
      ++num_frames_;
      for (size_t k = before; k < events_.size(); ++k) times_.push_back(num_frames_ * kTurnFrameMs);
    }
    return *this;
  }
  Talk& speech(int64_t ms) { return frames(ms / kTurnFrameMs, 0.99f); }
  Talk& silence(int64_t ms) { return frames(ms / kTurnFrameMs, 0.01f, -9); }
  Talk& cut(int64_t ms) {
    detector_.cut(ms, events_);
    return *this;
  }

  TurnDetector& detector() { return detector_; }
  const std::vector<TurnEvent>& events() const { return events_; }
  const std::vector<int64_t>& times() const { return times_; }  // ms of audio that each decision took

 private:
  TurnDetector detector_;
  int64_t num_frames_;
  std::vector<TurnEvent> events_;
  std::vector<int64_t> times_;
};

TEST(TurnDetector, ATurnHasPaddingOnBothSides) {
  Talk talk;
  talk.silence(1000).speech(2000).silence(1000);
  EXPECT_THAT(talk.events(), ElementsAre(TurnEvent{Kind::kStarted, 700}, TurnEvent{Kind::kPaused, 3200},
                                         TurnEvent{Kind::kStopped, 3200}));
  EXPECT_THAT(talk.times(), ElementsAre(1100, 3200, 3500));
}

TEST(TurnDetector, PaddingAndSilenceAreTheCallers) {
  LiveTurnDetection options;
  options.prefix_padding_ms = 100;
  options.silence_duration_ms = 50;
  Talk talk(options);
  talk.silence(1000).speech(500).silence(50);
  EXPECT_THAT(talk.events(), ElementsAre(TurnEvent{Kind::kStarted, 900}, TurnEvent{Kind::kStopped, 1550}));
}

TEST(TurnDetector, APauseThatIsShortEndsNothing) {
  Talk talk;
  talk.silence(500).speech(500).silence(490).speech(500).silence(190).speech(300).silence(500);
  EXPECT_THAT(talk.events(), ElementsAre(TurnEvent{Kind::kStarted, 200}, TurnEvent{Kind::kPaused, 1200},
                                         TurnEvent{Kind::kResumed, 1490}, TurnEvent{Kind::kPaused, 2680},
                                         TurnEvent{Kind::kStopped, 2680}));
}

TEST(TurnDetector, AClickIsNoSpeech) {
  Talk talk;
  talk.silence(1000).speech(90).silence(1000);
  EXPECT_TRUE(talk.events().empty());
  talk.speech(100);
  EXPECT_EQ(talk.events().size(), 1u);
}

TEST(TurnDetector, SpeechEndsAtALowerThresholdThanItBegins) {
  LiveTurnDetection options;
  options.threshold = 0.6;
  Talk talk(options);
  talk.frames(200, 0.55f);
  EXPECT_TRUE(talk.events().empty());
  talk.frames(20, 0.65f).frames(500, 0.5f);
  EXPECT_THAT(talk.events(), ElementsAre(TurnEvent{Kind::kStarted, 1700}));
  talk.frames(60, 0.4f);
  EXPECT_EQ(talk.events().back(), (TurnEvent{Kind::kStopped, 7400}));
}

TEST(TurnDetector, ATurnBeginsNotBeforeTheOneBeforeEnds) {
  LiveTurnDetection options;
  options.silence_duration_ms = 200;
  options.prefix_padding_ms = 1000;
  Talk talk(options);
  talk.speech(500).silence(250).speech(500);
  EXPECT_THAT(talk.events(), ElementsAre(TurnEvent{Kind::kStarted, 0}, TurnEvent{Kind::kStopped, 700},
                                         TurnEvent{Kind::kStarted, 700}));
}

TEST(TurnDetector, ThirtySecondsAreCutAtTheQuietestPlaceOfTheLastFive) {
  Talk talk;
  talk.silence(1000);           // the turn begins at 700
  talk.frames(2000, 0.9f, -1);  // to 21 s; quieter than all, but too early
  talk.frames(10, 0.9f, -8);
  talk.frames(600, 0.9f, -1);  // to 27.1 s
  talk.frames(5, 0.9f, -4);    // the quietest of the last 5 s
  talk.frames(500, 0.9f, -1);
  EXPECT_THAT(talk.events(), ElementsAre(TurnEvent{Kind::kStarted, 700}, TurnEvent{Kind::kStopped, 27100},
                                         TurnEvent{Kind::kStarted, 27100}));
  EXPECT_EQ(talk.times()[1], 30700);
  talk.silence(1000);
  EXPECT_EQ(talk.events().back(), (TurnEvent{Kind::kStopped, 32350}));
}

TEST(TurnDetector, ATurnThatIsCutInAPauseIsOver) {
  LiveTurnDetection options;
  options.silence_duration_ms = 2000;
  Talk talk(options);
  talk.speech(29000).silence(1500).silence(1000);
  EXPECT_THAT(talk.events(), ElementsAre(TurnEvent{Kind::kStarted, 0}, TurnEvent{Kind::kPaused, 29200},
                                         TurnEvent{Kind::kStopped, 29200}));
}

TEST(TurnDetector, EndlessSpeechIsItemsOfAtMostThirtySeconds) {
  Talk talk;
  talk.speech(3600 * 1000);
  int64_t begin = 0, num_stops = 0;
  for (const TurnEvent& event : talk.events()) {
    if (event.kind == Kind::kStarted) begin = event.ms;
    if (event.kind != Kind::kStopped) continue;
    EXPECT_LE(event.ms - begin, 30000);
    EXPECT_GE(event.ms - begin, 25000);
    ++num_stops;
  }
  EXPECT_GE(num_stops, 120);
}

TEST(TurnDetector, ACommitInSpeechBeginsTheNextTurnThere) {
  Talk talk;
  talk.silence(1000).speech(1000).cut(2084).speech(1000).silence(600);
  EXPECT_THAT(talk.events(), ElementsAre(TurnEvent{Kind::kStarted, 700}, TurnEvent{Kind::kStarted, 2084},
                                         TurnEvent{Kind::kPaused, 3200}, TurnEvent{Kind::kStopped, 3200}));
}

TEST(TurnDetector, ACommitInAPauseBeginsNothing) {
  Talk talk;
  talk.silence(1000).speech(1000).silence(300).cut(2400).silence(1000);
  EXPECT_THAT(talk.events(), ElementsAre(TurnEvent{Kind::kStarted, 700}, TurnEvent{Kind::kPaused, 2200}));
  EXPECT_FALSE(talk.detector().is_open());
  talk.speech(200);
  EXPECT_EQ(talk.events().back(), (TurnEvent{Kind::kStarted, 3000}));
}

TEST(TurnDetector, ATurnThatACutHasBegunIsLongEnoughToBeTranscribed) {
  LiveTurnDetection options;
  options.silence_duration_ms = 20;
  Talk talk(options);
  talk.speech(1000).cut(1090).silence(500);  // what was decided is behind what was heard
  EXPECT_THAT(talk.events(), ElementsAre(TurnEvent{Kind::kStarted, 0}, TurnEvent{Kind::kStarted, 1090},
                                         TurnEvent{Kind::kStopped, 1190}));
}

TEST(TurnDetector, KnowsWhatATurnMayStillNeed) {
  Talk talk;
  EXPECT_EQ(talk.detector().earliest_ms(), 0);
  talk.silence(1000);
  EXPECT_EQ(talk.detector().earliest_ms(), 700);
  talk.speech(50);
  EXPECT_EQ(talk.detector().earliest_ms(), 700);  // speech may have begun at 1000
  talk.speech(1000);
  EXPECT_EQ(talk.detector().start_ms(), 700);
  EXPECT_EQ(talk.detector().earliest_ms(), 700);
  talk.silence(600);
  EXPECT_EQ(talk.detector().earliest_ms(), 2350);
  EXPECT_EQ(talk.events().back(), (TurnEvent{Kind::kStopped, 2250}));
}

TEST(TurnDetector, BeginsInTheMiddleOfASession) {
  Talk talk({}, 500);
  talk.speech(500);
  EXPECT_THAT(talk.events(), ElementsAre(TurnEvent{Kind::kStarted, 5000}));
}

TEST(TurnDetector, AnOpenItemGoesOnAsATurn) {
  Talk talk({}, 100);
  talk.detector().open(200);
  EXPECT_TRUE(talk.detector().is_open());
  talk.silence(600);
  EXPECT_EQ(talk.events().back(), (TurnEvent{Kind::kStopped, 1200}));
}

}  // namespace
}  // namespace transept
