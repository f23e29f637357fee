#include "engine/largest_step.h"

#include <algorithm>

#include "base/checked_math.h"

namespace transept {
namespace {

// Tables of these plans point to block 0: nobody reads or writes through them.
BlockTable table(int32_t num_tokens, int32_t block_size) {
  return BlockTable(static_cast<size_t>(ceil_div(num_tokens, block_size)), 0);
}

void add_group(const InputBatch::Limits& limits, int32_t context_len, int32_t num_rows, int32_t num_encoder_tokens,
               bool encode_now, bool all_logits, StepPlan& plan) {
  SequenceGroupMetadata& group = plan.scheduled.groups.push();
  SequenceData& seq = group.seq_data.push();
  seq.context_len = context_len;
  seq.token_ids.assign(static_cast<size_t>(num_rows), 0);
  seq.sampled = true;
  seq.first_logits_row = all_logits ? 0 : num_rows - 1;
  for (int32_t row = seq.first_logits_row; row < num_rows; ++row) {
    RowPlan& planned = plan.rows.push();
    planned.group_idx = static_cast<int32_t>(plan.scheduled.groups.size()) - 1;
    planned.row = row;
  }
  group.block_tables.push() = table(context_len + num_rows, limits.block_size);
  group.cross_block_table = table(num_encoder_tokens, limits.tokens_per_cross_block());
  group.encoder_seq_data.num_tokens = num_encoder_tokens;
  group.encoder_seq_data.encode_now = encode_now;
  if (!encode_now) return;
  group.encoder_seq_data.token_ids.assign(static_cast<size_t>(num_encoder_tokens), 0);
  plan.scheduled.encodes.push_back({GroupId(0), static_cast<int32_t>(plan.scheduled.groups.size()) - 1});
}

// Long prompts until the rows are used up, each with its encode while the encoder budget lasts; those after it read
// cross tables that are there already.
StepPlan prompts(const InputBatch::Limits& limits) {
  StepPlan plan;
  int32_t rows = limits.max_num_tokens, encoder_rows = limits.max_num_encoder_tokens, seqs = limits.max_num_seqs;
  while (seqs > 0 && rows > 0) {
    const int32_t num_rows = std::min(rows, limits.max_decoder_len);
    const int32_t num_encoder = std::min(encoder_rows, limits.max_encoder_len);
    const bool encodes = num_encoder > 0;
    add_group(limits, 0, num_rows, encodes ? num_encoder : limits.max_encoder_len, encodes, true, plan);
    rows -= num_rows;
    encoder_rows -= num_encoder;
    --seqs;
  }
  return plan;
}

// Everybody decodes one row after the longest context.
StepPlan decodes(const InputBatch::Limits& limits) {
  StepPlan plan;
  for (int32_t i = 0; i < limits.max_num_seqs; ++i) {
    add_group(limits, limits.max_decoder_len - 1, 1, limits.max_encoder_len, false, false, plan);
  }
  return plan;
}

// Many short prompts with short encoder inputs: as many sequences as there can be, everywhere.
StepPlan short_prompts(const InputBatch::Limits& limits) {
  StepPlan plan;
  const int32_t rows = std::max(1, std::min(limits.max_num_tokens / limits.max_num_seqs, limits.max_decoder_len));
  const int32_t encoder_rows =
      std::max(1, std::min(limits.max_num_encoder_tokens / limits.max_num_seqs, limits.max_encoder_len));
  for (int32_t i = 0; i < limits.max_num_seqs; ++i) add_group(limits, 0, rows, encoder_rows, true, true, plan);
  return plan;
}

}  // namespace

std::vector<StepPlan> largest_steps(const InputBatch::Limits& limits) {
  std::vector<StepPlan> plans;
  plans.push_back(prompts(limits));
  plans.push_back(decodes(limits));
  plans.push_back(short_prompts(limits));
  return plans;
}

}  // namespace transept
