// Proves how sequences are put together for cross-attention.
#include "rank/input_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::ElementsAre;

void add_group(const BlockTable& cross, int32_t num_seqs, StepPlan& plan) {
  SequenceGroupMetadata& group = plan.scheduled.groups.push();
  for (int32_t i = 0; i < num_seqs; ++i) {
    SequenceData& seq = group.seq_data.push();
    seq.token_ids = {7};
    group.block_tables.push() = {static_cast<int32_t>(plan.scheduled.groups.size()) * 4 + i};
  }
  group.cross_block_table = cross;
  group.num_cross_tokens = static_cast<int32_t>(cross.size()) * 4;
}

// One run of sequences for each cross table, not for each request: neighbours that share theirs read it together.
TEST(InputBatch, NeighboursWithOneCrossTableAreOneRun) {
  InputBatch batch({.max_num_seqs = 16,
                    .max_num_tokens = 16,
                    .max_num_encoder_tokens = 16,
                    .max_encoder_len = 16,
                    .max_decoder_len = 16,
                    .block_size = 4});
  StepPlan plan;
  add_group({50, 51}, 1, plan);
  add_group({50, 51}, 3, plan);
  add_group({50, 51}, 1, plan);
  add_group({60, 61}, 2, plan);
  add_group({}, 1, plan);
  add_group({}, 1, plan);
  add_group({50, 51}, 1, plan);
  batch.build(plan, {});
  EXPECT_THAT(batch.forward().cross.group_start_loc, ElementsAre(0, 5, 7, 8, 9, 10));
  EXPECT_THAT(batch.forward().cross.seq_lens, ElementsAre(8, 8, 8, 8, 8, 8, 8, 0, 0, 8));
  EXPECT_EQ(batch.forward().cross.num_seqs, 10);
}

RowPlan& push(int32_t group_idx, int32_t row, StepPlan& plan) {
  RowPlan& planned = plan.rows.push();
  planned.group_idx = group_idx;
  planned.row = row;
  return planned;
}

// A probe and a sample cost two rows of the output layer, however long the prompt is; several samples of one row cost
// one.
TEST(InputBatch, LogitsAreOfTheRowsThatArePlannedAlone) {
  InputBatch batch({.max_num_seqs = 16,
                    .max_num_tokens = 16,
                    .max_num_encoder_tokens = 16,
                    .max_encoder_len = 16,
                    .max_decoder_len = 16,
                    .block_size = 4});
  StepPlan plan;
  add_group({50}, 1, plan);
  add_group({51}, 1, plan);
  plan.scheduled.groups[1].seq_data[0].token_ids = {7, 8, 9, 7, 8};
  plan.scheduled.groups[1].block_tables[0] = {3, 4};
  push(1, 1, plan).target_token = 5;
  push(1, 4, plan);
  push(1, 4, plan).sample_idx = 1;
  plan.captures = {{.group_idx = 1, .seq_idx = 0, .row_begin = 2, .row_end = 4}};
  batch.build(plan, {});
  EXPECT_THAT(batch.forward().logits_rows, ElementsAre(2, 5));  // the first group's only row comes before
  ASSERT_EQ(batch.row_requests().size(), 3u);
  EXPECT_EQ(batch.row_requests()[0].hidden_row, 0);
  EXPECT_EQ(batch.row_requests()[1].hidden_row, 1);
  EXPECT_EQ(batch.row_requests()[2].hidden_row, 1);
  EXPECT_EQ(batch.first_row(1, 0), 1);
  EXPECT_EQ(batch.num_captured_rows(), 2);
  EXPECT_THAT(batch.capture_rows(), ElementsAre(-1, -1, -1, 0, 1, -1));
  plan.captures.clear();
  plan.rows.clear();
  batch.build(plan, {});
  EXPECT_TRUE(batch.forward().logits_rows.empty());
  EXPECT_EQ(batch.num_captured_rows(), 0);
}

}  // namespace
}  // namespace transept
