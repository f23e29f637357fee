// Proves how sequences are put together for cross-attention.
#include "engine/input_batch.h"

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
  group.encoder_seq_data.num_tokens = static_cast<int32_t>(cross.size()) * 4;
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

}  // namespace
}  // namespace transept
