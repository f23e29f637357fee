// Proves that pieces put together are the whole, and that exactly what may begin a stop string is held back.
#include "engine/stream_deltas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace transept {
namespace {

// By trying every length.
size_t held_back_plainly(const std::vector<std::string>& stops, const std::string& text) {
  size_t held_back = 0;
  for (const std::string& stop : stops) {
    for (size_t length = 1; length < stop.size() && length <= text.size(); ++length) {
      if (text.ends_with(stop.substr(0, length))) held_back = std::max(held_back, length);
    }
  }
  return held_back;
}

TEST(StopPrefixesTest, HoldsBackWhatMayBeginAStopString) {
  const StopPrefixes stops({"\n\n", "END", "EA"});
  StopPrefixes::Position at;
  EXPECT_EQ(stops.feed(at, "one\n"), 1u);
  EXPECT_EQ(stops.feed(at, "two E"), 1u);
  EXPECT_EQ(stops.feed(at, "N"), 2u);
  EXPECT_EQ(stops.feed(at, "E"), 1u);
  EXPECT_EQ(stops.feed(at, ""), 1u);
  EXPECT_EQ(stops.feed(at, "x"), 0u);
}

TEST(StopPrefixesTest, AgreesWithTryingEveryLength) {
  std::mt19937 random(7);
  const auto letters = [&](size_t max) {
    std::string text(1 + random() % max, 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    const std::vector<std::string> list = {letters(6), letters(9)};
    const StopPrefixes stops(list);
    StopPrefixes::Position at;
    std::string text;
    for (int piece = 0; piece < 12; ++piece) {
      const std::string next = letters(4);
      text += next;
      ASSERT_EQ(stops.feed(at, next), held_back_plainly(list, text)) << text << " | " << list[0] << " | " << list[1];
    }
  }
}

TEST(StopPrefixesTest, ALongStopStringCostsItsLengthOnce) {
  std::string stop(1 << 20, 'a');
  stop += 'b';
  const StopPrefixes stops({stop});
  StopPrefixes::Position at;
  const std::string piece(1 << 10, 'a');
  size_t held_back = 0;
  for (int i = 0; i < (1 << 12); ++i) held_back = stops.feed(at, piece);  // 4 MiB: quadratic time would be minutes
  EXPECT_EQ(held_back, size_t{1} << 20);
  EXPECT_EQ(stops.feed(at, "c"), 0u);
}

CompletionOutput completion(int32_t index, std::string text, std::vector<int32_t> ids) {
  CompletionOutput output;
  output.index = index;
  output.text = std::move(text);
  output.logprobs.emplace();
  for (const int32_t id : ids) output.logprobs->push_back({{id, -0.5f, 1}});
  output.token_ids = std::move(ids);
  return output;
}

TEST(MergeDeltaTest, AppendsPerOutputAndTakesTheRestFromTheLaterPiece) {
  RequestOutput whole;
  whole.request_id = "a";
  whole.outputs = {completion(1, "x", {1, 2})};
  whole.outputs[0].cumulative_logprob = -1;
  RequestOutput last;
  last.request_id = "a";
  last.encoder_prompt_token_ids = {9};
  last.finished = true;
  last.metrics.total_s = 3;
  last.outputs = {completion(0, "new", {5}), completion(1, "y", {3})};
  last.outputs[1].cumulative_logprob = -2;
  last.outputs[1].finish_reason = FinishReason::kStop;
  last.outputs[1].stop_reason = std::string("END");
  merge_delta(whole, std::move(last));

  EXPECT_TRUE(whole.finished);
  EXPECT_EQ(whole.metrics.total_s, 3);
  EXPECT_EQ(whole.encoder_prompt_token_ids, std::vector<int32_t>{9});
  ASSERT_EQ(whole.outputs.size(), 2u);
  EXPECT_EQ(whole.outputs[0].text, "new");
  EXPECT_EQ(whole.outputs[1].text, "xy");
  EXPECT_EQ(whole.outputs[1].token_ids, (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(whole.outputs[1].logprobs->size(), 3u);
  EXPECT_EQ((*whole.outputs[1].logprobs)[2][0].token_id, 3);
  EXPECT_EQ(whole.outputs[1].cumulative_logprob, -2);
  EXPECT_EQ(whole.outputs[1].finish_reason, FinishReason::kStop);
  EXPECT_EQ(std::get<std::string>(whole.outputs[1].stop_reason), "END");
}

TEST(MergeDeltaTest, AnOutputWithoutNewsStaysAsItIs) {
  RequestOutput whole;
  whole.outputs = {completion(0, "done", {1})};
  whole.outputs[0].finish_reason = FinishReason::kStop;
  RequestOutput delta;
  delta.outputs = {completion(1, "more", {2})};
  merge_delta(whole, std::move(delta));
  ASSERT_EQ(whole.outputs.size(), 2u);
  EXPECT_EQ(whole.outputs[0].text, "done");
  EXPECT_EQ(whole.outputs[0].finish_reason, FinishReason::kStop);
}

}  // namespace
}  // namespace transept
