// Steps that are filled with rows: to which number, and that nothing comes of these.
#include "rank/row_buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/rows.h"
#include "rank/input_batch.h"

namespace transept {
namespace {

using ::testing::ElementsAre;

TEST(RowBuckets, FewNumbersOfRows) {
  EXPECT_EQ(bucket_of_rows(0, 2048), 0);
  for (int32_t rows = 1; rows <= kMostRowsOfBucket; ++rows) {
    const int32_t bucket = bucket_of_rows(rows, 2048);
    EXPECT_GE(bucket, rows);
    EXPECT_LT(bucket, std::max(2 * rows, rows + 64)) << rows;
    EXPECT_EQ(bucket_of_rows(bucket, 2048), bucket);
    EXPECT_TRUE(bucket % 64 == 0 || (bucket < 64 && (bucket & (bucket - 1)) == 0)) << bucket;
  }
  EXPECT_EQ(bucket_of_rows(33, 2048), 64);
  EXPECT_EQ(bucket_of_rows(65, 2048), 128);
  EXPECT_EQ(bucket_of_rows(5, 6), 6) << "no more than a step has";
  EXPECT_EQ(bucket_of_rows(kMostRowsOfBucket + 1, 2048), kMostRowsOfBucket + 1);
}

InputBatch::Limits limits(bool fills_rows) {
  return {.max_num_seqs = 16,
          .max_num_tokens = 16,
          .max_num_encoder_tokens = 16,
          .max_encoder_len = 16,
          .max_decoder_len = 16,
          .tables = {{TableOwner::kSequence, 4}, {TableOwner::kGroup, 4}},
          .position_axes = 2,
          .fills_rows = fills_rows};
}

// A sequence of `context` tokens and one new one.
SequenceGroupMetadata& add_group(int32_t context, StepPlan& plan) {
  SequenceGroupMetadata& group = plan.scheduled.groups.push();
  SequenceData& seq = group.seq_data.push();
  seq.token_ids = {7};
  seq.context_len = context;
  group.sequence_tables.push() = {20, 21, 22, 23};
  group.group_tables.push() = {50, 51};
  group.num_cross_tokens = 8;
  RowPlan& row = plan.rows.push();
  row.group_idx = static_cast<int32_t>(plan.scheduled.groups.size()) - 1;
  return group;
}

TEST(RowBuckets, RowsThatFillHaveNoPlaceAndSeeNothing) {
  InputBatch batch(limits(true));
  StepPlan plan;
  for (const int32_t context : {0, 5, 9}) add_group(context, plan);
  batch.build(plan, {});
  EXPECT_TRUE(batch.may_come_again());
  const ForwardBatch& forward = batch.forward();
  EXPECT_THAT(forward.input_ids, ElementsAre(7, 7, 7, 0));
  EXPECT_THAT(forward.positions, ElementsAre(0, 5, 9, 0, 0, 5, 9, 0));
  EXPECT_THAT(forward.logits_rows, ElementsAre(0, 1, 2, kNoRow));
  EXPECT_EQ(batch.row_requests().size(), 3u) << "what is asked for is asked for once";
  const AttentionMetadata &self = forward.attention[0], &cross = forward.attention[1];
  EXPECT_THAT(self.slot_mapping, ElementsAre(80, 85, 89, kNoSlot));
  EXPECT_THAT(self.seq_lens, ElementsAre(1, 6, 10, 0));
  EXPECT_THAT(self.query_start_loc, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(self.num_seqs, 4);
  EXPECT_EQ(self.max_kv_len, 10);
  EXPECT_EQ(self.block_tables.size(), 16u);
  EXPECT_EQ(self.block_tables[12], -1);
  EXPECT_THAT(cross.seq_lens, ElementsAre(8, 8, 8, 0));
  EXPECT_THAT(cross.group_start_loc, ElementsAre(0, 3, 4));
}

TEST(RowBuckets, StepsOfOneBucketHaveOneShape) {
  InputBatch batch(limits(true));
  for (int32_t num_rows = 9; num_rows <= 16; ++num_rows) {
    StepPlan plan;
    for (int32_t i = 0; i < num_rows; ++i) add_group(i, plan);
    batch.build(plan, {});
    EXPECT_EQ(batch.forward().num_tokens(), 16);
    EXPECT_EQ(batch.forward().logits_rows.size(), 16u);
    EXPECT_EQ(batch.forward().positions.size(), 32u);
  }
}

TEST(RowBuckets, NothingIsFilledUnasked) {
  InputBatch batch(limits(false));
  StepPlan plan;
  for (int32_t i = 0; i < 3; ++i) add_group(i, plan);
  batch.build(plan, {});
  EXPECT_FALSE(batch.may_come_again());
  EXPECT_EQ(batch.forward().num_tokens(), 3);
  EXPECT_EQ(batch.forward().logits_rows.size(), 3u);
}

TEST(RowBuckets, StepsOfRowsOfTheirOwnDoNotComeAgain) {
  InputBatch batch(limits(true));
  StepPlan ranged;
  add_group(0, ranged).ranges.push_back({0, 0, 4, 0});
  add_group(1, ranged);
  add_group(2, ranged);
  batch.build(ranged, {});
  EXPECT_FALSE(batch.may_come_again());
  EXPECT_EQ(batch.forward().num_tokens(), 3) << "each row has keys of its own";
  StepPlan captured;
  for (int32_t i = 0; i < 3; ++i) add_group(i, captured);
  captured.rows[1].align = true;
  batch.build(captured, {});
  EXPECT_FALSE(batch.may_come_again());
  EXPECT_EQ(batch.capture_rows().size(), 4u);
}

}  // namespace
}  // namespace transept
