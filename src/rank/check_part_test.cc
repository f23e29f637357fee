// A rank that has a part of the model refuses what only the other part can do, by the field's name.
#include "rank/check_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::HasSubstr;

StepPlan plan_of(bool has_rows, std::initializer_list<RowSource> sources) {
  StepPlan plan;
  if (has_rows) plan.scheduled.groups.push().seq_data.push().token_ids = {1};
  for (const RowSource source : sources) plan.scheduled.encodes.push().source = source;
  return plan;
}

StepPlan spread_plan(RowSource source, bool begins) {
  StepPlan plan;
  plan.scheduled.long_encode.runs = true;
  plan.scheduled.long_encode.begins = begins;
  plan.scheduled.long_encode.encode.source = source;
  return plan;
}

TEST(CheckPart, AWholeModelDoesAll) {
  EXPECT_TRUE(check_part(plan_of(true, {RowSource::kEncode, RowSource::kInjected}), ModelPart::kWhole).ok());
  EXPECT_TRUE(check_part(spread_plan(RowSource::kEncode, true), ModelPart::kWhole).ok());
}

TEST(CheckPart, ADecodersPartEncodesNothing) {
  const auto check = [](const StepPlan& plan) { return check_part(plan, ModelPart::kDecoder); };
  EXPECT_TRUE(check(plan_of(true, {})).ok());
  EXPECT_TRUE(check(plan_of(true, {RowSource::kInjected, RowSource::kInjected})).ok());
  EXPECT_TRUE(check(spread_plan(RowSource::kInjected, true)).ok());
  EXPECT_TRUE(check(spread_plan(RowSource::kEncode, false)).ok()) << "what goes on says nothing of its item";
  for (const StepPlan& plan :
       {plan_of(true, {RowSource::kInjected, RowSource::kEncode}), spread_plan(RowSource::kEncode, true)}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(check(plan)));
    EXPECT_THAT(error_message(check(plan)), HasSubstr("encodes: an item cannot be encoded without encoder"));
  }
}

TEST(CheckPart, AnEncodersPartDoesNothingElse) {
  const auto error_of = [](const StepPlan& plan) {
    const Status status = check_part(plan, ModelPart::kEncoder);
    EXPECT_TRUE(status.ok() || absl::IsFailedPrecondition(status));
    return error_message(status);
  };
  EXPECT_EQ(error_of(plan_of(false, {})), "");
  EXPECT_EQ(error_of(plan_of(false, {RowSource::kEncode, RowSource::kEncode})), "");
  EXPECT_THAT(error_of(plan_of(true, {})), HasSubstr("groups: rows cannot be decoded by an encoder alone"));
  EXPECT_THAT(error_of(plan_of(false, {RowSource::kEncode, RowSource::kInjected})), HasSubstr("encode source"));
  EXPECT_THAT(error_of(spread_plan(RowSource::kEncode, false)), HasSubstr("long_encode"));
  StepPlan writes = plan_of(false, {RowSource::kEncode});
  writes.scheduled.encodes[0].writes = Consumers::kCross;
  EXPECT_THAT(error_of(writes), HasSubstr("encode writes"));
}

}  // namespace
}  // namespace transept
