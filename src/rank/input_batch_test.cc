// Proves how sequences are put together for cross-attention.
#include "rank/input_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

namespace transept {
namespace {

using ::testing::ElementsAre;

// Blocks of four tokens, of every spec.
InputBatch::Limits batch_limits() {
  return {.max_num_seqs = 16,
          .max_num_tokens = 16,
          .max_num_encoder_tokens = 16,
          .max_encoder_len = 16,
          .max_decoder_len = 16,
          .tables = {{TableOwner::kSequence, 4}, {TableOwner::kGroup, 4}}};
}

void add_group(const BlockTable& cross, int32_t num_seqs, StepPlan& plan) {
  SequenceGroupMetadata& group = plan.scheduled.groups.push();
  for (int32_t i = 0; i < num_seqs; ++i) {
    SequenceData& seq = group.seq_data.push();
    seq.token_ids = {7};
    group.sequence_tables.push() = {static_cast<int32_t>(plan.scheduled.groups.size()) * 4 + i};
  }
  if (!cross.empty()) group.group_tables.push() = cross;
  group.num_cross_tokens = static_cast<int32_t>(cross.size()) * 4;
}

// One run of sequences for each cross table, not for each request: neighbours that share theirs read it together.
TEST(InputBatch, NeighboursWithOneCrossTableAreOneRun) {
  InputBatch batch(batch_limits());
  StepPlan plan;
  add_group({50, 51}, 1, plan);
  add_group({50, 51}, 3, plan);
  add_group({50, 51}, 1, plan);
  add_group({60, 61}, 2, plan);
  add_group({}, 1, plan);
  add_group({}, 1, plan);
  add_group({50, 51}, 1, plan);
  batch.build(plan, {});
  const AttentionMetadata& cross = batch.forward().attention[1];
  EXPECT_THAT(cross.group_start_loc, ElementsAre(0, 5, 7, 8, 9, 10));
  EXPECT_THAT(cross.seq_lens, ElementsAre(8, 8, 8, 8, 8, 8, 8, 0, 0, 8));
  EXPECT_EQ(cross.num_seqs, 10);
  EXPECT_EQ(batch.max_cross_len(), 8);
}

// Two specs of sequences, two of groups and one of items, in any order: each attention has the tables, slots and block
// size of its own spec, and the lengths of all.
TEST(InputBatch, EachSpecHasTablesOfItsOwn) {
  InputBatch::Limits several = batch_limits();
  several.tables = {{TableOwner::kGroup, 2},
                    {TableOwner::kSequence, 2},
                    {TableOwner::kItem, 3},
                    {TableOwner::kSequence, 8},
                    {TableOwner::kGroup, 5}};
  InputBatch batch(several);
  StepPlan plan;
  SequenceGroupMetadata& group = plan.scheduled.groups.push();
  for (const int32_t context_len : {0, 9}) {  // tables of the first sequence, then of the second
    SequenceData& seq = group.seq_data.push();
    seq.context_len = context_len;
    seq.token_ids = {7, 8, 9};
  }
  group.sequence_tables.push() = {10, 11};
  group.sequence_tables.push() = {12};
  group.sequence_tables.push() = {20, 21, 22, 23, 24, 25};
  group.sequence_tables.push() = {26, 27};
  group.num_cross_tokens = 6;
  group.group_tables.push() = {30, 31, 32};
  group.group_tables.push() = {33, 34};
  PlannedSplice& splice = group.splices.push();
  splice.first_row = 1;
  splice.num_rows = 2;
  splice.first_slot = 2;
  splice.item_tables.push() = {40, 41};
  SequenceGroupMetadata& alone = plan.scheduled.groups.push();  // crosses nothing
  alone.seq_data.push().token_ids = {7};
  alone.sequence_tables.push() = {13};
  alone.sequence_tables.push() = {14};
  batch.build(plan, {});

  const std::span<const AttentionMetadata> attention = batch.forward().attention;
  ASSERT_EQ(attention.size(), 5u);
  EXPECT_THAT(attention[1].block_tables,
              ElementsAre(10, 11, -1, -1, -1, -1, 20, 21, 22, 23, 24, 25, 13, -1, -1, -1, -1, -1));
  EXPECT_EQ(attention[1].max_blocks_per_seq, 6);
  EXPECT_THAT(attention[1].slot_mapping, ElementsAre(20, 21, 22, 24 * 2 + 1, 25 * 2, 25 * 2 + 1, 26));
  EXPECT_THAT(attention[3].block_tables, ElementsAre(12, -1, 26, 27, 14, -1));
  EXPECT_EQ(attention[3].max_blocks_per_seq, 2);
  EXPECT_THAT(attention[3].slot_mapping, ElementsAre(96, 97, 98, 27 * 8 + 1, 27 * 8 + 2, 27 * 8 + 3, 14 * 8));
  EXPECT_THAT(attention[0].block_tables, ElementsAre(30, 31, 32, 30, 31, 32, -1, -1, -1));
  EXPECT_THAT(attention[4].block_tables, ElementsAre(33, 34, 33, 34, -1, -1));
  for (size_t spec = 0; spec < attention.size(); ++spec) {
    SCOPED_TRACE(spec);
    const AttentionMetadata& metadata = attention[spec];
    if (spec == 2) {
      EXPECT_EQ(metadata.num_seqs, 0);
      continue;
    }
    const bool is_self = spec == 1 || spec == 3;
    EXPECT_EQ(metadata.num_seqs, 3);
    EXPECT_EQ(metadata.max_query_len, 3);
    EXPECT_EQ(metadata.block_size, several.tables[spec].tokens_per_block);
    EXPECT_EQ(metadata.max_kv_len, is_self ? 12 : 6);
    EXPECT_THAT(metadata.query_start_loc, ElementsAre(0, 3, 6, 7));
    if (is_self) {
      EXPECT_THAT(metadata.seq_lens, ElementsAre(3, 12, 1));
      EXPECT_THAT(metadata.context_lens, ElementsAre(0, 9, 0));
    } else {
      EXPECT_THAT(metadata.seq_lens, ElementsAre(6, 6, 0));
      EXPECT_THAT(metadata.group_start_loc, ElementsAre(0, 2, 3));
      EXPECT_TRUE(metadata.slot_mapping.empty() && metadata.context_lens.empty());
    }
  }
  EXPECT_THAT(batch.forward().splices.rows, ElementsAre(1, 2));
  EXPECT_THAT(batch.forward().splices.slots, ElementsAre(40 * 3 + 2, 41 * 3));
  EXPECT_EQ(batch.forward().splices.block_size, 3);
}

// Runs that share one table and not the other stay apart.
TEST(InputBatch, NeighboursThatShareSomeTablesAreTwoRuns) {
  InputBatch::Limits several = batch_limits();
  several.tables.push_back({TableOwner::kGroup, 8});
  InputBatch batch(several);
  StepPlan plan;
  for (const int32_t other : {70, 71, 71}) {
    add_group({50, 51}, 1, plan);
    plan.scheduled.groups.back().group_tables.push() = {other};
  }
  batch.build(plan, {});
  EXPECT_THAT(batch.forward().attention[1].group_start_loc, ElementsAre(0, 1, 3));
  EXPECT_THAT(batch.forward().attention[2].group_start_loc, ElementsAre(0, 1, 3));
}

PlannedEncode& add_encode(int32_t num_positions, Consumers writes, StepPlan& plan) {
  PlannedEncode& encode = plan.scheduled.encodes.push();
  encode.token_ids.assign(static_cast<size_t>(num_positions), 5);
  encode.num_positions = encode.num_rows = num_positions;
  encode.consumers = Consumers::kCross | Consumers::kSplice;
  encode.writes = writes;
  return encode;
}

// Items that are written to tables of the same specs are one batch, and each spec has its slots of them.
TEST(InputBatch, EncodesWriteTheTablesThatAreNotWrittenYet) {
  InputBatch::Limits several = batch_limits();
  several.tables = {
      {TableOwner::kGroup, 2}, {TableOwner::kSequence, 4}, {TableOwner::kGroup, 4}, {TableOwner::kItem, 3}};
  InputBatch batch(several);
  StepPlan plan;
  PlannedEncode& all = add_encode(3, Consumers::kCross | Consumers::kSplice, plan);
  all.cross.begin = 1;
  all.group_tables.push() = {10, 11};
  all.group_tables.push() = {12};
  all.item_tables.push() = {13};
  PlannedEncode& also_all = add_encode(2, Consumers::kCross | Consumers::kSplice, plan);
  also_all.group_tables.push() = {20};
  also_all.group_tables.push() = {21};
  also_all.item_tables.push() = {22};
  PlannedEncode& second = add_encode(2, Consumers::kCross, plan);
  second.group_tables.push();
  second.group_tables.push() = {30};
  batch.build(plan, {});

  ASSERT_EQ(batch.encodes().size(), 2u);
  const EncodeInputs& both = batch.encodes()[0];
  EXPECT_EQ(both.batch().attention.num_seqs, 2);
  ASSERT_EQ(both.table_writes().size(), 4u);
  EXPECT_THAT(both.table_writes()[0].slot_mapping, ElementsAre(21, 22, 23, 40, 41));
  EXPECT_THAT(both.table_writes()[2].slot_mapping, ElementsAre(49, 50, 51, 84, 85));
  EXPECT_THAT(both.table_writes()[3].slot_mapping, ElementsAre(39, 40, 41, 66, 67));
  EXPECT_TRUE(both.table_writes()[1].slot_mapping.empty());
  EXPECT_EQ(both.table_writes()[2].block_size, 4);
  EXPECT_THAT(both.blocks(), ElementsAre(10, 11, 12, 13, 20, 21, 22));
  EXPECT_TRUE(both.writes(TableOwner::kGroup) && both.writes(TableOwner::kItem));
  const EncodeInputs& part = batch.encodes()[1];
  EXPECT_TRUE(part.table_writes()[0].slot_mapping.empty());
  EXPECT_THAT(part.table_writes()[2].slot_mapping, ElementsAre(120, 121));
  EXPECT_THAT(part.blocks(), ElementsAre(30));
  EXPECT_TRUE(part.writes(TableOwner::kGroup) && !part.writes(TableOwner::kItem));
}

// The last positions of an item go behind those of all items of its group: here behind 5 others.
TEST(InputBatch, LastPositionsAreWrittenBehindThoseOfAllItems) {
  InputBatch::Limits several = batch_limits();
  several.tables = {{TableOwner::kSequence, 4}, {TableOwner::kGroup, 4}};
  InputBatch batch(several);
  StepPlan plan;
  PlannedEncode& first = add_encode(3, Consumers::kCross, plan);
  first.cross = {1, 5, 2};
  first.group_tables.push() = {10, 12};
  batch.build(plan, {});
  EXPECT_THAT(batch.encodes()[0].table_writes()[1].slot_mapping, ElementsAre(41, 49, 50));
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
  InputBatch batch(batch_limits());
  StepPlan plan;
  add_group({50}, 1, plan);
  add_group({51}, 1, plan);
  plan.scheduled.groups[1].seq_data[0].token_ids = {7, 8, 9, 7, 8};
  plan.scheduled.groups[1].sequence_tables[0] = {3, 4};
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

// Rows that lie in the pool are read from their slots, in order; a batch has no more of them than an encode has room
// for.
TEST(EncodeBatches, TakeResidentRowsInBatchesThatFit) {
  EncodeBatches batches(
      {.max_num_tokens = 8, .tables = {{TableOwner::kGroup, 4}, {TableOwner::kItem, 3}}, .rows_spec = 1});
  SchedulerOutputs scheduled;
  for (const int32_t count : {5, 3, 4}) {
    PlannedEncode& rows = scheduled.encodes.push();
    rows.group_id = GroupId(static_cast<uint64_t>(count));
    rows.source = RowSource::kResident;
    rows.num_positions = rows.num_rows = count;
    rows.consumers = rows.writes = Consumers::kCross;
    rows.group_tables.push() = {7, 8};
    rows.row_blocks = {count, 9};
  }
  batches.build(scheduled);
  ASSERT_EQ(batches.all().size(), 2u);
  const EncodeInputs& first = batches.all()[0];
  EXPECT_EQ(first.batch().num_tokens(), 8);
  EXPECT_EQ(first.source(), RowSource::kResident);
  EXPECT_TRUE(first.injected_rows().empty());
  const std::vector<int64_t> slots(first.row_slots().begin(), first.row_slots().end());
  EXPECT_EQ(slots, (std::vector<int64_t>{15, 16, 17, 27, 28, 9, 10, 11}));
  const std::vector<int32_t> packed(first.packed_rows().begin(), first.packed_rows().end());
  EXPECT_EQ(packed, (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(batches.all()[1].batch().num_tokens(), 4);
  scheduled.encodes.clear();
  batches.build(scheduled);
  EXPECT_TRUE(batches.all().empty());
}

}  // namespace
}  // namespace transept
