// How many processors each replica has: the rules by themselves.
#include "startup/replica_cpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
