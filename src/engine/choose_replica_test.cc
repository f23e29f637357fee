// Which replica a request goes to, and how many processors each has: the rules by themselves.
#include "engine/choose_replica.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/replica_cpus.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

std::string refusal(int32_t threads, int32_t replicas, std::string_view affinity, const std::vector<int>& available) {
  const Status status = plan_replica_cpus(threads, replicas, affinity, available).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << affinity;
  return error_message(status);
}

TEST(ReplicaCpus, ThreadsAreTheProcessorsDividedAmongReplicas) {
  const std::vector<int> eight = {0, 1, 2, 3, 4, 5, 6, 7};
  for (const auto& [threads, replicas, each] :
       {std::tuple{0, 1, 8}, {0, 2, 4}, {0, 3, 2}, {0, 8, 1}, {0, 9, 1}, {3, 2, 3}, {16, 1, 16}}) {
    const ReplicaCpus plan = plan_replica_cpus(threads, replicas, "none", eight).value();
    EXPECT_EQ(plan.num_threads, each) << threads << " " << replicas;
    EXPECT_THAT(plan.cpus, IsEmpty());
    EXPECT_THAT(plan.of_replica(replicas - 1), IsEmpty());
  }
  EXPECT_EQ(plan_replica_cpus(0, 1, "none", {}).value().num_threads, 1);
}

TEST(ReplicaCpus, AListIsDealtOutInOrder) {
  const ReplicaCpus plan = plan_replica_cpus(2, 2, "6,1-3,0", {0, 1, 2, 3, 6}).value();
  EXPECT_THAT(plan.of_replica(0), ElementsAre(6, 1));
  EXPECT_THAT(plan.of_replica(1), ElementsAre(2, 3));
  EXPECT_EQ(plan.text(), "6,1 | 2-3");
  EXPECT_EQ(plan_replica_cpus(0, 2, "0-3", {0, 1, 2, 3, 6}).value().num_threads, 2) << "of the list, not of all";
}

TEST(ReplicaCpus, AListThatCannotBeIsRefused) {
  EXPECT_THAT(refusal(0, 1, "0-2", {0, 1, 3}),
              HasSubstr("--cpu-affinity 0-2: this process may not run on processor 2; it has 0-1,3"));
  EXPECT_THAT(refusal(2, 2, "0-2", {0, 1, 2}), HasSubstr("3 processors for 4 threads (--replicas 2, 2 threads each)"));
  EXPECT_THAT(refusal(0, 3, "0-1", {0, 1}), HasSubstr("2 processors for 3 threads"));
  for (const char* text : {"", "all", "Auto", "0;1", "0-"}) {
    EXPECT_THAT(refusal(0, 1, text, {0, 1}), HasSubstr("or auto or none")) << text;
  }
}

TEST(ReplicaCpus, AutoPinsWhereThereAreEnough) {
  const std::vector<int> two = {9998, 9999};  // no machine says anything of these: their order stays
  const ReplicaCpus plan = plan_replica_cpus(1, 2, "auto", two).value();
  EXPECT_THAT(plan.of_replica(0), ElementsAre(9998));
  EXPECT_THAT(plan.of_replica(1), ElementsAre(9999));
  EXPECT_THAT(plan_replica_cpus(2, 2, "auto", two).value().cpus, IsEmpty());
  EXPECT_EQ(plan_replica_cpus(2, 2, "auto", two).value().num_threads, 2);
}

}  // namespace
}  // namespace transept
