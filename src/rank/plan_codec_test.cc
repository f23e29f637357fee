// Plans go through bytes and come out equal; bytes that are no plan are refused by the field's name.
#include "rank/plan_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/allocation_count_testing.h"
#include "rank/step_plan_testing.h"

namespace transept {
namespace {

using testing::decode_plan_of;
using ::testing::HasSubstr;

std::vector<std::byte> encoded(const StepPlan& plan) {
  std::vector<std::byte> bytes;
  encode_plan(plan, bytes);
  return bytes;
}

TEST(PlanCodec, AnyPlanComesOutAsItWentIn) {
  testing::RandomPlans plans(1);
  StepPlan decoded;  // used again and again: nothing of the plan before may stay
  for (int i = 0; i < 2000; ++i) {
    const StepPlan plan = plans.next();
    const Status status = decode_plan(encoded(plan), decoded);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(decoded == plan) << i;
  }
}

TEST(PlanCodec, WhatTheEngineCountsForItselfStaysThere) {
  StepPlan plan = decode_plan_of(2, 1, 1), decoded;
  plan.scheduled.num_waiting = plan.scheduled.num_preempted = 7;
  ASSERT_TRUE(decode_plan(encoded(plan), decoded).ok());
  EXPECT_EQ(decoded.scheduled.num_waiting, 0);
  plan.scheduled.num_waiting = plan.scheduled.num_preempted = 0;
  ASSERT_TRUE(decoded == plan);
  plan.scheduled.without_rows = {GroupId(7)};
  ASSERT_TRUE(decode_plan(encoded(plan), decoded).ok());
  EXPECT_TRUE(decoded.scheduled.without_rows.empty());
  plan.scheduled.without_rows.clear();
  EXPECT_TRUE(decoded == plan);
}

TEST(PlanCodec, ASteadyStepAllocatesNothing) {
  const StepPlan plan = decode_plan_of(64, 4, 4);
  std::vector<std::byte> bytes;
  StepPlan decoded;
  encode_plan(plan, bytes);
  ASSERT_TRUE(decode_plan(bytes, decoded).ok());
  const int64_t before = testing::num_allocations();
  encode_plan(plan, bytes);
  EXPECT_TRUE(decode_plan(bytes, decoded).ok());
  EXPECT_EQ(testing::num_allocations(), before);
}

TEST(PlanCodec, AStepOfSixtyFourSequencesIsSmall) {
  EXPECT_LT(encoded(decode_plan_of(64, 4, 4)).size(), size_t{8} << 10);
  EXPECT_LT(encoded(decode_plan_of(64, 14, 94)).size(), size_t{32} << 10) << "windows of Whisper";
}

TEST(PlanCodec, PartsAndRemaindersAreRefused) {
  testing::RandomPlans plans(2);
  StepPlan decoded;
  for (int i = 0; i < 20; ++i) {
    std::vector<std::byte> bytes = encoded(plans.next());
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(decode_plan(std::span(bytes).first(size), decoded).ok()) << size << " of " << bytes.size();
    }
    bytes.push_back(std::byte{0});
    EXPECT_THAT(error_message(decode_plan(bytes, decoded)), HasSubstr("followed by 1 byte"));
  }
}

TEST(PlanCodec, ErrorsNameFieldAndPlace) {
  std::vector<std::byte> bytes = encoded(decode_plan_of(2, 1, 1));
  StepPlan decoded;
  const auto error_of = [&](size_t at, int value) {
    std::vector<std::byte> changed = bytes;
    changed[at] = static_cast<std::byte>(value);
    return error_message(decode_plan(changed, decoded));
  };
  EXPECT_EQ(error_of(0, 'X'), "plan: these bytes are none");
  EXPECT_EQ(error_of(4, 1), "plan: version 1; this build speaks version 7");
  EXPECT_THAT(error_of(7, 0x7F), HasSubstr("groups has more elements than there are bytes for"));
}

TEST(PlanCodec, ASourceOfRowsThatIsUnknownIsRefused) {
  StepPlan plan = decode_plan_of(1, 1, 1), decoded;
  PlannedEncode& encode = plan.scheduled.encodes.push();
  encode.source = RowSource::kInjected;
  EXPECT_TRUE(decode_plan(encoded(plan), decoded).ok());
  encode.source = static_cast<RowSource>(3);
  EXPECT_THAT(error_message(decode_plan(encoded(plan), decoded)), HasSubstr("encode source is unknown"));
}

// A scheduler that knows nothing of injected rows plans encodes, whatever was in the same place the step before.
TEST(StepPlans, AnItemIsEncodedUnlessSomebodySaysOtherwise) {
  SchedulerOutputs scheduled;
  scheduled.encodes.push().source = scheduled.long_encode.encode.source = RowSource::kInjected;
  scheduled.clear();
  EXPECT_EQ(scheduled.encodes.push().source, RowSource::kEncode);
  EXPECT_EQ(scheduled.long_encode.encode.source, RowSource::kEncode);
}

// One byte changed anywhere: refused, or a plan of the same bytes.
TEST(PlanCodec, APlanHasOneForm) {
  testing::RandomPlans plans(3);
  StepPlan decoded;
  for (int i = 0; i < 10; ++i) {
    std::vector<std::byte> bytes = encoded(plans.next());
    for (std::byte& byte : bytes) {
      for (const int bit : {0, 3, 7}) {
        const std::byte before = byte;
        byte ^= std::byte{1} << bit;
        if (decode_plan(bytes, decoded).ok()) {
          ASSERT_EQ(encoded(decoded), bytes);
        }
        byte = before;
      }
    }
  }
}

}  // namespace
}  // namespace transept
