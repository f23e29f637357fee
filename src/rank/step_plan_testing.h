// For tests: plans that no scheduler made. Usual ones of decoding sequences, and random ones with every field set.
#pragma once

#include <random>

#include "rank/step_plan.h"

namespace transept::testing {

// Each of `num_seqs` requests decodes one token; tables of so many blocks, one spec of each owner.
inline StepPlan decode_plan_of(int32_t num_seqs, int32_t self_blocks, int32_t cross_blocks) {
  StepPlan plan;
  plan.step = 1000;
  int32_t next_block = 0;
  const auto table = [&](int32_t count) {
    BlockTable blocks;
    for (int32_t i = 0; i < count; ++i) blocks.push_back(next_block++);
    return blocks;
  };
  for (int32_t i = 0; i < num_seqs; ++i) {
    SequenceGroupMetadata& group = plan.scheduled.groups.push();
    group.group_id = GroupId(5000 + static_cast<uint64_t>(i));
    SequenceData& data = group.seq_data.push();
    data.seq_id = SeqId(9000 + static_cast<uint64_t>(i));
    data.context_len = 16 * self_blocks - 5;
    data.token_ids = {300 * i + 7};
    data.sampled = true;
    group.sequence_tables.push() = table(self_blocks);
    group.group_tables.push() = table(cross_blocks);
    group.num_cross_tokens = 16 * cross_blocks - 3;
    RowPlan& row = plan.rows.push();
    row.group_idx = i;
    row.position = 40;
    row.edits.banned = {2};
  }
  return plan;
}

// Any values, also those that no engine plans: what a codec must carry.
class RandomPlans final {
 public:
  explicit RandomPlans(uint32_t seed) : random_(seed) {}

  StepPlan next() {
    StepPlan plan;
    plan.step = number();
    fill(plan.scheduled);
    times(4, [&] { fill(plan.rows.push()); });
    times(3, [&] { plan.captures.push_back({any(), any(), any(), any()}); });
    times(3, [&] { plan.encoder_captures.emplace_back(number()); });
    plan.num_long_encode_tasks = static_cast<int64_t>(number());
    return plan;
  }

 private:
  uint32_t bits() { return static_cast<uint32_t>(random_()); }
  // Small ones, large ones, negative ones.
  int32_t any() {
    const uint32_t value = bits();
    return static_cast<int32_t>(value) >> (bits() % 32);
  }
  uint64_t number() {
    const uint64_t high = bits(), low = bits();
    return (high << 32 | low) >> (bits() % 64);
  }
  bool coin() { return bits() % 2 == 0; }
  float real() { return static_cast<float>(any()) / 7; }
  template <typename F>
  void times(uint32_t most, F then) {
    for (uint32_t i = bits() % (most + 1); i > 0; --i) then();
  }
  void fill(std::vector<int32_t>& values) {
    const int32_t most = coin() ? 255 : coin() ? 65535 : -1;
    times(20, [&] { values.push_back(most < 0 ? any() : any() & most); });
  }
  void fill(std::vector<BlockCopy>& copies) {
    times(3, [&] { copies.push_back({any(), any()}); });
  }
  void fill(PlannedEncode& encode) {
    encode.group_id = GroupId(number());
    encode.item = any();
    encode.source = static_cast<RowSource>(bits() % 3);
    fill(encode.token_ids);
    times(2, [&] { encode.features.shape.push_back(static_cast<int64_t>(number())); });
    fill(encode.features.extras);
    encode.features.begin = static_cast<int64_t>(number());
    encode.num_positions = any();
    encode.num_rows = any();
    fill(encode.row_blocks);
    encode.consumers = static_cast<Consumers>(bits() % 256);
    encode.writes = static_cast<Consumers>(bits() % 256);
    times(3, [&] { fill(encode.group_tables.push()); });
    encode.cross = {any(), any(), any()};
    times(3, [&] { fill(encode.item_tables.push()); });
  }
  void fill(SequenceGroupMetadata& group) {
    group.group_id = GroupId(number());
    group.is_prompt = coin();
    times(3, [&] {
      SequenceData& data = group.seq_data.push();
      data.seq_id = SeqId(number());
      data.index = any();
      data.context_len = any();
      fill(data.token_ids);
      data.sampled = coin();
      data.num_drafts = any();
      data.first_logits_row = any();
      fill(data.positions);
      data.position_delta = any();
    });
    times(3, [&] { fill(group.sequence_tables.push()); });
    group.num_cross_tokens = any();
    times(3, [&] { fill(group.group_tables.push()); });
    fill(group.encoder_token_ids);
    times(3, [&] { group.ranges.push_back({any(), any(), any(), static_cast<uint8_t>(bits() % 256)}); });
    times(2, [&] {
      PlannedSplice& splice = group.splices.push();
      splice.first_row = any();
      splice.num_rows = any();
      splice.first_slot = any();
      times(3, [&] { fill(splice.item_tables.push()); });
    });
  }
  void fill(SchedulerOutputs& scheduled) {
    times(4, [&] { fill(scheduled.groups.push()); });
    times(3, [&] { fill(scheduled.encodes.push()); });
    LongEncode& encode = scheduled.long_encode;
    encode.runs = coin();
    encode.begins = coin();
    encode.to_the_end = coin();
    fill(encode.encode);
    fill(scheduled.moves.swap_out);
    fill(scheduled.moves.freed_device);
    fill(scheduled.moves.swap_in);
    fill(scheduled.moves.freed_host);
    fill(scheduled.moves.copy);
    times(3, [&] { scheduled.moves.truncated.push_back({any(), any(), any(), any()}); });
    times(3, [&] { scheduled.finished.emplace_back(number()); });
    times(9, [&] { scheduled.bulk.push_back(real()); });
  }
  void fill(RowPlan& row) {
    row.group_idx = any();
    row.seq_idx = any();
    row.row = any();
    row.sample_idx = any();
    row.target_token = any();
    row.target_vocab = any();
    row.probe = coin();
    row.temperature = real();
    row.top_k = any();
    row.top_p = real();
    row.min_p = real();
    row.seed = number();
    row.position = static_cast<uint32_t>(any());
    row.wants_logprob = coin();
    row.num_logprobs = any();
    row.align = coin();
    row.num_candidates = any();
    RowEdits& edits = row.edits;
    edits.forced_token = any();
    times(2, [&] { edits.biases.push_back({any(), real()}); });
    edits.repetition_penalty = real();
    fill(edits.seen);
    edits.presence_penalty = real();
    edits.frequency_penalty = real();
    times(2, [&] { edits.generated.push_back({any(), any()}); });
    fill(edits.banned);
    times(2, [&] { edits.banned_ranges.push_back({any(), any()}); });
    edits.timestamp_begin = any();
    edits.renormalize = coin();
  }

  std::mt19937 random_;
};

}  // namespace transept::testing
