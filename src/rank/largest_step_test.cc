// Start-up's plans reach the limits of a step: one of them has as many sequences and as many rows as there may be.
#include "rank/largest_step.h"

#include <gtest/gtest.h>

#include "base/system_memory.h"
#include "rank/lengths.h"

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

// One picture may have all rows of a step and few positions, however many sequences may run.
TEST(LargestSteps, WideLayersUseAllRowsOfTheEncoder) {
  InputBatch::Limits limits{.max_num_seqs = 2,
                            .max_num_tokens = 20,
                            .max_num_encoder_tokens = 300,
                            .max_encoder_len = 12,
                            .max_decoder_len = 40,
                            .tables = {{TableOwner::kSequence, 4}, {TableOwner::kGroup, 8}}};
  const auto most_rows = [&](RowSource source) {
    int32_t most = 0;
    for (const StepPlan& plan : largest_steps(limits, Consumers::kCross, source)) {
      int32_t rows = 0;
      for (const PlannedEncode& encode : plan.scheduled.encodes) {
        EXPECT_LE(encode.num_positions, 12);
        EXPECT_GE(encode.num_rows, encode.num_positions);
        rows += encode.num_rows;
      }
      EXPECT_LE(rows, 300);
      most = std::max(most, rows);
    }
    return most;
  };
  EXPECT_EQ(most_rows(RowSource::kEncode), 24);
  limits.has_wide_layers = true;
  EXPECT_EQ(most_rows(RowSource::kEncode), 300);
  EXPECT_EQ(most_rows(RowSource::kResident), 24);  // rows that are there already are positions
  for (const StepPlan& plan : largest_encodes(limits, Consumers::kCross)) {
    int32_t rows = 0;
    for (const PlannedEncode& encode : plan.scheduled.encodes) rows += encode.num_rows;
    EXPECT_EQ(rows, 300);
  }
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

TEST(LargestSteps, HaveItemsOfTheSourceThatIsAsked) {
  const InputBatch::Limits limits{.max_num_seqs = 4,
                                  .max_num_tokens = 30,
                                  .max_num_encoder_tokens = 20,
                                  .max_encoder_len = 12,
                                  .max_decoder_len = 40,
                                  .tables = {{TableOwner::kSequence, 4}, {TableOwner::kGroup, 8}}};
  for (const RowSource source : {RowSource::kEncode, RowSource::kInjected}) {
    int num_items = 0;
    for (const StepPlan& plan : largest_steps(limits, Consumers::kCross, source)) {
      for (const PlannedEncode& encode : plan.scheduled.encodes) {
        EXPECT_EQ(encode.source, source);
        ++num_items;
      }
    }
    EXPECT_GT(num_items, 4);
  }
}

// An encoder's rank decodes nothing: neither rows nor sequences of a decoder limit its items.
TEST(LargestEncodes, UseAllRowsInLongAndInShortItems) {
  const InputBatch::Limits limits{
      .max_num_seqs = 16, .max_num_encoder_tokens = 27, .max_encoder_len = 12, .max_decoder_len = 5};
  std::vector<std::vector<int32_t>> items;
  for (const StepPlan& plan : largest_encodes(limits, Consumers::kCross)) {
    EXPECT_TRUE(plan.scheduled.groups.empty());
    items.emplace_back();
    for (const PlannedEncode& encode : plan.scheduled.encodes) items.back().push_back(encode.num_rows);
  }
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0], (std::vector<int32_t>{12, 12, 3}));
  EXPECT_EQ(items[1], (std::vector<int32_t>{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1}));
}

TEST(KindsOfItems, AreThoseOfOneWidth) {
  ModelSpec spec;
  spec.part = ModelPart::kEncoder;
  spec.d_model = 8;
  const Consumers both = Consumers::kCross | Consumers::kSplice;
  EXPECT_EQ(kinds_of_items(spec), std::vector<Consumers>{Consumers::kCross});
  spec.encoded_for = both;
  EXPECT_EQ(kinds_of_items(spec), (std::vector<Consumers>{Consumers::kCross, Consumers::kSplice, both}));
  spec.encoder_width = 12;
  EXPECT_EQ(kinds_of_items(spec), (std::vector<Consumers>{Consumers::kCross, Consumers::kSplice}));
  spec.part = ModelPart::kWhole;
  EXPECT_EQ(kinds_of_items(spec), std::vector<Consumers>{Consumers::kNone}) << "no KV takes rows";
}

TEST(LongestItems, AreOfTheirKind) {
  ModelSpec spec;
  spec.part = ModelPart::kEncoder;
  const Lengths lengths{.max_encoder_len = 40, .max_decoder_len = 90};
  EXPECT_EQ(longest_item(spec, Consumers::kCross, lengths), 40);
  spec.encoded_for = Consumers::kCross | Consumers::kSplice;
  EXPECT_EQ(longest_item(spec, Consumers::kCross, lengths), 40);
  EXPECT_EQ(longest_item(spec, Consumers::kSplice, lengths), 90) << "within a prompt";
  EXPECT_EQ(longest_item(spec, spec.encoded_for, lengths), 40);
  spec.max_item_rows = 30;
  EXPECT_EQ(longest_item(spec, Consumers::kCross, lengths), 30);
  EXPECT_EQ(longest_item(spec, Consumers::kSplice, lengths), 30);
  spec.max_item_rows = 60;
  EXPECT_EQ(longest_item(spec, Consumers::kCross, lengths), 40);
  EXPECT_EQ(longest_item(spec, Consumers::kSplice, lengths), 60);
  spec.encoded_for = Consumers::kSplice;
  EXPECT_EQ(longest_item(spec, Consumers::kSplice, lengths), 40) << "the limit of an item is within its prompt's";
}

TEST(LargestSteps, OfMoreThanTheMachinesMemoryAreRefused) {
  const uint64_t total = total_memory_bytes();
  EXPECT_TRUE(check_step_memory(total, "8 encoder", "--max-model-len").ok());
  const Status refused = check_step_memory(total + 1, "8 encoder", "--max-model-len");
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_TRUE(error_message(refused).starts_with("a step of 8 encoder tokens wants "));
  EXPECT_TRUE(error_message(refused).ends_with(" of memory that this machine has: lower --max-model-len"));
}

}  // namespace
}  // namespace transept
