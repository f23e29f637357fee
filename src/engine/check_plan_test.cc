// A sound plan is taken; one that no rank may execute is refused by the field's name.
#include "engine/check_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "base/strings.h"
#include "engine/step_plan_testing.h"

namespace transept {
namespace {

using testing::decode_plan_of;
using ::testing::HasSubstr;

ExecutorInfo limits() {
  ExecutorInfo info;
  info.spec.vocab_size = 1000;
  info.spec.alignment_heads.resize(1);
  info.max_encoder_len = info.max_decoder_len = 64;
  info.max_num_seqs = 3;
  info.max_num_batched_tokens = 4;
  info.max_num_encoder_tokens = 20;
  info.block_size = info.cross_block_size = 16;
  info.num_device_blocks = 8;
  info.num_host_blocks = 4;
  return info;
}

// Group 0 decodes a token, group 1 encodes ids, group 2 media.
StepPlan sound_plan() {
  StepPlan plan = decode_plan_of(3, 1, 1);
  for (size_t i = 0; i < 3; ++i) {
    SequenceGroupMetadata& group = plan.scheduled.groups[i];
    group.seq_data[0].context_len = 3;
    group.seq_data[0].token_ids = {7};
    group.encoder_seq_data.num_tokens = 10;
  }
  EncoderSequenceData& ids = plan.scheduled.groups[1].encoder_seq_data;
  ids.token_ids.assign(10, 5);
  ids.encode_now = true;
  EncoderSequenceData& media = plan.scheduled.groups[2].encoder_seq_data;
  media.features = {.shape = {2, 3}, .begin = 1};
  media.encode_now = true;
  plan.scheduled.bulk.resize(7);
  for (const int32_t i : {1, 2})
    plan.scheduled.encodes.push_back({plan.scheduled.groups[static_cast<size_t>(i)].group_id, i});
  plan.captures.push_back({0, 0, 0, 1});
  plan.scheduled.moves.swap_in = {{3, 7}};
  plan.scheduled.moves.swap_out = {{7, 3}};
  plan.scheduled.moves.copy = {{7, 6}};
  return plan;
}

TEST(CheckPlan, ASoundOneIsTaken) {
  EXPECT_EQ(check_plan(sound_plan(), limits()), ok_status());
  for (const bool is_media : {false, true}) {
    StepPlan plan = sound_plan();
    LongEncode& encode = plan.scheduled.long_encode;
    encode.runs = encode.begins = true;
    encode.input = plan.scheduled.groups[is_media ? 2 : 1].encoder_seq_data;
    encode.cross_block_table = {0};
    EXPECT_EQ(check_plan(plan, limits()), ok_status());
    encode.cross_block_table = {8};
    EXPECT_THAT(error_message(check_plan(plan, limits())), HasSubstr("long_encode cross_block_table"));
  }
}

TEST(CheckPlan, WhatIsNotSoundIsRefusedByItsName) {
  struct Case {
    std::string_view field;
    std::function<void(StepPlan&)> spoil;
  };
  const auto group = [](StepPlan& plan, size_t i) -> SequenceGroupMetadata& { return plan.scheduled.groups[i]; };
  const std::vector<Case> cases = {
      {"swap_in", [](StepPlan& p) { p.scheduled.moves.swap_in[0].src = 4; }},
      {"swap_in", [](StepPlan& p) { p.scheduled.moves.swap_in[0].dst = 8; }},
      {"swap_out", [](StepPlan& p) { p.scheduled.moves.swap_out[0].src = 8; }},
      {"swap_out", [](StepPlan& p) { p.scheduled.moves.swap_out[0].dst = -1; }},
      {"copy", [](StepPlan& p) { p.scheduled.moves.copy[0].dst = 8; }},
      {"freed_device", [](StepPlan& p) { p.scheduled.moves.freed_device = {8}; }},
      {"freed_host", [](StepPlan& p) { p.scheduled.moves.freed_host = {4}; }},
      {"cross_block_table", [&](StepPlan& p) { group(p, 0).cross_block_table = {}; }},
      {"cross_block_table", [&](StepPlan& p) { group(p, 0).cross_block_table = {-1}; }},
      {"block_table", [&](StepPlan& p) { group(p, 0).block_tables[0] = {8}; }},
      {"block_table", [&](StepPlan& p) { group(p, 0).seq_data[0].context_len = 16; }},
      {"block_tables", [&](StepPlan& p) { group(p, 0).block_tables.push(); }},
      {"context_len", [&](StepPlan& p) { group(p, 0).seq_data[0].context_len = -1; }},
      {"token_ids", [&](StepPlan& p) { group(p, 0).seq_data[0].token_ids.clear(); }},
      {"token_ids", [&](StepPlan& p) { group(p, 0).seq_data[0].token_ids = {1000}; }},
      {"token_ids", [&](StepPlan& p) { group(p, 0).seq_data[0].context_len = 64; }},
      {"first_logits_row", [&](StepPlan& p) { group(p, 0).seq_data[0].first_logits_row = 2; }},
      {"groups", [&](StepPlan& p) { p.scheduled.groups.push() = SequenceGroupMetadata(group(p, 0)); }},
      {"groups",
       [&](StepPlan& p) {
         group(p, 0).seq_data[0].token_ids = {1, 1, 1};
       }},
      {"encoder num_tokens", [&](StepPlan& p) { group(p, 0).encoder_seq_data.num_tokens = 65; }},
      {"encoder token_ids", [&](StepPlan& p) { group(p, 1).encoder_seq_data.token_ids[3] = -1; }},
      {"encoder token_ids", [&](StepPlan& p) { group(p, 1).encoder_seq_data.token_ids.pop_back(); }},
      {"shape",
       [&](StepPlan& p) {
         group(p, 2).encoder_seq_data.features.shape = {0, 3};
       }},
      {"shape",
       [&](StepPlan& p) {
         group(p, 2).encoder_seq_data.features.shape = {4, 4};
       }},
      {"shape", [&](StepPlan& p) { group(p, 2).encoder_seq_data.features.shape = {int64_t{1} << 40}; }},
      {"features begin", [&](StepPlan& p) { group(p, 2).encoder_seq_data.features.begin = 2; }},
      {"features begin", [&](StepPlan& p) { group(p, 2).encoder_seq_data.features.begin = -1; }},
      {"encodes", [](StepPlan& p) { p.scheduled.encodes.pop_back(); }},
      {"encodes", [](StepPlan& p) { p.scheduled.encodes[0].group_idx = 3; }},
      {"encodes", [](StepPlan& p) { p.scheduled.encodes[0].group_idx = 0; }},
      {"encodes", [](StepPlan& p) { p.scheduled.encodes[0].group_id = GroupId(1); }},
      {"encodes", [&](StepPlan& p) { group(p, 2).encoder_seq_data.num_tokens = 11; }},
      {"num_long_encode_tasks", [](StepPlan& p) { p.num_long_encode_tasks = 0; }},
      {"rows", [](StepPlan& p) { p.rows[0].group_idx = 3; }},
      {"rows", [](StepPlan& p) { p.rows[0].seq_idx = 1; }},
      {"rows", [](StepPlan& p) { p.rows[1].group_idx = 0, p.rows[0].group_idx = 1; }},
      {"row", [](StepPlan& p) { p.rows[0].row = 1; }},
      {"target_token", [](StepPlan& p) { p.rows[0].target_token = 1000; }},
      {"target_vocab", [](StepPlan& p) { p.rows[0].target_vocab = 1001; }},
      {"num_logprobs", [](StepPlan& p) { p.rows[0].num_logprobs = -2; }},
      {"num_candidates", [](StepPlan& p) { p.rows[0].num_candidates = -1; }},
      {"top_k", [](StepPlan& p) { p.rows[0].top_k = -1; }},
      {"temperature", [](StepPlan& p) { p.rows[0].temperature = -1; }},
      {"temperature", [](StepPlan& p) { p.rows[0].temperature = std::numeric_limits<float>::quiet_NaN(); }},
      {"forced_token", [](StepPlan& p) { p.rows[0].edits.forced_token = 1000; }},
      {"biases",
       [](StepPlan& p) {
         p.rows[0].edits.biases = {{1000, 1.0f}};
       }},
      {"generated",
       [](StepPlan& p) {
         p.rows[0].edits.generated = {{-1, 1}};
       }},
      {"seen", [](StepPlan& p) { p.rows[0].edits.seen = {1000}; }},
      {"banned", [](StepPlan& p) { p.rows[0].edits.banned = {1000}; }},
      {"banned_ranges",
       [](StepPlan& p) {
         p.rows[0].edits.banned_ranges = {{3, 2}};
       }},
      {"captures", [](StepPlan& p) { p.captures[0].row_end = 2; }},
      {"captures", [](StepPlan& p) { p.captures[0].row_begin = 1; }},
      {"captures", [](StepPlan& p) { p.captures[0].group_idx = -1; }},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    StepPlan plan = sound_plan();
    cases[i].spoil(plan);
    const Status status = check_plan(plan, limits());
    EXPECT_FALSE(status.ok()) << i << ": " << cases[i].field;
    EXPECT_THAT(error_message(status), HasSubstr(str_cat("plan: ", cases[i].field, ": "))) << i;
  }
}

TEST(CheckPlan, WithoutAlignmentHeadsThereIsNothingToCapture) {
  ExecutorInfo info = limits();
  info.spec.alignment_heads.clear();
  EXPECT_THAT(error_message(check_plan(sound_plan(), info)), HasSubstr("captures"));
  StepPlan plan = sound_plan();
  plan.captures.clear();
  EXPECT_EQ(check_plan(plan, info), ok_status());
  plan.rows[0].align = true;
  EXPECT_THAT(error_message(check_plan(plan, info)), HasSubstr("align"));
}

}  // namespace
}  // namespace transept
