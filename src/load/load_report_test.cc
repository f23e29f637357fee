#include "load/load_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TimePoint at(int ms) { return TimePoint{} + std::chrono::milliseconds(ms); }

// Two whole answers, one refusal, one failure.
LoadResult example() {
  Exchange first{
      .due = at(0), .sent = at(5), .end = at(1000), .text_times = {at(100), at(300), at(700)}, .status = 200};
  first.input_tokens = 10;
  first.output_tokens = 4;  // one event brought two tokens
  first.audio_seconds = 30;
  Exchange second{.due = at(500), .sent = at(500), .end = at(2000), .text_times = {at(1900)}, .status = 200};
  const Exchange refused{.due = at(600), .sent = at(600), .end = at(601), .status = 429, .failure = "HTTP 429"};
  const Exchange lost{.due = at(700), .sent = at(700), .end = at(900), .failure = "timeout"};
  return {.exchanges = {first, second, refused, lost}, .duration = std::chrono::seconds(2), .max_in_flight = 3};
}

GoodputLimits limits_of(std::string_view text) { return GoodputLimits::parse(text).value(); }

TEST(LoadReportTest, MeasuresWholeAnswers) {
  const LoadMetrics metrics = measure_load(example(), {});
  EXPECT_EQ(metrics.num_requests, 4);
  EXPECT_EQ(metrics.num_ok, 2);
  EXPECT_EQ(metrics.num_rejected, 1);
  EXPECT_EQ(metrics.errors, (std::map<std::string, int64_t>{{"HTTP 429", 1}, {"timeout", 1}}));
  EXPECT_EQ(metrics.input_tokens, 10);
  EXPECT_EQ(metrics.output_tokens, 5) << "4 by usage, and one event";
  EXPECT_EQ(metrics.num_without_usage, 1);
  EXPECT_EQ(metrics.audio_seconds, 30);
  EXPECT_EQ(metrics.ttft.count, 2u);
  EXPECT_DOUBLE_EQ(metrics.ttft.max, 1400) << "from when it was due";
  EXPECT_DOUBLE_EQ(metrics.ttft.mean, 750);
  EXPECT_EQ(metrics.itl.count, 2u);
  EXPECT_DOUBLE_EQ(metrics.itl.max, 400);
  EXPECT_EQ(metrics.tpot.count, 1u);
  EXPECT_DOUBLE_EQ(metrics.tpot.mean, 200) << "600 ms for three tokens after the first";
  EXPECT_DOUBLE_EQ(metrics.e2el.mean, 1250);
  EXPECT_EQ(metrics.send_delay.count, 4u);
  EXPECT_DOUBLE_EQ(metrics.send_delay.max, 5);
}

TEST(LoadReportTest, GoodIsWholeAndWithinEveryLimit) {
  const auto num_good = [](std::string_view limits) { return measure_load(example(), limits_of(limits)).num_good; };
  EXPECT_EQ(num_good("e2el:1500"), 2);
  EXPECT_EQ(num_good("e2el:1499"), 1);
  EXPECT_EQ(num_good("ttft:100"), 1);
  EXPECT_EQ(num_good("ttft:99"), 0);
  EXPECT_EQ(num_good("tpot:200"), 2) << "one token has no time per further token";
  EXPECT_EQ(num_good("tpot:199"), 1);
  EXPECT_EQ(num_good("ttft:2000 tpot:199 e2el:1499"), 0);
}

TEST(LoadReportTest, LimitsAreReadOrRefused) {
  const GoodputLimits limits = limits_of("ttft:500, e2el:2000.5");
  EXPECT_EQ(limits.ttft_ms, 500);
  EXPECT_EQ(limits.tpot_ms, std::nullopt);
  EXPECT_EQ(limits.e2el_ms, 2000.5);
  for (const char* bad : {"", ",", "ttft", "ttft:", "ttft:0", "ttft:-1", "ttft:nan", "ttft:inf", "ttft:1s", "itl:3",
                          "ttft:1 ttft:2", ":5"}) {
    EXPECT_FALSE(GoodputLimits::parse(bad).ok()) << bad;
  }
}

TEST(LoadReportTest, AsJson) {
  const GoodputLimits limits = limits_of("ttft:100");
  const Json json = load_metrics_json(measure_load(example(), limits), limits);
  EXPECT_EQ(json.find("duration_s")->as_double(), 2);
  EXPECT_EQ(json.find("num_failed")->as_int(), 2);
  EXPECT_EQ(json.find("errors")->dump(), R"({"HTTP 429": 1, "timeout": 1})");
  EXPECT_EQ(json.find("error_texts")->dump(), "{}");
  EXPECT_EQ(json.find("requests_per_s")->as_double(), 1);
  EXPECT_EQ(json.find("input_tokens_per_s")->as_double(), 5);
  EXPECT_EQ(json.find("output_tokens_per_s")->as_double(), 2.5);
  EXPECT_EQ(json.find("total_tokens_per_s")->as_double(), 7.5);
  EXPECT_EQ(json.find("audio_seconds_per_s")->as_double(), 15);
  EXPECT_EQ(json.find("tpot_ms")->find("p99")->as_double(), 200);
  EXPECT_EQ(json.find("goodput")->dump(),
            R"({"limits_ms": {"ttft": 100.0}, "num_good": 1, "share": 0.25, "requests_per_s": 0.5})");
}

TEST(LoadReportTest, NothingMeasuredIsNull) {
  const LoadMetrics none = measure_load({}, {});
  const Json json = load_metrics_json(none, {});
  for (const char* name : {"ttft_ms", "itl_ms", "tpot_ms", "e2el_ms", "send_delay_ms", "goodput"}) {
    EXPECT_TRUE(json.find(name)->is_null()) << name;
  }
  EXPECT_EQ(json.find("requests_per_s")->as_double(), 0);
  EXPECT_THAT(load_metrics_table(none, {}), Not(HasSubstr("TTFT")));
}

TEST(LoadReportTest, AsATable) {
  const GoodputLimits limits = limits_of("ttft:100");
  const std::string table = load_metrics_table(measure_load(example(), limits), limits);
  EXPECT_THAT(table, HasSubstr("requests answered               2 of 4, 3 at once at most, in 2.00 s\n"));
  EXPECT_THAT(table, HasSubstr("requests rejected               1 (HTTP 429)\n"));
  EXPECT_THAT(table, HasSubstr("requests failed                 1 timeout\n"));
  EXPECT_THAT(table, HasSubstr("goodput                      0.50 requests/s, 25.0 % of all\n"));
  EXPECT_THAT(table, HasSubstr("per token (TPOT)           200.00"));
}

}  // namespace
}  // namespace transept
