#include "scheduling/encoder_scheduler.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class EncoderSchedulerTest : public ::testing::Test {
 protected:
  // An item of `size` ids that begin with `first`; a row of output has ten bytes.
  EncoderItem item(int32_t first, int32_t size) {
    EncoderItem made(std::vector<int32_t>(static_cast<size_t>(size), first));
    made.digest = item_digest(made);
    return made;
  }
  void add(uint64_t id, int32_t first, int32_t size) {
    scheduler_.add(GroupId(id), item(first, size), static_cast<uint64_t>(size) * 10);
  }
  // The items that the step encodes.
  std::vector<uint64_t> schedule() {
    scheduler_.schedule(outputs_);
    std::vector<uint64_t> ids;
    for (const PlannedEncode& encode : outputs_.encodes) ids.push_back(encode.group_id.value());
    return ids;
  }
  // Runs the step that was planned. Returns the items that have rows now.
  std::vector<uint64_t> run() {
    for (const PlannedEncode& encode : outputs_.encodes) {
      const std::vector<std::byte> rows(static_cast<size_t>(encode.num_positions) * 10);
      scheduler_.mark_encoded(encode.group_id, make_ec_rows(rows));
    }
    std::vector<GroupId> ready;
    scheduler_.take_ready(ready);
    std::vector<uint64_t> ids;
    ids.reserve(ready.size());
    for (const GroupId id : ready) ids.push_back(id.value());
    return ids;
  }

  EncoderScheduler scheduler_{{.max_num_encoder_tokens = 10, .max_num_seqs = 4, .max_output_bytes = 300}};
  SchedulerOutputs outputs_;
};

TEST_F(EncoderSchedulerTest, TakesWholeItemsInOrderWhileTheBudgetLasts) {
  add(1, 1, 4);
  add(2, 2, 4);
  add(3, 3, 4);
  add(4, 4, 1);
  EXPECT_THAT(schedule(), ElementsAre(1, 2)) << "3 does not fit, and 4 does not overtake it";
  EXPECT_EQ(outputs_.num_encoder_tokens, 8);
  EXPECT_EQ(outputs_.num_waiting, 2);
  EXPECT_THAT(outputs_.encodes[1].token_ids, ElementsAre(2, 2, 2, 2));
  EXPECT_EQ(outputs_.encodes[1].writes, Consumers::kNone);
  EXPECT_TRUE(outputs_.groups.empty());
  EXPECT_THAT(run(), ElementsAre(1, 2));
  EXPECT_THAT(schedule(), ElementsAre(3, 4));
  EXPECT_THAT(run(), ElementsAre(3, 4));
  EXPECT_THAT(schedule(), IsEmpty());
}

TEST_F(EncoderSchedulerTest, ManyArrivalsMakeBatchesAsLargeAsTheBudget) {
  for (uint64_t i = 1; i <= 9; ++i) add(i, static_cast<int32_t>(i), 2);
  EXPECT_EQ(schedule().size(), 4u) << "as many items as a step may have";
  run();
  EXPECT_EQ(schedule().size(), 4u);
  run();
  EXPECT_EQ(schedule().size(), 1u);
}

TEST_F(EncoderSchedulerTest, EncodesEqualItemsOnce) {
  add(1, 7, 3);
  add(2, 7, 3);
  add(3, 8, 3);
  EXPECT_THAT(schedule(), ElementsAre(1, 3));
  EXPECT_THAT(run(), ElementsAre(1, 2, 3));
  EXPECT_NE(scheduler_.rows_of(GroupId(2)), nullptr);
  EXPECT_EQ(scheduler_.rows_of(GroupId(1)), scheduler_.rows_of(GroupId(2)));
  add(4, 8, 3);
  EXPECT_THAT(schedule(), IsEmpty());
  EXPECT_THAT(run(), ElementsAre(4)) << "it is here";
  EXPECT_EQ(scheduler_.num_hits(), 2);
}

TEST_F(EncoderSchedulerTest, KeepsOutputsUntilRoomIsWanted) {
  add(1, 1, 10);
  schedule();
  run();
  scheduler_.remove(GroupId(1));
  EXPECT_EQ(scheduler_.rows_of(GroupId(1)), nullptr);
  add(2, 1, 10);
  EXPECT_THAT(schedule(), IsEmpty()) << "the output has stayed";
  EXPECT_THAT(run(), ElementsAre(2));
  scheduler_.remove(GroupId(2));
  for (uint64_t id = 3; id < 6; ++id) {
    add(id, static_cast<int32_t>(id), 10);
    schedule();
    run();
  }
  EXPECT_EQ(scheduler_.outputs().used_bytes(), 300u);
  scheduler_.remove(GroupId(4));
  add(6, 1, 10);
  EXPECT_THAT(schedule(), ElementsAre(6)) << "it had to go";
}

TEST_F(EncoderSchedulerTest, EncodesNothingWhileItsOutputsFillTheRoom) {
  for (uint64_t id = 1; id <= 4; ++id) add(id, static_cast<int32_t>(id), 9);
  for (uint64_t id = 1; id <= 3; ++id) {
    EXPECT_THAT(schedule(), ElementsAre(id));
    run();
  }
  EXPECT_THAT(schedule(), IsEmpty());
  EXPECT_EQ(outputs_.num_waiting, 1);
  add(5, 1, 9);
  EXPECT_THAT(schedule(), IsEmpty()) << "not even a hit overtakes";
  EXPECT_THAT(run(), IsEmpty());
  scheduler_.remove(GroupId(2));
  EXPECT_THAT(schedule(), ElementsAre(4));
  EXPECT_THAT(run(), ElementsAre(4, 5));
}

TEST_F(EncoderSchedulerTest, WhatIsNoLongerWantedIsNotEncoded) {
  add(1, 1, 5);
  add(2, 2, 5);
  scheduler_.remove(GroupId(1));
  scheduler_.remove(GroupId(1));
  scheduler_.remove(GroupId(77));
  EXPECT_THAT(schedule(), ElementsAre(2));
  run();
  scheduler_.remove(GroupId(2));
  EXPECT_EQ(scheduler_.num_items(), 0u);
  EXPECT_EQ(scheduler_.outputs().used_bytes(), 0u);
}

TEST_F(EncoderSchedulerTest, RefusesWhatNeverFitsWithBothNumbers) {
  const auto refused = [&](const EncoderItem& item, uint64_t num_bytes) {
    return error_message(scheduler_.check(item, num_bytes));
  };
  EXPECT_TRUE(scheduler_.check(item(1, 10), 300).ok());
  EXPECT_THAT(refused(item(1, 11), 1), AllOf(HasSubstr("11"), HasSubstr("10")));
  EXPECT_THAT(refused(item(1, 10), 301), AllOf(HasSubstr("301"), HasSubstr("300"), HasSubstr("--ec-buffer-memory")));
  EXPECT_THAT(refused(EncoderItem(), 1), HasSubstr("no rows"));
}

TEST_F(EncoderSchedulerTest, PutsMediaIntoTheBulk) {
  for (uint64_t id = 1; id <= 2; ++id) {
    auto features = std::make_shared<EncoderFeatures>();
    features->shape = {2, 3};
    features->values.assign(6, static_cast<float>(id));
    features->num_positions = 2;
    EncoderItem media({}, features);
    media.digest = item_digest(media);
    scheduler_.add(GroupId(id), media, 20);
  }
  schedule();
  EXPECT_EQ(outputs_.encodes[1].features.begin, 6);
  EXPECT_EQ(outputs_.encodes[1].features.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_THAT(outputs_.bulk, ElementsAre(1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2));
}

}  // namespace
}  // namespace transept
