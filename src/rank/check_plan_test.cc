// A sound plan is taken; one that no rank may execute is refused by the field's name.
#include "rank/check_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "base/strings.h"
#include "rank/step_plan_testing.h"

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
  info.block_size = 16;
  info.spec.kv = {{KvKind::kSelf}, {KvKind::kCross}, {KvKind::kSelf}, {KvKind::kCross}, {KvKind::kEncoderRows}};
  info.tables = {{TableOwner::kSequence, 16},
                 {TableOwner::kGroup, 16},
                 {TableOwner::kSequence, 2},
                 {TableOwner::kGroup, 5},
                 {TableOwner::kItem, 4}};
  info.num_device_blocks = 8;
  info.num_host_blocks = 4;
  return info;
}

// Group 0 decodes a token, group 1 encodes ids, group 2 media, of which it splices a row.
StepPlan sound_plan() {
  StepPlan plan = decode_plan_of(3, 1, 1);
  for (size_t i = 0; i < 3; ++i) {
    SequenceGroupMetadata& group = plan.scheduled.groups[i];
    group.seq_data[0].context_len = 3;
    group.seq_data[0].token_ids = {7};
    group.sequence_tables.push() = {5, 6, 7};
    group.num_cross_tokens = 10;
    group.group_tables.push() = {3, 4};
  }
  PlannedEncode& ids = plan.scheduled.encodes.push();
  ids.token_ids.assign(10, 5);
  ids.num_positions = ids.num_rows = 10;
  ids.consumers = ids.writes = Consumers::kCross;
  ids.group_tables = plan.scheduled.groups[1].group_tables;
  PlannedEncode& media = plan.scheduled.encodes.push();
  media.features.shape = {2, 3};
  media.features.begin = 1;
  media.num_positions = 8;
  media.num_rows = 10;
  media.consumers = media.writes = Consumers::kCross | Consumers::kSplice;
  media.group_tables = plan.scheduled.groups[2].group_tables;
  media.item_tables.push() = {6, 7};
  plan.scheduled.bulk.resize(7);
  PlannedSplice& splice = plan.scheduled.groups[2].splices.push();
  splice.num_rows = 1;
  splice.first_slot = 7;
  splice.item_tables.push() = {6, 7};
  plan.scheduled.groups[2].ranges = {{0, 0, 0, 1}, {3, 2, 10, 0}};
  plan.scheduled.groups[2].seq_data[0].positions = {2};
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
    encode.encode = plan.scheduled.encodes[is_media ? 1 : 0];
    encode.encode.group_tables[0] = {0};
    EXPECT_THAT(error_message(check_plan(plan, limits())), HasSubstr("2 items beside a long encode"));
    encode.to_the_end = true;
    EXPECT_EQ(check_plan(plan, limits()), ok_status());
    encode.to_the_end = false;
    plan.scheduled.encodes.clear();
    EXPECT_EQ(check_plan(plan, limits()), ok_status());
    encode.encode.group_tables[0] = {8};
    EXPECT_THAT(error_message(check_plan(plan, limits())), HasSubstr("encode group_tables"));
  }
}

// Another group wrote the others; a step that writes none is not planned.
TEST(CheckPlan, AnEncodeMayWriteSomeOfTheTables) {
  for (const size_t written : {size_t{0}, size_t{1}}) {
    StepPlan plan = sound_plan();
    Recycled<BlockTable>& tables = plan.scheduled.encodes[0].group_tables;
    tables[written].clear();
    EXPECT_EQ(check_plan(plan, limits()), ok_status());
    tables[1 - written].clear();
    EXPECT_THAT(error_message(check_plan(plan, limits())), HasSubstr("encode group_tables: no table is written"));
  }
}

