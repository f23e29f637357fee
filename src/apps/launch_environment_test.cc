#include "apps/launch_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace transept {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

StatusOr<std::optional<LaunchEnvironment>> find(const Variables& variables) {
  return find_launcher([&](std::string_view name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    return at == variables.end() ? std::nullopt : std::optional<std::string>(at->second);
  });
}

struct Case {
  Variables variables;
  std::string launcher;
  int32_t size, rank;
  std::string address;
  std::optional<uint16_t> port = std::nullopt;
};

TEST(LaunchEnvironment, EachLauncherSaysItInItsWay) {
  const Case cases[] = {
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29501"}},
       "torchrun",
       2,
       1,
       "10.0.0.1",
       uint16_t{29501}},
      {{{"LWS_GROUP_SIZE", "4"}, {"LWS_WORKER_INDEX", "3"}, {"LWS_LEADER_ADDRESS", "a.b.svc"}},
       "LeaderWorkerSet",
       4,
       3,
       "a.b.svc"},
      {{{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
       "mpirun",
       2,
       0,
       "127.0.0.1"},
      {{{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}},
       "mpirun",
       2,
       0,
       ""},
      {{{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "7"}},
       "mpiexec",
       2,
       1,
       "h",
       uint16_t{7}},
      {{{"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "1"}, {"SLURM_JOB_NODELIST", "n[03-04]"}}, "srun", 2, 1, "n03"},
      // A step may have fewer tasks than its job.
      {{{"SLURM_NTASKS", "8"},
        {"SLURM_STEP_NUM_TASKS", "4"},
        {"SLURM_PROCID", "2"},
        {"SLURM_STEP_NODELIST", "x,y"},
        {"SLURM_JOB_NODELIST", "w,x,y"}},
       "srun",
       4,
       2,
       "x"},
  };
  for (const Case& tested : cases) {
    const StatusOr<std::optional<LaunchEnvironment>> found = find(tested.variables);
    ASSERT_TRUE(found.ok() && found->has_value()) << found.status();
    const LaunchEnvironment& launch = **found;
    EXPECT_EQ(launch.launcher, tested.launcher);
    EXPECT_EQ(launch.size, tested.size);
    EXPECT_EQ(launch.rank, tested.rank);
    EXPECT_EQ(launch.address, tested.address);
    EXPECT_EQ(launch.port, tested.port);
  }
}

TEST(LaunchEnvironment, OneProcessIsNoGroup) {
  for (const Variables& variables : {Variables{},
                                     {{"RANK", "0"}},
                                     {{"RANK", "0"}, {"WORLD_SIZE", "1"}},
                                     {{"SLURM_NTASKS", "4"}},
                                     {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "1"}}}) {
    const StatusOr<std::optional<LaunchEnvironment>> found = find(variables);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_FALSE(found->has_value());
  }
}

TEST(LaunchEnvironment, ErrorsNameTheVariable) {
  const auto error = [](const Variables& variables) { return error_message(find(variables).status()); };
  EXPECT_THAT(error({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), ::testing::HasSubstr("RANK="));
  EXPECT_THAT(error({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}), ::testing::HasSubstr("RANK="));
  EXPECT_THAT(error({{"RANK", "0"}, {"WORLD_SIZE", "two"}}), ::testing::HasSubstr("WORLD_SIZE="));
  EXPECT_THAT(error({{"RANK", "0"}, {"WORLD_SIZE", "2 "}}), ::testing::HasSubstr("WORLD_SIZE="));
  EXPECT_THAT(error({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "65536"}}),
              ::testing::HasSubstr("MASTER_PORT="));
}

TEST(LaunchEnvironment, FirstHostOfSlurmsLists) {
  EXPECT_EQ(first_slurm_host("a"), "a");
  EXPECT_EQ(first_slurm_host("a,b"), "a");
  EXPECT_EQ(first_slurm_host("a,n[1-2]"), "a");
  EXPECT_EQ(first_slurm_host("n[007-009,12],login"), "n007");
  EXPECT_EQ(first_slurm_host("n[4,6]"), "n4");
  EXPECT_EQ(first_slurm_host("r[1-2]n[3-4]-x,b"), "r1n3-x");
  EXPECT_EQ(first_slurm_host("n[1"), "");
  EXPECT_EQ(first_slurm_host(""), "");
}

}  // namespace
}  // namespace transept
