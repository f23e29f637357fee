// Operators see every request that was answered, of whichever route: the histograms of requests count it once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <thread>

#include "server/prometheus_testing.h"
#include "server/routes.h"
#include "server/served_model_testing.h"
#include "server/transcription_testing.h"

namespace transept::testing {
namespace {

constexpr const char* kOncePerRequest[] = {
    "transept:e2e_request_latency_seconds_count", "transept:request_queue_time_seconds_count",
    "transept:request_prompt_tokens_count", "transept:request_generation_tokens_count"};

PrometheusText parsed(const std::string& text) {
  StatusOr<PrometheusText> metrics = PrometheusText::parse(text);
  EXPECT_TRUE(metrics.ok()) << error_message(metrics.status());
  return metrics.ok() ? *std::move(metrics) : PrometheusText();
}

// How much the samples of a name have grown, over all their labels.
double growth(const PrometheusText& before, const PrometheusText& after, const std::string& name) {
  const auto sum = [&](const PrometheusText& text) {
    double total = 0;
    for (const auto& [family, content] : text.families()) {
      const auto found = content.samples.find(name);
      if (found == content.samples.end()) continue;
      for (const auto& [labels, value] : found->second) total += value;
    }
    return total;
  };
  return sum(after) - sum(before);
}

void expect_counted(const PrometheusText& before, const PrometheusText& after, double requests, double answers,
                    const std::string& what) {
  for (const char* name : kOncePerRequest) EXPECT_EQ(growth(before, after, name), requests) << what << ": " << name;
  EXPECT_EQ(growth(before, after, "transept:request_success_total"), answers) << what;
}

// A body for every route that works on the engine; a route that is new here fails until it has one.
TEST(RouteMetrics, EveryRouteOfTextIsCounted) {
  const std::map<std::string_view, std::string_view> bodies = {
      {"/v1/completions", R"({"prompt": "hello"})"},
      {"/v1/chat/completions", R"({"messages": [{"role": "user", "content": "hello"}]})"},
      {"/v1/score", R"({"prompt": "hello", "decoder_prompt": "h"})"},
      {"/v1/translate", R"({"text": "hello"})"},
  };
  ServedModel served;
  served.load();
  for (const Route& route : routes()) {
    if (route.kind != RouteKind::kWork || route.only_encodes) continue;
    ASSERT_TRUE(bodies.contains(route.pattern)) << route.pattern;
    const PrometheusText before = parsed(served.get("/metrics").body);
    const HttpClient::Reply reply = served.post(route.pattern, bodies.at(route.pattern));
    ASSERT_EQ(reply.status, 200) << route.pattern << reply.body;
    expect_counted(before, parsed(served.get("/metrics").body), 1, 1, std::string(route.pattern));
  }
}

// The other routes that work for a client: a route that is new here fails until it is listed.
TEST(RouteMetrics, RoutesThatAreNotOfTextAreListed) {
  const std::map<std::string_view, std::string_view> elsewhere = {
      {"/v1/audio/transcriptions", "ATranscriptionIsOneRequestHoweverManyWindows"},
      {"/v1/audio/translations", "ATranscriptionIsOneRequestHoweverManyWindows"},
      {"/v1/realtime", "realtime_test.cc: each transcript of a turn is a request"},
      {"/v1/encode",
       "is a part of a request, which the decode instance counts; metrics of encode instances are in fleet_test.cc"},
  };
  for (const Route& route : routes()) {
    const bool works = route.kind == RouteKind::kSpeech || route.kind == RouteKind::kSocket || route.only_encodes;
    EXPECT_EQ(works, elsewhere.contains(route.pattern)) << route.pattern;
  }
}

TEST(RouteMetrics, UsageAndTokensAgreeWhetherStreamedOrNot) {
  ServedModel served;
  served.load();
  for (const bool stream : {false, true}) {
    const PrometheusText before = parsed(served.get("/metrics").body);
    const std::string body = str_cat(R"({"prompt": ["hello", "continuous"], "n": 2, "temperature": 1, "stream": )",
                                     stream ? R"(true, "stream_options": {"include_usage": true})" : "false", "}");
    const HttpClient::Reply reply = served.post("/v1/completions", body);
    ASSERT_EQ(reply.status, 200) << reply.body;
    const size_t at_usage = reply.body.rfind("\"completion_tokens\": ");
    const size_t at_prompt = reply.body.rfind("\"prompt_tokens\": ");
    ASSERT_NE(at_usage, std::string::npos) << reply.body;
    const double generated = std::stod(reply.body.substr(at_usage + 21)),
                 prompt = std::stod(reply.body.substr(at_prompt + 17));
    const PrometheusText after = parsed(served.get("/metrics").body);
    expect_counted(before, after, 2, 4, stream ? "streamed" : "whole");
    EXPECT_EQ(growth(before, after, "transept:request_generation_tokens_sum"), generated) << stream;
    EXPECT_EQ(growth(before, after, "transept:request_prompt_tokens_sum"), prompt) << stream;
    EXPECT_EQ(growth(before, after, "transept:time_to_first_token_seconds_count"), 2) << stream;
    EXPECT_GT(growth(before, after, "transept:inter_token_latency_seconds_count"), 4) << stream;
  }
}

TEST(RouteMetrics, ATranscriptionIsOneRequestHoweverManyWindows) {
  const auto house = speech_house();
  const auto read = [&] { return parsed(house->metrics().text(house->engine().snapshot(), {})); };
  const std::string file = wav(7, 64);
  for (const Fields& asked : {Fields{}, Fields{{"stream", "true"}}, Fields{{"language", "en"}}}) {
    for (const bool translate : {false, true}) {
      Fields fields = asked;
      fields.emplace_back("file", file);
      const PrometheusText before = read();
      const auto client = post(house->context(), fields, translate);
      if (translate && client->answer().status != 200) continue;  // a field that translations do not know
      ASSERT_EQ(client->answer().status, 200) << client->answer().body;
      const PrometheusText after = read();
      expect_counted(before, after, 1, 1, str_cat("translate ", translate));
      EXPECT_EQ(growth(before, after, "transept:time_to_first_token_seconds_count"), 1);
      EXPECT_EQ(growth(before, after, "transept:time_per_output_token_seconds_count"), 1);
      EXPECT_GT(growth(before, after, "transept:inter_token_latency_seconds_count"), 2);
      EXPECT_GE(growth(before, after, "transept:e2e_request_latency_seconds_sum"),
                growth(before, after, "transept:time_to_first_token_seconds_sum"));
      EXPECT_GE(growth(before, after, "transept:time_to_first_token_seconds_sum"),
                growth(before, after, "transept:request_queue_time_seconds_sum"));
      // Nothing was decoded again here, so the engine's tokens are no fewer than the request's.
      EXPECT_GE(growth(before, after, "transept:generation_tokens_total"),
                growth(before, after, "transept:request_generation_tokens_sum"));
      EXPECT_GT(growth(before, after, "transept:request_generation_tokens_sum"), 0);
    }
  }
}

TEST(RouteMetrics, ATranscriptionThatIsRefusedIsNoRequest) {
  const auto house = speech_house();
  const auto read = [&] { return parsed(house->metrics().text(house->engine().snapshot(), {})); };
  const PrometheusText before = read();
  EXPECT_EQ(post(house->context(), {{"file", "no audio"}})->answer().status, 400);
  expect_counted(before, read(), 0, 0, "no audio");
}

}  // namespace
}  // namespace transept::testing
