// Which threads and processors a rank is told to have.
#include "startup/runner_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RunnerChoices choices_of(int32_t num_threads, std::vector<int> cpus) {
  RunnerChoices choices;
  choices.cpus.num_threads = num_threads;
  choices.cpus.cpus = std::move(cpus);
  return choices;
}

EngineConfig config_of(int32_t ranks_of_stage, int32_t num_stages, int32_t num_nodes = 1, int32_t node = 0) {
  EngineConfig config;
  config.tensor_parallel_size = ranks_of_stage;
  config.pipeline_parallel_size = num_stages;
  config.num_nodes = num_nodes;
  config.node_rank = node;
  return config;
}

TEST(RunnerOptions, AStepAloneHasTheProcessorsOfAllStagesHere) {
  const auto second = runner_options(config_of(1, 3), choices_of(2, {0, 1, 2, 3, 4, 5}), 1);
  EXPECT_EQ(second.num_threads, 2);
  EXPECT_EQ(second.num_threads_alone, 6);
  EXPECT_THAT(second.cpus, ElementsAre(2, 3, 0, 1, 4, 5)) << "its own first";
}

TEST(RunnerOptions, RanksOfAStageShareThemByPlace) {
  // Ranks 0 and 1 are the first stage, 2 and 3 the second.
  const auto last = runner_options(config_of(2, 2), choices_of(1, {4, 5, 6, 7}), 3);
  EXPECT_EQ(last.num_threads_alone, 2);
  EXPECT_THAT(last.cpus, ElementsAre(7, 5));
}

TEST(RunnerOptions, StagesElsewhereGiveNone) {
  const auto of_second_node = runner_options(config_of(1, 4, 2, 1), choices_of(1, {8, 9}), 3);
  EXPECT_EQ(of_second_node.num_threads_alone, 2);
  EXPECT_THAT(of_second_node.cpus, ElementsAre(9, 8));
  const auto of_other_node = runner_options(config_of(2, 2, 2, 1), choices_of(1, {8, 9}), 2);
  EXPECT_EQ(of_other_node.num_threads_alone, 1);
  EXPECT_THAT(of_other_node.cpus, ElementsAre(8));
}

TEST(RunnerOptions, WithoutStagesThereIsNothingToShare) {
  const auto alone = runner_options(config_of(2, 1), choices_of(1, {0, 1}), 1);
  EXPECT_EQ(alone.num_threads_alone, 0);
  EXPECT_THAT(alone.cpus, ElementsAre(1));
}

// Of threads that are not pinned there are no more than processors, unless that many were asked for.
TEST(RunnerOptions, ThreadsThatAreNotPinnedHaveAProcessorEach) {
  const int32_t most = 1000;
  const auto many = runner_options(config_of(1, 2), choices_of(most, {}), 0);
  EXPECT_EQ(many.num_threads_alone, most);
  EXPECT_THAT(many.cpus, IsEmpty());
}

}  // namespace
}  // namespace transept
