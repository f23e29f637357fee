// What ranks' processes are started with. Real ones: tests/ranks_test.py.
#include "apps/rank_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/engine_flags.h"

namespace transept {
namespace {

TEST(RankProcesses, GetTheFlagsOfTheEngineButForHowTheModelWasFound) {
  const StatusOr<Flags> flags =
      Flags::parse(engine_flags(), {"org/model", "--threads", "3", "--kv-cache-memory=1GiB", "--revision", "v1",
                                    "--tensor-parallel-size", "2", "--log-level", "info", "--quiet", "--watermark=0.5",
                                    "--pipeline-layers", "5,7"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EngineConfig config;
  config.model = "/cache/model";
  config.tensor_parallel_size = 2;
  config.pipeline_parallel_size = 2;
  const std::vector<std::string> arguments = rank_arguments(*flags, config, 1, 77);
  EXPECT_EQ(std::vector<std::string>(arguments.begin(), arguments.begin() + 4),
            (std::vector<std::string>{"transept", "rank", "1", "77"}));
  EXPECT_EQ(std::vector<std::string>(arguments.end() - 2, arguments.end()),
            (std::vector<std::string>{"--", "/cache/model"}));
  EXPECT_THAT(std::vector<std::string>(arguments.begin() + 4, arguments.end() - 2),
              ::testing::UnorderedElementsAre("--threads=3", "--kv-cache-memory=1GiB", "--watermark=0.5",
                                              "--pipeline-layers=5,7", "--tensor-parallel-size=2",
                                              "--pipeline-parallel-size=2", "--nnodes=1", "--log-level=error"));
}

TEST(RankProcesses, OfANodeKnowWhereTheFirstRankIs) {
  const StatusOr<Flags> flags =
      Flags::parse(engine_flags(), {"model", "--nnodes=2", "--group-token-file", "token", "--master-port", "7"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EngineConfig config;
  config.tensor_parallel_size = 4;
  config.num_nodes = 2;
  config.node_rank = 1;
  config.master_addr = "10.0.0.1";  // a launcher's word
  config.master_port = 7;
  const std::vector<std::string> arguments = rank_arguments(*flags, config, 3, 77);
  EXPECT_EQ(arguments[2], "3");
  for (const char* flag : {"--nnodes=2", "--node-rank=1", "--master-addr=10.0.0.1", "--master-port=7",
                           "--tensor-parallel-size=4", "--group-token-file=token"}) {
    EXPECT_THAT(arguments, ::testing::Contains(flag).Times(1));
  }
}

TEST(RankProcesses, OneRankHasNone) {
  const StatusOr<Flags> flags = Flags::parse(engine_flags(), {"model"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  const StatusOr<std::shared_ptr<RankProcesses>> ranks = RankProcesses::start(*flags, {});
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_EQ(*ranks, nullptr);
  EXPECT_EQ(RankProcesses::communicator(*ranks), nullptr);
}

TEST(RankProcesses, RanksSpinWhereEachThreadHasAProcessor) {
  EngineConfig config;
  config.tensor_parallel_size = 2;
  config.threads = 1000;
  EXPECT_FALSE(rank_options(config).spins);
}

}  // namespace
}  // namespace transept
