#include "load/answer_reader.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

constexpr Duration kSecond = std::chrono::seconds(1);
const TimePoint kStart{};

// Events as they come, a second apart; what the answer was.
Exchange read(LoadEndpoint endpoint, const std::vector<std::string>& events) {
  AnswerReader reader(endpoint);
  TimePoint now = kStart;
  for (const std::string& event : events) {
    if (!reader.push("data: " + event + "\n\n", now += kSecond)) break;
  }
  Exchange exchange;
  reader.finish(exchange);
  return exchange;
}

TEST(AnswerReaderTest, ACompletionsStream) {
  const Exchange exchange =
      read(LoadEndpoint::kCompletions,
           {R"({"choices": [{"text": "", "index": 0}]})", R"({"choices": [{"text": "a"}]})",
            R"({"choices": [{"text": "b", "finish_reason": "stop"}], "usage": null})",
            R"({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}})", "[DONE]"});
  EXPECT_EQ(exchange.failure, "");
  EXPECT_EQ(exchange.text_times, (std::vector<TimePoint>{kStart + 2 * kSecond, kStart + 3 * kSecond}));
  EXPECT_EQ(exchange.input_tokens, 7);
  EXPECT_EQ(exchange.output_tokens, 3);
}

TEST(AnswerReaderTest, TokensWithoutTextAreTokens) {
  const Exchange exchange =
      read(LoadEndpoint::kCompletions, {R"({"choices": [{"text": ""}]})", R"({"choices": [{"text": ""}]})", "[DONE]"});
  EXPECT_EQ(exchange.text_times, (std::vector<TimePoint>{kStart + kSecond, kStart + 2 * kSecond}));
  EXPECT_EQ(exchange.output_tokens, std::nullopt);
}

TEST(AnswerReaderTest, ATranscriptionsStream) {
  const std::vector<std::string> events = {
      R"({"type": "transcript.text.delta", "delta": "Hello"})", R"({"type": "transcript.text.delta", "delta": " you"})",
      R"({"type": "transcript.text.segment", "text": "Hello you"})",
      R"({"type": "transcript.text.done", "text": "Hello you", "usage": {"type": "tokens", "input_tokens": 50, "output_tokens": 2}})"};
  const Exchange exchange = read(LoadEndpoint::kTranscriptions, events);
  EXPECT_EQ(exchange.failure, "");
  EXPECT_EQ(exchange.text_times.size(), 2u);
  EXPECT_EQ(exchange.input_tokens, 50);
  EXPECT_EQ(exchange.output_tokens, 2);
  const Exchange cut = read(LoadEndpoint::kTranscriptions, {events[0], "[DONE]"});
  EXPECT_EQ(cut.failure, "") << "whoever says that it is done has no other last event";
}

TEST(AnswerReaderTest, StreamsThatFail) {
  const auto failure = [](const std::vector<std::string>& events) {
    return read(LoadEndpoint::kCompletions, events).failure;
  };
  EXPECT_EQ(failure({R"({"choices": [{"text": "a"}]})"}), "a stream that stopped in the middle");
  EXPECT_EQ(failure({}), "a stream that stopped in the middle");
  EXPECT_EQ(failure({R"({"error": {"message": "x"}})", "[DONE]"}), "an error in the stream");
  EXPECT_EQ(failure({R"({"type": "error"})"}), "an error in the stream");
  EXPECT_EQ(failure({"{", "[DONE]"}), "an event that is no JSON object");
  EXPECT_EQ(failure({"[]", "[DONE]"}), "an event that is no JSON object");
}

// What other servers write where a number or a text belongs does no harm.
TEST(AnswerReaderTest, OddMembersArePassedOver) {
  const Exchange exchange =
      read(LoadEndpoint::kCompletions, {R"({"choices": [{"text": 3}, 4], "usage": {"completion_tokens": "many"}})",
                                        R"({"choices": "none", "usage": [1], "error": null})",
                                        R"({"usage": {"completion_tokens": -1}})", "[DONE]"});
  EXPECT_EQ(exchange.failure, "");
  EXPECT_EQ(exchange.output_tokens, std::nullopt);
}

TEST(AnswerReaderTest, WholeAnswers) {
  Exchange exchange;
  AnswerReader::read_whole(R"({"text": "a", "usage": {"type": "duration", "seconds": 2.5}})", exchange);
  EXPECT_EQ(exchange.failure, "");
  EXPECT_EQ(exchange.audio_seconds, 2.5);
  AnswerReader::read_whole("<html>", exchange);
  EXPECT_EQ(exchange.failure, "an answer that is no JSON object");
}

}  // namespace
}  // namespace transept
