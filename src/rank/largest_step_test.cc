// Start-up's plans reach the limits of a step: one of them has as many sequences and as many rows as there may be.
#include "rank/largest_step.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

TEST(LargestSteps, ShortPromptsUseAllSequencesAndAllRows) {
  const InputBatch::Limits limits{.max_num_seqs = 16,
                                  .max_num_tokens = 20,
                                  .max_num_encoder_tokens = 27,
                                  .max_encoder_len = 12,
                                  .max_decoder_len = 40,
                                  .tables = {{TableOwner::kSequence, 4}, {TableOwner::kGroup, 8}}};
  bool reaches_all = false;
  for (const StepPlan& plan : largest_steps(limits, Consumers::kCross)) {
    int32_t num_rows = 0, num_encoded = 0;
    for (const SequenceGroupMetadata& group : plan.scheduled.groups) {
      num_rows += static_cast<int32_t>(group.seq_data[0].token_ids.size());
    }
    for (const PlannedEncode& encode : plan.scheduled.encodes) num_encoded += encode.num_rows;
    EXPECT_LE(plan.scheduled.groups.size(), 16u);
    EXPECT_LE(num_rows, 20);
    EXPECT_LE(num_encoded, 27);
    reaches_all |= plan.scheduled.groups.size() == 16 && num_rows == 20 && num_encoded == 27;
  }
  EXPECT_TRUE(reaches_all);
}

// Every sequence and group has a table of each of its specs, which holds what is read and written.
TEST(LargestSteps, HaveTablesOfEachSpec) {
  const InputBatch::Limits limits{
      .max_num_seqs = 4,
      .max_num_tokens = 30,
      .max_num_encoder_tokens = 20,
      .max_encoder_len = 12,
      .max_decoder_len = 40,
      .tables = {
          {TableOwner::kSequence, 4}, {TableOwner::kItem, 3}, {TableOwner::kGroup, 8}, {TableOwner::kSequence, 16}}};
  for (const StepPlan& plan : largest_steps(limits, Consumers::kCross | Consumers::kSplice)) {
    for (const SequenceGroupMetadata& group : plan.scheduled.groups) {
      const SequenceData& seq = group.seq_data[0];
      const size_t num_tokens = static_cast<size_t>(seq.context_len) + seq.token_ids.size();
      ASSERT_EQ(group.sequence_tables.size(), 2u);
      EXPECT_EQ(group.sequence_table(0, 0).size(), (num_tokens + 3) / 4);
      EXPECT_EQ(group.sequence_table(0, 1).size(), (num_tokens + 15) / 16);
      ASSERT_EQ(group.group_tables.size(), 1u);
      EXPECT_EQ(group.group_tables[0].size(), (static_cast<size_t>(group.num_cross_tokens) + 7) / 8);
    }
    for (const PlannedEncode& encode : plan.scheduled.encodes) {
      ASSERT_EQ(encode.item_tables.size(), 1u);
      EXPECT_EQ(encode.item_tables[0].size(), (static_cast<size_t>(encode.num_positions) + 2) / 3);
    }
  }
}

}  // namespace
}  // namespace transept
