// --epd and --epd-threads make a plan, and flags that the launcher says itself are refused beside them.
#include "apps/epd_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/scoped_variable_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<FlagSpec> table() {
  std::vector<FlagSpec> flags = epd_flags();
  for (const char* name : {"role", "broker", "ec-secret-file", "ec-bulk", "ec-bulk-address", "instance-name", "threads",
                           "replicas", "cpu-affinity"}) {
    flags.push_back({.name = name, .value_name = "VALUE"});
  }
  return flags;
}

StatusOr<std::optional<EpdPlan>> plan_of(const std::vector<std::string>& arguments) {
  return epd_plan(Flags::parse(table(), arguments).value(), {0, 1, 2, 3});
}

std::string error_of(const std::vector<std::string>& arguments) {
  const auto plan = plan_of(arguments);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  return error_message(plan.status());
}

TEST(EpdPlan, WithoutTheFlagThereIsNone) {
  EXPECT_EQ(plan_of({"--threads=3", "--replicas=2"})->has_value(), false);
  EXPECT_EQ(error_of({"--epd-threads=1,1"}), "--epd-threads: goes with --epd alone");
  EXPECT_EQ(error_of({"--epd-broker=redis://h"}), "--epd-broker: goes with --epd alone");
}

TEST(EpdPlan, HasEveryInstance) {
  const EpdPlan plan = plan_of({"--epd", "2E1D", "--epd-threads", "1,2"}).value().value();
  EXPECT_EQ(plan.shape, (EpdShape{2, 1}));
  ASSERT_EQ(plan.instances.size(), 3u);
  EXPECT_EQ(plan.instances[1].name, "e1");
  EXPECT_EQ(plan.instances[1].num_threads, 1);
  EXPECT_EQ(plan.instances[2].num_threads, 2);
  EXPECT_NE(plan.instances[2].cpus, "none");
}

TEST(EpdPlan, ProcessorsMayBeGiven) {
  const EpdPlan listed = plan_of({"--epd=1E1D", "--cpu-affinity=3,2"}).value().value();
  EXPECT_EQ(listed.instances[0].num_threads, 1);
  EXPECT_EQ(listed.instances[0].cpus, "3");
  EXPECT_EQ(listed.instances[1].cpus, "2");
  const EpdPlan unpinned = plan_of({"--epd=1E1D", "--cpu-affinity=none"}).value().value();
  EXPECT_EQ(unpinned.instances[0].num_threads, 2);
  EXPECT_EQ(unpinned.instances[0].cpus, "none");
  EXPECT_THAT(error_of({"--epd=1E1D", "--cpu-affinity=4"}), HasSubstr("--cpu-affinity 4: this process may not run on"));
}

TEST(EpdPlan, SeveralDecodeInstances) {
  const EpdPlan plan = plan_of({"--epd", "1E2D"}).value().value();
  ASSERT_EQ(plan.instances.size(), 3u);
  EXPECT_EQ(plan.instances[1].name, "p0");
  EXPECT_EQ(plan.instances[2].name, "p1");
}

TEST(EpdPlan, WhatTheLauncherSaysItselfIsRefused) {
  for (const char* name : {"role", "broker", "ec-secret-file", "ec-bulk-address", "instance-name", "threads"}) {
    EXPECT_THAT(error_of({"--epd=1E1D", str_cat("--", name, "=1")}),
                HasSubstr(str_cat("--epd 1E1D: --", name, " does not go with it")));
  }
  EXPECT_TRUE(plan_of({"--epd=1E1D", "--threads=0"}).ok()) << "the default";
  EXPECT_THAT(error_of({"--epd=1E1D", "--replicas=2"}), HasSubstr("--replicas 2 does not go with it"));
  EXPECT_TRUE(plan_of({"--epd=1E1D", "--replicas=1"}).ok());
  EXPECT_THAT(error_of({"--epd=1E1D", "--ec-bulk=ucx"}), HasSubstr("--epd 1E1D: --ec-bulk ucx does not go with it"));
  EXPECT_TRUE(plan_of({"--epd=1E1D", "--ec-bulk=zmq"}).ok());
}

TEST(EpdPlan, TheBrokerMayBeARedisServer) {
  EXPECT_EQ(plan_of({"--epd=1E1D"}).value()->redis_url, "");
  EXPECT_EQ(plan_of({"--epd=1E1D", "--epd-broker=redis://u:p@h/2"}).value()->redis_url, "redis://u:p@h/2");
  const std::string error = error_of({"--epd=1E1D", "--epd-broker=http://u:secret@h"});
  EXPECT_THAT(error, HasSubstr("--epd-broker: expected redis://"));
  EXPECT_THAT(error, Not(HasSubstr("secret")));
}

TEST(EpdPlan, ErrorsNameTheVariableThatHasTheValue) {
  const testing::ScopedVariable shape("TRANSEPT_EPD", "0E1D");
  EXPECT_EQ(error_of({}), "TRANSEPT_EPD=0E1D: at least one instance of each is needed");
  const testing::ScopedVariable threads("TRANSEPT_EPD_THREADS", "x");
  EXPECT_THAT(error_of({"--epd=1E1D"}), HasSubstr("TRANSEPT_EPD_THREADS=x: expected threads"));
}

}  // namespace
}  // namespace transept
