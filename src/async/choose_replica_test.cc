// Which replica a request goes to: the rules by themselves.
#include "async/choose_replica.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

size_t chosen(std::vector<ReplicaLoad> replicas, int64_t num_tokens, size_t first = 0) {
  return choose_replica(replicas, num_tokens, first);
}

TEST(ChooseReplica, TheLeastLoadedAndEqualsInTurn) {
  EXPECT_EQ(chosen({{5}}, 10), 0u);
  EXPECT_EQ(chosen({{5}, {4}, {6}}, 10), 1u);
  for (size_t first = 0; first < 6; ++first) EXPECT_EQ(chosen({{3}, {3}, {3}}, 10, first), first % 3);
  EXPECT_EQ(chosen({{3}, {4}, {3}}, 10, 1), 2u);
}

TEST(ChooseReplica, WhoHoldsTheInputIsTakenUnlessItIsMuchBusier) {
  EXPECT_EQ(chosen({{0}, {20, true}}, 10), 1u);
  EXPECT_EQ(chosen({{0}, {21, true}}, 10), 0u);
  EXPECT_EQ(chosen({{100}, {120, true}, {115, true}}, 10), 2u) << "of two that hold it the one with less to do";
  EXPECT_EQ(chosen({{0, true}, {0}}, 10, 1), 0u);
}

// However many ask about one input, every replica is kept at work.
TEST(ChooseReplica, ManyOfTheSameInputAreSpread) {
  std::vector<ReplicaLoad> replicas(4);
  for (int i = 0; i < 100; ++i) {
    ReplicaLoad& taken = replicas[choose_replica(replicas, 10, 0)];
    taken.num_tokens += 10;
    taken.holds_input = true;
  }
  for (const ReplicaLoad& replica : replicas) EXPECT_NEAR(static_cast<double>(replica.num_tokens), 250, 20);
}

TEST(ExpectedTokens, AreTheInputAndAnAnswerOfEverySequence) {
  EncoderDecoderInputs inputs;
  inputs.prompt_token_ids = {2, 0};
  SamplingParams params;
  params.max_tokens = 4;
  EXPECT_EQ(num_expected_tokens(inputs, 10, params), 10 + 2 + 4);
  params.max_tokens = 500;
  EXPECT_EQ(num_expected_tokens(inputs, 10, params), 10 + 2 + 12) << "as long as what it is given";
  params.num_beams = 3;
  EXPECT_EQ(num_expected_tokens(inputs, 10, params), 10 + 3 * (2 + 12));
}

}  // namespace
}  // namespace transept