TEST(CheckPlan, WhatIsNotSoundIsRefusedByItsName) {
  struct Case {
    std::string_view field;
    std::function<void(StepPlan&)> spoil;
  };
  const auto group = [](StepPlan& plan, size_t i) -> SequenceGroupMetadata& { return plan.scheduled.groups[i]; };
  const auto encode = [](StepPlan& plan, size_t i) -> PlannedEncode& { return plan.scheduled.encodes[i]; };
  const std::vector<Case> cases = {
      {"swap_in", [](StepPlan& p) { p.scheduled.moves.swap_in[0].src = 4; }},
      {"swap_in", [](StepPlan& p) { p.scheduled.moves.swap_in[0].dst = 8; }},
      {"swap_out", [](StepPlan& p) { p.scheduled.moves.swap_out[0].src = 8; }},
      {"swap_out", [](StepPlan& p) { p.scheduled.moves.swap_out[0].dst = -1; }},
      {"copy", [](StepPlan& p) { p.scheduled.moves.copy[0].dst = 8; }},
      {"freed_device", [](StepPlan& p) { p.scheduled.moves.freed_device = {8}; }},
      {"freed_host", [](StepPlan& p) { p.scheduled.moves.freed_host = {4}; }},
      {"truncated spec",
       [](StepPlan& p) {
         p.scheduled.moves.truncated = {{-1, 0, 0, 1}};
       }},
      {"truncated spec",
       [](StepPlan& p) {
         p.scheduled.moves.truncated = {{1, 0, 0, 1}};
       }},
      {"truncated spec",
       [](StepPlan& p) {
         p.scheduled.moves.truncated = {{9, 0, 0, 1}};
       }},
      {"truncated block",
       [](StepPlan& p) {
         p.scheduled.moves.truncated = {{0, 8, 0, 1}};
       }},
      {"truncated begin",
       [](StepPlan& p) {
         p.scheduled.moves.truncated = {{0, 0, -1, 1}};
       }},
      {"truncated begin",
       [](StepPlan& p) {
         p.scheduled.moves.truncated = {{0, 0, 1, 1}};
       }},
      {"truncated end",
       [](StepPlan& p) {
         p.scheduled.moves.truncated = {{0, 0, 0, 100}};
       }},
      {"num_drafts", [&](StepPlan& p) { group(p, 0).seq_data[0].num_drafts = -1; }},
      {"num_drafts", [&](StepPlan& p) { group(p, 0).seq_data[0].num_drafts = 2; }},
      {"group_tables", [&](StepPlan& p) { group(p, 0).group_tables[0] = {}; }},
      {"group_tables", [&](StepPlan& p) { group(p, 0).group_tables[0] = {-1}; }},
      {"group_tables", [&](StepPlan& p) { group(p, 0).group_tables[1] = {3}; }},
      {"group_tables",
       [&](StepPlan& p) {
         group(p, 0).group_tables[1] = {3, 8};
       }},
      {"group_tables", [&](StepPlan& p) { group(p, 0).group_tables.pop_back(); }},
      {"group_tables", [&](StepPlan& p) { group(p, 0).group_tables.push() = {1}; }},
      {"group_tables", [&](StepPlan& p) { group(p, 0).num_cross_tokens = 0; }},
      {"sequence_tables", [&](StepPlan& p) { group(p, 0).sequence_tables[0] = {8}; }},
      {"sequence_tables", [&](StepPlan& p) { group(p, 0).sequence_tables[1] = {5}; }},
      {"sequence_tables",
       [&](StepPlan& p) {
         group(p, 0).sequence_tables[1] = {5, -1};
       }},
      {"sequence_tables", [&](StepPlan& p) { group(p, 0).seq_data[0].context_len = 16; }},
      {"sequence_tables", [&](StepPlan& p) { group(p, 0).seq_data[0].context_len = 6; }},
      {"sequence_tables", [&](StepPlan& p) { group(p, 0).sequence_tables.push(); }},
      {"sequence_tables", [&](StepPlan& p) { group(p, 0).sequence_tables.pop_back(); }},
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
      {"num_cross_tokens", [&](StepPlan& p) { group(p, 0).num_cross_tokens = 65; }},
      {"encoder_token_ids", [&](StepPlan& p) { group(p, 0).encoder_token_ids = {1000}; }},
      {"seq_data", [&](StepPlan& p) { group(p, 0).seq_data.clear(), group(p, 0).sequence_tables.clear(); }},
      {"positions",
       [&](StepPlan& p) {
         group(p, 0).seq_data[0].positions = {1, 2};
       }},
      {"positions", [&](StepPlan& p) { group(p, 0).seq_data[0].positions = {64}; }},
      {"positions", [&](StepPlan& p) { group(p, 0).seq_data[0].positions = {-1}; }},
      {"position_delta", [&](StepPlan& p) { group(p, 0).seq_data[0].position_delta = -4; }},
      {"position_delta", [&](StepPlan& p) { group(p, 0).seq_data[0].position_delta = 61; }},
      {"ranges", [&](StepPlan& p) { group(p, 2).ranges[1].first_token = 0; }},
      {"ranges", [&](StepPlan& p) { group(p, 2).ranges[1].key_end = 11; }},
      {"ranges", [&](StepPlan& p) { group(p, 2).ranges[1].key_begin = 11; }},
      {"ranges", [&](StepPlan& p) { group(p, 2).ranges[0].key_begin = -1; }},
      {"splices", [&](StepPlan& p) { group(p, 2).splices[0].first_row = 1; }},
      {"splices", [&](StepPlan& p) { group(p, 2).splices[0].num_rows = 2; }},
      {"splices", [&](StepPlan& p) { group(p, 2).splices[0].num_rows = 0; }},
      {"splices", [&](StepPlan& p) { group(p, 2).splices[0].first_slot = -1; }},
      {"splices", [&](StepPlan& p) { group(p, 2).splices.push() = PlannedSplice(group(p, 2).splices[0]); }},
      {"splice item_tables", [&](StepPlan& p) { group(p, 2).splices[0].first_slot = 8; }},
      {"splice item_tables",
       [&](StepPlan& p) {
         group(p, 2).splices[0].item_tables[0] = {6, 8};
       }},
      {"splice item_tables", [&](StepPlan& p) { group(p, 2).splices[0].item_tables.clear(); }},
      {"encode token_ids", [&](StepPlan& p) { encode(p, 0).token_ids[3] = -1; }},
      {"encode token_ids", [&](StepPlan& p) { encode(p, 0).token_ids.pop_back(); }},
      {"encode num_positions", [&](StepPlan& p) { encode(p, 0).num_positions = 0; }},
      {"encode num_rows", [&](StepPlan& p) { encode(p, 0).num_rows = 9; }},
      {"encode consumers", [&](StepPlan& p) { encode(p, 0).consumers = Consumers::kNone; }},
      {"encode consumers", [&](StepPlan& p) { encode(p, 0).consumers = static_cast<Consumers>(5); }},
      {"encode writes", [&](StepPlan& p) { encode(p, 0).writes = Consumers::kNone; }},
      {"encode writes", [&](StepPlan& p) { encode(p, 0).writes = Consumers::kSplice; }},
      {"encode cross begin", [&](StepPlan& p) { encode(p, 0).cross.begin = -1; }},
      {"encode cross begin", [&](StepPlan& p) { encode(p, 0).cross.begin = 55; }},
      {"encode cross num_last", [&](StepPlan& p) { encode(p, 0).cross.num_last = -1; }},
      {"encode cross num_last", [&](StepPlan& p) { encode(p, 0).cross.num_last = encode(p, 0).num_positions + 1; }},
      {"encode cross last_begin",
       [&](StepPlan& p) {
         encode(p, 0).cross = {0, encode(p, 0).num_positions - 3, 2};
       }},
      {"encode cross last_begin",
       [&](StepPlan& p) {
         encode(p, 0).cross = {0, 63, 2};
       }},
      {"encode group_tables",
       [&](StepPlan& p) {
         encode(p, 0).cross = {0, 12, 2};
       }},
      {"encode group_tables", [&](StepPlan& p) { encode(p, 0).cross.begin = 7; }},
      {"encode group_tables", [&](StepPlan& p) { encode(p, 0).cross.begin = 1; }},
      {"encode group_tables", [&](StepPlan& p) { encode(p, 0).group_tables.clear(); }},
      {"encode group_tables", [&](StepPlan& p) { encode(p, 0).group_tables.pop_back(); }},
      {"encode group_tables", [&](StepPlan& p) { encode(p, 1).writes = Consumers::kSplice; }},
      {"encode item_tables", [&](StepPlan& p) { encode(p, 1).item_tables[0].pop_back(); }},
      {"encode item_tables", [&](StepPlan& p) { encode(p, 1).item_tables[0].clear(); }},
      {"encode item_tables", [&](StepPlan& p) { encode(p, 0).item_tables.push() = {1}; }},
      {"encode item_tables", [&](StepPlan& p) { encode(p, 1).writes = Consumers::kCross; }},
      {"shape",
       [&](StepPlan& p) {
         encode(p, 1).features.shape = {0, 3};
       }},
      {"shape",
       [&](StepPlan& p) {
         encode(p, 1).features.shape = {4, 4};
       }},
      {"shape", [&](StepPlan& p) { encode(p, 1).features.shape = {int64_t{1} << 40}; }},
      {"features begin", [&](StepPlan& p) { encode(p, 1).features.begin = 2; }},
      {"features begin", [&](StepPlan& p) { encode(p, 1).features.begin = -1; }},
      {"encodes", [&](StepPlan& p) { encode(p, 1).num_rows = 11; }},
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

// Rows that were encoded elsewhere, [positions, width], in the place of ids and media.
TEST(CheckPlan, InjectedRowsHaveOneShape) {
  ExecutorInfo info = limits();
  info.spec.d_model = 2;
  StepPlan sound = sound_plan();
  PlannedEncode& rows = sound.scheduled.encodes[0];
  rows.source = RowSource::kInjected;
  rows.token_ids.clear();
  rows.features.shape = {10, 2};
  rows.features.begin = 7;
  sound.scheduled.bulk.resize(27);
  EXPECT_EQ(check_plan(sound, info), ok_status());
  const auto error_of = [&](const std::function<void(PlannedEncode&)>& spoil) {
    StepPlan plan = sound;
    spoil(plan.scheduled.encodes[0]);
    return error_message(check_plan(plan, info));
  };
  EXPECT_THAT(error_of([](PlannedEncode& e) { e.features.shape = {10, 1}; }), HasSubstr("shape: injected rows are"));
  EXPECT_THAT(error_of([](PlannedEncode& e) { e.features.shape = {9, 2}; }), HasSubstr("shape: injected rows are"));
  EXPECT_THAT(error_of([](PlannedEncode& e) { e.features.shape = {10, 2, 1}; }), HasSubstr("shape: injected rows are"));
  EXPECT_THAT(error_of([](PlannedEncode& e) { e.features.clear(); }), HasSubstr("shape: injected rows are"));
  EXPECT_THAT(error_of([](PlannedEncode& e) { e.features.begin = 8; }), HasSubstr("features begin"));
  EXPECT_THAT(error_of([](PlannedEncode& e) { e.features.extras = {1}; }), HasSubstr("extras"));
  EXPECT_THAT(error_of([](PlannedEncode& e) { e.token_ids.assign(10, 5); }), HasSubstr("encode token_ids"));
  EXPECT_THAT(error_of([](PlannedEncode& e) { e.num_rows = 11; }), HasSubstr("encode num_rows"));
  info.spec.encoder_width = 3;  // of what is crossed
  EXPECT_THAT(error_of([](PlannedEncode&) {}), HasSubstr("shape: injected rows are [10, 3]"));
}

// Rows that lie in the pool: the blocks of a table, and nothing else.
TEST(CheckPlan, ResidentRowsAreBlocks) {
  ExecutorInfo info = limits();
  info.spec.part = ModelPart::kDecoder;
  info.spec.d_model = 2;
  info.rows_spec = 4;
  info.max_num_injected_tokens = 19;
  StepPlan sound = sound_plan();
  for (PlannedEncode& rows : sound.scheduled.encodes) {
    rows.source = RowSource::kResident;
    rows.token_ids.clear();
    rows.features.clear();
    rows.num_rows = rows.num_positions;
    rows.row_blocks.assign(static_cast<size_t>((rows.num_positions + 3) / 4), 5);
    rows.consumers = rows.writes = Consumers::kCross;
    rows.group_tables = sound.scheduled.encodes[0].group_tables;
    rows.item_tables.clear();
  }
  sound.scheduled.encodes.pop_back();
  ASSERT_EQ(check_plan(sound, info), ok_status());
  const auto error_of = [&](const std::function<void(PlannedEncode&)>& spoil) {
    StepPlan plan = sound;
    spoil(plan.scheduled.encodes[0]);
    return error_message(check_plan(plan, info));
  };
  const BlockId last = info.num_device_blocks - 1;
  EXPECT_EQ(error_of([&](PlannedEncode& e) { e.row_blocks.back() = last; }), "");
  EXPECT_THAT(error_of([&](PlannedEncode& e) { e.row_blocks.back() = last + 1; }), HasSubstr("encode row_blocks"));
  EXPECT_THAT(error_of([](PlannedEncode& e) { e.row_blocks.back() = -1; }), HasSubstr("encode row_blocks"));
  EXPECT_THAT(error_of([](PlannedEncode& e) { e.row_blocks.pop_back(); }), HasSubstr("encode row_blocks"));
  EXPECT_THAT(error_of([](PlannedEncode& e) { e.row_blocks.push_back(1); }), HasSubstr("encode row_blocks"));
  EXPECT_THAT(error_of([](PlannedEncode& e) { e.token_ids = {1}; }), HasSubstr("encode token_ids"));
  EXPECT_THAT(error_of([](PlannedEncode& e) { e.features.shape = {1}; }), HasSubstr("shape"));
  EXPECT_THAT(error_of([](PlannedEncode& e) { e.features.extras = {1}; }), HasSubstr("extras"));
  EXPECT_THAT(error_of([](PlannedEncode& e) { e.num_rows = 11; }), HasSubstr("encode num_rows"));
  StepPlan in_slices = sound;
  LongEncode& encode = in_slices.scheduled.long_encode;
  encode.runs = encode.begins = true;
  encode.encode = sound.scheduled.encodes[0];
  in_slices.scheduled.encodes.clear();
  EXPECT_EQ(check_plan(in_slices, info), ok_status());
  encode.encode.row_blocks.back() = last + 1;
  EXPECT_THAT(error_message(check_plan(in_slices, info)), HasSubstr("encode row_blocks"));
  info.max_num_injected_tokens = sound.scheduled.encodes[0].num_positions - 1;
  EXPECT_THAT(error_of([](PlannedEncode&) {}), HasSubstr("resident rows"));
  info.rows_spec = -1;
  EXPECT_THAT(error_of([](PlannedEncode&) {}), HasSubstr("encode source: there is no table of rows"));
  StepPlan encodes = sound_plan();
  encodes.scheduled.encodes[0].row_blocks = {1};
  info.spec.part = ModelPart::kWhole;
  EXPECT_THAT(error_message(check_plan(encodes, info)), HasSubstr("encode row_blocks"));
}

TEST(CheckPlan, ADecodersPartTakesRowsAlone) {
  ExecutorInfo info = limits();
  info.spec.part = ModelPart::kDecoder;
  info.spec.d_model = 1;
  EXPECT_THAT(error_message(check_plan(sound_plan(), info)), HasSubstr("plan: encodes"));
  StepPlan plan = sound_plan();
  plan.scheduled.encodes.pop_back();
  PlannedEncode& rows = plan.scheduled.encodes[0];
  rows.source = RowSource::kInjected;
  rows.token_ids.clear();
  rows.features.shape = {10, 1};
  plan.scheduled.bulk.resize(10);
  EXPECT_EQ(check_plan(plan, info), ok_status());
}

TEST(CheckPlan, AnEncodersPartHasNoTables) {
  ExecutorInfo info = limits();
  info.spec.part = ModelPart::kEncoder;
  info.spec.encoded_for = Consumers::kCross | Consumers::kSplice;
  info.spec.kv.clear();
  info.tables.clear();
  info.num_device_blocks = info.num_host_blocks = 0;
  info.max_encoder_len = 10;
  StepPlan sound;
  for (PlannedEncode encode : sound_plan().scheduled.encodes) {
    encode.writes = Consumers::kNone;
    encode.group_tables.clear();
    encode.item_tables.clear();
    sound.scheduled.encodes.push() = encode;
  }
  sound.scheduled.bulk.resize(7);
  EXPECT_EQ(check_plan(sound, info), ok_status());
  const auto error_of = [&](const std::function<void(StepPlan&)>& spoil) {
    StepPlan plan = sound;
    spoil(plan);
    return error_message(check_plan(plan, info));
  };
  EXPECT_THAT(error_of([](StepPlan& p) { p.scheduled.groups = sound_plan().scheduled.groups; }), HasSubstr("groups"));
  EXPECT_THAT(error_of([](StepPlan& p) { p.scheduled.moves.copy = {{0, 0}}; }), HasSubstr("copy"));
  EXPECT_THAT(error_of([](StepPlan& p) { p.scheduled.encodes[0].writes = Consumers::kCross; }), HasSubstr("writes"));
  EXPECT_THAT(error_of([](StepPlan& p) { p.scheduled.encodes[0].item_tables.push() = {0}; }), HasSubstr("item_tables"));
  EXPECT_THAT(error_of([](StepPlan& p) { p.scheduled.encodes[0].group_tables.push() = {}; }),
              HasSubstr("group_tables"));
  EXPECT_THAT(error_of([](StepPlan& p) {
                p.scheduled.encodes.pop_back();
                p.scheduled.encodes[0].num_positions = p.scheduled.encodes[0].num_rows = 11;
                p.scheduled.encodes[0].token_ids.push_back(1);
              }),
              HasSubstr("encode num_positions: 11 positions: expected 1 to 10"));
  info.spec.encoded_for = Consumers::kCross;
  EXPECT_THAT(error_of([](StepPlan&) {}), HasSubstr("encode consumers"));
}

// Of models without the kind of KV.
TEST(CheckPlan, WhatTheModelHasNoPlaceForIsRefused) {
  ExecutorInfo info = limits();
  info.spec.kv.pop_back();
  info.tables.pop_back();
  EXPECT_THAT(error_message(check_plan(sound_plan(), info)), HasSubstr("splices"));
  StepPlan plan = sound_plan();
  plan.scheduled.groups[2].splices.clear();
  EXPECT_THAT(error_message(check_plan(plan, info)), HasSubstr("encode consumers"));
  info.spec.kv = {{KvKind::kSelf}, {KvKind::kSelf}};
  info.tables = {{TableOwner::kSequence, 16}, {TableOwner::kSequence, 2}};
  EXPECT_THAT(error_message(check_plan(sound_plan(), info)), HasSubstr("num_cross_tokens"));
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

// Media among ids: a place for each row that the tower makes, and media alone.
TEST(CheckPlan, MediaAmongIdsHaveTheirPlaces) {
  ExecutorInfo info = limits();
  info.spec.media_token_id = 9;
  info.spec.media_rows = [](std::span<const int64_t> shape) {
    return shape.size() == 2 && shape[0] == 2 ? static_cast<int32_t>(shape[1]) : 0;
  };
  const auto check = [&](std::vector<int32_t> ids, int32_t num_positions, int64_t first_axis = 2) {
    StepPlan plan = sound_plan();
    PlannedEncode& media = plan.scheduled.encodes[1];
    media.features.shape = {first_axis, 3};
    media.token_ids = std::move(ids);
    media.num_positions = num_positions;
    return error_message(check_plan(plan, info));
  };
  EXPECT_EQ(check({9, 9, 9, 5, 6, 7, 8, 1}, 8), "");
  EXPECT_EQ(check({5, 9, 6, 9, 7, 9, 8, 1}, 8), "");
  EXPECT_THAT(check({9, 9, 9, 9, 6, 7, 8, 1}, 8), HasSubstr("encode token_ids: 4 places for the rows of media"));
  EXPECT_THAT(check({9, 9, 1, 5, 6, 7, 8, 1}, 8), HasSubstr("encode token_ids: 2 places for the rows of media"));
  EXPECT_THAT(check({9, 9, 9, 5}, 8), HasSubstr("encode token_ids: 4 ids"));
  EXPECT_THAT(check({9, 9, 9, 5, 6, 7, 8, 1000}, 8), HasSubstr("encode token_ids: 1000 is an id"));
  EXPECT_THAT(check({9, 9, 9, 5, 6, 7, 8, 1}, 8, 1), HasSubstr("shape: the tower takes no such media"));
  EXPECT_THAT(check({}, 8), HasSubstr("encode num_positions: 8 positions of media alone"));
  EXPECT_EQ(check({}, 3), "");
}

}  // namespace
}  // namespace transept
