// The target over real sockets: what is sent, and how every way of failing is named.
#include "load/openai_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/fake_http_server_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::transept::testing::FakeHttpServer;
using Connection = FakeHttpServer::Connection;

constexpr std::string_view kStreamHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string chunk(std::string_view data) {
  const std::string event = str_cat("data: ", data, "\n\n");
  char size[16];
  std::snprintf(size, sizeof size, "%zx\r\n", event.size());
  return str_cat(size, event, "\r\n");
}

// Two requests' exchanges with a server that does this on every connection.
std::vector<Exchange> exchanges_with(const FakeHttpServer::Handler& handler, bool stream,
                                     std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
  FakeHttpServer server(handler);
  const LoadRequests requests({.model = "m", .stream = stream});
  const SteadyClock clock;
  OpenAiTarget::Options options{.api_key = "secret", .stream = stream, .timeout = timeout};
  options.url = {"127.0.0.1", server.port(), "/base/v1"};
  OpenAiTarget target(options, requests, clock);
  const auto worker = target.make_worker();
  std::vector<Exchange> exchanges;
  for (int64_t i = 0; i < 2; ++i) {
    worker->prepare(i);
    exchanges.push_back(worker->send());
  }
  return exchanges;
}

TEST(OpenAiTargetTest, StreamsAreTimed) {
  std::vector<std::string> seen;
  const std::vector<Exchange> exchanges = exchanges_with(
      [&](Connection& connection) {
        while (auto request = connection.read_request()) {
          seen.push_back(*std::move(request));
          connection.send(kStreamHead);
          for (int i = 0; i < 3; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            connection.send(chunk(R"({"choices": [{"text": "a"}]})"));
          }
          connection.send(chunk(R"({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3}})"));
          connection.send(chunk("[DONE]") + "0\r\n\r\n");
        }
      },
      true);
  for (const Exchange& exchange : exchanges) {
    EXPECT_EQ(exchange.failure, "");
    EXPECT_EQ(exchange.status, 200);
    EXPECT_EQ(exchange.output_tokens, 3);
    ASSERT_EQ(exchange.text_times.size(), 3u);
    EXPECT_GE(exchange.text_times[0] - exchange.sent, std::chrono::milliseconds(20));
    EXPECT_GE(exchange.end, exchange.text_times[2]);
  }
  ASSERT_EQ(seen.size(), 2u) << "on one connection";
  EXPECT_THAT(seen[0], AllOf(StartsWith("POST /base/v1/completions HTTP/1.1\r\n"),
                             HasSubstr("\r\nAuthorization: Bearer secret\r\n"), HasSubstr("\"include_usage\": true")));
  EXPECT_NE(seen[0], seen[1]);
}

TEST(OpenAiTargetTest, WholeAnswers) {
  const std::vector<Exchange> exchanges = exchanges_with(
      [](Connection& connection) {
        while (connection.read_request().has_value()) {
          connection.respond(200, R"({"usage": {"prompt_tokens": 5, "completion_tokens": 3}})");
        }
      },
      false);
  EXPECT_EQ(exchanges[1].failure, "");
  EXPECT_EQ(exchanges[1].input_tokens, 5);
  EXPECT_TRUE(exchanges[1].text_times.empty());
}

TEST(OpenAiTargetTest, FailuresHaveNames) {
  const auto failure = [](std::string answer, bool stream) {
    return exchanges_with(
               [answer](Connection& connection) {
                 if (connection.read_request().has_value()) connection.send(answer);
               },
               stream)[0]
        .failure;
  };
  for (const bool stream : {false, true}) {
    EXPECT_EQ(failure("HTTP/1.1 429 X\r\nContent-Length: 2\r\n\r\n{}", stream), "HTTP 429");
    EXPECT_EQ(failure("HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n", stream), "HTTP 503");
    EXPECT_EQ(failure("", stream), "the connection was lost");
    EXPECT_EQ(failure("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", stream), "an answer cut short, or not HTTP");
  }
  EXPECT_EQ(failure("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", false), "an answer that is no JSON object");
  EXPECT_EQ(failure("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true), "a stream that stopped in the middle");
  EXPECT_EQ(failure(str_cat(kStreamHead, chunk(R"({"error": {}})"), chunk("more")), true), "an error in the stream");

  const auto silent = [](Connection& connection) { connection.wait_until_gone(); };
  EXPECT_EQ(exchanges_with(silent, true, std::chrono::milliseconds(30))[1].failure, "timeout");
}

TEST(OpenAiTargetTest, NobodyThere) {
  EXPECT_EQ(failure_kind(HttpClient("name.invalid", 80, {}).get("/").status()), "cannot connect");
}

}  // namespace
}  // namespace transept
