// Proves when a sequence ends and where its text is cut.
#include "sampling/stop_checker.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

SamplingParams base_params() {
  SamplingParams params;
  params.max_tokens = 4;
  params.eos_token_ids = {2};
  params.stop_token_ids = {9};
  return params;
}

TEST(StopToken, EndTokenStopsWithoutAReason) {
  const StopDecision decision = check_stop_token(base_params(), 2, 1);
  EXPECT_EQ(decision.reason, FinishReason::kStop);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(decision.stop_reason));
  EXPECT_TRUE(decision.hides_token);
}

TEST(StopToken, StopIdIsTheReasonAndShowsOnRequest) {
  SamplingParams params = base_params();
  EXPECT_EQ(std::get<int32_t>(check_stop_token(params, 9, 1).stop_reason), 9);
  EXPECT_TRUE(check_stop_token(params, 9, 1).hides_token);
  params.include_stop_str_in_output = true;
  EXPECT_FALSE(check_stop_token(params, 9, 1).hides_token);
}

TEST(StopToken, IgnoredEndTokensGoOn) {
  SamplingParams params = base_params();
  params.ignore_eos = true;
  EXPECT_EQ(check_stop_token(params, 2, 1).reason, FinishReason::kNone);
  EXPECT_EQ(check_stop_token(params, 2, 4).reason, FinishReason::kLength);
}

TEST(StopToken, LengthAtMaxTokens) {
  EXPECT_EQ(check_stop_token(base_params(), 5, 3).reason, FinishReason::kNone);
  EXPECT_EQ(check_stop_token(base_params(), 5, 4).reason, FinishReason::kLength);
  EXPECT_EQ(check_stop_token(base_params(), 2, 4).reason, FinishReason::kStop) << "a free end token at the last place";
}

TEST(StopToken, AForcedEndTokenIsTheLengthsDoing) {
  SamplingParams params = base_params();
  params.forced_eos_token_ids = {2};
  EXPECT_EQ(check_stop_token(params, 2, 4).reason, FinishReason::kLength);
  EXPECT_EQ(check_stop_token(params, 2, 3).reason, FinishReason::kStop);
}

TEST(StopString, CutsBeforeItOrRightBehindIt) {
  SamplingParams params = base_params();
  params.stop = {"lo w"};
  StopDecision decision = check_stop_string(params, "hello world", 0, 2);
  EXPECT_EQ(decision.reason, FinishReason::kStop);
  EXPECT_EQ(decision.text_length, 3u);
  EXPECT_EQ(std::get<std::string>(decision.stop_reason), "lo w");
  params.include_stop_str_in_output = true;
  EXPECT_EQ(check_stop_string(params, "hello world", 0, 2).text_length, 7u);
}

TEST(StopString, IsFoundAcrossTheBorderOfTokens) {
  SamplingParams params = base_params();
  params.stop = {"ab"};
  EXPECT_EQ(check_stop_string(params, "xa", 1, 2).reason, FinishReason::kNone);
  EXPECT_EQ(check_stop_string(params, "xab", 2, 3).text_length, 1u);
  EXPECT_EQ(check_stop_string(params, "abxx", 3, 3).reason, FinishReason::kNone)
      << "what ended earlier is not found again";
}

TEST(StopString, TheEarliestPlaceWins) {
  SamplingParams params = base_params();
  params.stop = {"d", "b"};
  const StopDecision decision = check_stop_string(params, "abcd", 0, 1);
  EXPECT_EQ(std::get<std::string>(decision.stop_reason), "b");
}

TEST(StopString, OnlyPastMinTokens) {
  SamplingParams params = base_params();
  params.stop = {"a"};
  params.min_tokens = 2;
  EXPECT_EQ(check_stop_string(params, "a", 0, 2).reason, FinishReason::kNone);
  EXPECT_EQ(check_stop_string(params, "aa", 1, 3).reason, FinishReason::kStop);
}

}  // namespace
}  // namespace transept
