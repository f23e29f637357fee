#include "load/live_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "load/live_load.h"

namespace transept {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TimePoint at(double s) { return TimePoint() + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s)); }

// A meter whose first sample was sent at 10 s.
class Meter {
 public:
  Meter() { meter.begin(at(10)); }
  void take(double s, const std::string& json) {
    const StatusOr<Json> event = Json::parse(json);
    ASSERT_TRUE(event.ok()) << json;
    meter.take(*event, at(s));
  }
  void transcription(double s, const std::string& kind, const std::string& item, const std::string& more) {
    take(s, str_cat(R"({"type": "conversation.item.input_audio_transcription.)", kind, R"(", "item_id": ")", item,
                    R"(", )", more, "}"));
  }
  void input(double s, const std::string& kind, const std::string& item, const std::string& more = R"("x": 0)") {
    take(s, str_cat(R"({"type": "input_audio_buffer.)", kind, R"(", "item_id": ")", item, R"(", )", more, "}"));
  }
  LiveMeter meter;
};

TEST(LiveMeter, ATurnsLatencies) {
  Meter meter;
  EXPECT_FALSE(meter.meter.is_ready());
  meter.take(9, R"({"type": "session.updated"})");
  EXPECT_TRUE(meter.meter.is_ready());
  meter.input(12.6, "speech_started", "a", R"("audio_start_ms": 2500)");
  EXPECT_FALSE(meter.meter.is_done());
  meter.transcription(13.75, "delta", "a", R"("delta": "one")");
  meter.transcription(14, "delta", "a", R"("delta": " two")");
  meter.input(15, "speech_stopped", "a", R"("audio_end_ms": 4500)");
  meter.transcription(15.1, "delta", "a", R"("delta": " three")");
  meter.transcription(15.25, "completed", "a", R"("transcript": "one two three")");
  EXPECT_TRUE(meter.meter.is_done());
  const LiveSessionMeasure found = meter.meter.measured();
  ASSERT_EQ(found.turns.size(), 1U);
  EXPECT_NEAR(found.turns[0].first_text_s, 1.25, 1e-6);  // 13.75 - (10 + 2.5)
  EXPECT_NEAR(found.turns[0].completed_s, 0.25, 1e-6);
  EXPECT_EQ(found.turns[0].num_deltas, 2);
  EXPECT_EQ(found.turns[0].num_early_bytes, std::string("one two").size());
  EXPECT_FALSE(found.turns[0].is_revised);
  EXPECT_THAT(found.error, IsEmpty());
}

TEST(LiveMeter, TurnsThatOverlapAreKeptApart) {
  Meter meter;
  meter.input(11, "speech_started", "a", R"("audio_start_ms": 0)");
  meter.transcription(12, "delta", "a", R"("delta": "knave")");
  meter.input(13, "speech_stopped", "a");
  meter.input(14, "speech_started", "b", R"("audio_start_ms": 3500)");
  meter.transcription(14.5, "completed", "a", R"("transcript": "nave")");
  meter.transcription(15, "failed", "b", R"("error": {"message": "no"})");
  const LiveSessionMeasure found = meter.meter.measured();
  ASSERT_EQ(found.turns.size(), 2U);
  EXPECT_TRUE(found.turns[0].is_revised);
  EXPECT_NEAR(found.turns[0].completed_s, 1.5, 1e-6);
  EXPECT_TRUE(found.turns[1].has_failed);
  EXPECT_LT(found.turns[1].completed_s, 0);
  EXPECT_LT(found.turns[1].first_text_s, 0);
}

TEST(LiveMeter, HypothesesOfOneTurnHaveIntervals) {
  Meter meter;
  const auto hypothesis = [&](double s, const std::string& item) {
    meter.take(s, str_cat(R"({"type": "transept.hypothesis", "text": "x", "item_id": ")", item, R"("})"));
  };
  hypothesis(11, "a");
  hypothesis(11.5, "a");
  hypothesis(12.25, "a");
  hypothesis(20, "b");  // the pause between turns is none
  EXPECT_THAT(meter.meter.measured().hops, ElementsAre(DoubleNear(0.5, 1e-6), DoubleNear(0.75, 1e-6)));
}

TEST(LiveMeter, WhatIsNoEventChangesNothing) {
  Meter meter;
  for (const std::string json : {"[]", "1", R"({"type": 5})", R"({"type": "other"})", "{}"}) meter.take(1, json);
  EXPECT_TRUE(meter.meter.is_done());
  EXPECT_THAT(meter.meter.measured().turns, IsEmpty());
}

TEST(LiveMeter, TheFirstErrorStays) {
  Meter meter;
  meter.take(1, R"({"type": "error", "error": {"message": "one"}})");
  meter.take(1, R"({"type": "error", "error": {"message": "two"}})");
  EXPECT_EQ(meter.meter.measured().error, "one");
}

TEST(LiveMetrics, SessionsKeepUpIfTheirHypothesesAreHalfASecondLateAtMost) {
  LiveSessionMeasure good, late, failed, silent, cut;
  good.hops = {0.5, 0.6, 0.99};
  good.turns = {{.first_text_s = 1, .completed_s = 0.1, .num_early_bytes = 2, .told = "abc", .transcript = "xyz"},
                {.is_revised = true, .num_early_bytes = 1, .told = "z", .transcript = "y"}};  // has no end
  late.hops = {0.5, 1.2, 1.2};
  failed.error = "no";
  cut.has_ended_early = true;
  const LiveMetrics metrics =
      measure_live({good, late, failed, silent, cut}, 0.5, [](std::string_view told, std::string_view transcript) {
        return std::pair<int64_t, int64_t>(told.size(), 10 * transcript.size());
      });
  EXPECT_EQ(metrics.num_sessions, 5);
  EXPECT_EQ(metrics.num_kept_up, 2);
  EXPECT_EQ(metrics.num_failed, 2);
  EXPECT_EQ(metrics.num_turns, 2);
  EXPECT_EQ(metrics.num_revised, 1);
  EXPECT_EQ(metrics.num_told_words, 2);
  EXPECT_EQ(metrics.num_revised_words, 30);
  EXPECT_EQ(metrics.first_text.count, 1U);
  EXPECT_EQ(metrics.first_text.p50, 1);
  EXPECT_EQ(metrics.hop.count, 6U);
  EXPECT_THAT(live_metrics_table(metrics), HasSubstr("5, 2 kept up, 2 failed"));
  EXPECT_THAT(live_metrics_table(metrics), HasSubstr("2 told while one spoke, 30 of them revised"));
  EXPECT_EQ(live_metrics_json(metrics).find("sessions_that_kept_up")->as_int(), 2);
}

}  // namespace
}  // namespace transept
