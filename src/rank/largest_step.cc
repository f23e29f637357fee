#include "rank/largest_step.h"

#include <algorithm>

#include "base/checked_math.h"
#include "base/strings.h"
#include "base/system_memory.h"

namespace transept {
namespace {

class LargestSteps final {
 public:
  LargestSteps(const InputBatch::Limits& limits, Consumers consumers, RowSource source)
      : limits_(limits),
        consumers_(consumers),
        source_(source),
        has_cross_(std::any_of(limits.tables.begin(), limits.tables.end(),
                               [](const TableSpec& spec) { return spec.owner == TableOwner::kGroup; })),
        // What is spliced only fits into a prompt.
        longest_item_(std::min(has(consumers, Consumers::kCross) ? limits.max_encoder_len : limits.max_decoder_len,
                               limits.max_num_encoder_tokens)) {}

  // Long prompts until the rows are used up, each with its encode while the encoder budget lasts; those after it read
  // cross tables that are there already.
  StepPlan prompts() const {
    StepPlan plan;
    int32_t rows = limits_.max_num_tokens, encoder_rows = limits_.max_num_encoder_tokens, seqs = limits_.max_num_seqs;
    while (seqs > 0 && rows > 0) {
      const int32_t num_rows = std::min(rows, limits_.max_decoder_len);
      const int32_t num_encoder = std::min(encoder_rows, longest_item_);
      add_group({0, num_rows, num_encoder, true}, plan);
      rows -= num_rows;
      encoder_rows -= num_encoder;
      --seqs;
    }
    widen(plan);
    return plan;
  }

  // Every sequence decodes one row after the longest context.
  StepPlan decodes() const {
    StepPlan plan;
    for (int32_t i = 0; i < limits_.max_num_seqs; ++i) {
      add_group({limits_.max_decoder_len - 1, 1, 0, false}, plan);
    }
    return plan;
  }

  // Many short prompts with short encoder inputs: as many sequences as there can be, and all rows of the step.
  StepPlan short_prompts() const {
    StepPlan plan;
    for (int32_t i = 0; i < limits_.max_num_seqs; ++i) {
      const int32_t rows = std::min(share(limits_.max_num_tokens, i), limits_.max_decoder_len);
      const int32_t encoder_rows = std::min(share(limits_.max_num_encoder_tokens, i), longest_item_);
      add_group({0, rows, encoder_rows, true}, plan);
    }
    widen(plan);
    return plan;
  }

  StepPlan long_encodes() const {
    StepPlan plan;
    int32_t rows = limits_.max_num_encoder_tokens;
    for (int32_t i = 0; rows > 0 && i < limits_.max_num_seqs; ++i) {
      add_encode(std::min(rows, longest_item_), plan);
      rows -= longest_item_;
    }
    widen(plan);
    return plan;
  }

  StepPlan short_encodes() const {
    StepPlan plan;
    for (int32_t i = 0; i < std::min(limits_.max_num_seqs, limits_.max_num_encoder_tokens); ++i) {
      add_encode(std::min(share(limits_.max_num_encoder_tokens, i), longest_item_), plan);
    }
    widen(plan);
    return plan;
  }

 private:
  struct Group {
    int32_t context_len, num_rows;
    int32_t num_encoder_rows;  // that are encoded; 0: none, and the cross table is the longest
    bool all_logits;
  };

  // Of the i-th of max_num_seqs sequences, at least 1.
  int32_t share(int32_t total, int32_t i) const {
    return std::max(1, total / limits_.max_num_seqs + (i < total % limits_.max_num_seqs ? 1 : 0));
  }

  // A table of each spec of the owner. They point to block 0: nobody reads or writes through them.
  void add_tables(TableOwner owner, int32_t num_tokens, Recycled<BlockTable>& tables) const {
    for (const TableSpec& spec : limits_.tables) {
      if (spec.owner != owner) continue;
      tables.push().assign(static_cast<size_t>(ceil_div(num_tokens, spec.tokens_per_block)), 0);
    }
  }

  void add_group(const Group& wanted, StepPlan& plan) const {
    SequenceGroupMetadata& group = plan.scheduled.groups.push();
    SequenceData& seq = group.seq_data.push();
    seq.context_len = wanted.context_len;
    seq.token_ids.assign(static_cast<size_t>(wanted.num_rows), 0);
    seq.sampled = true;
    seq.first_logits_row = wanted.all_logits ? 0 : wanted.num_rows - 1;
    for (int32_t row = seq.first_logits_row; row < wanted.num_rows; ++row) {
      RowPlan& planned = plan.rows.push();
      planned.group_idx = static_cast<int32_t>(plan.scheduled.groups.size()) - 1;
      planned.row = row;
    }
    add_tables(TableOwner::kSequence, wanted.context_len + wanted.num_rows, group.sequence_tables);
    const bool encodes = wanted.num_encoder_rows > 0 && consumers_ != Consumers::kNone;
    if (has_cross_) {
      const bool is_new = encodes && has(consumers_, Consumers::kCross);
      group.num_cross_tokens = is_new ? wanted.num_encoder_rows : limits_.max_encoder_len;
      add_tables(TableOwner::kGroup, group.num_cross_tokens, group.group_tables);
    }
    if (encodes) add_encode(wanted.num_encoder_rows, plan);
  }

  void add_encode(int32_t num_rows, StepPlan& plan) const {
    PlannedEncode& encode = plan.scheduled.encodes.push();
    encode.source = source_;
    encode.token_ids.assign(static_cast<size_t>(num_rows), 0);
    encode.num_positions = encode.num_rows = num_rows;
    encode.consumers = encode.writes = consumers_;
    if (has(consumers_, Consumers::kCross)) add_tables(TableOwner::kGroup, num_rows, encode.group_tables);
    if (has(consumers_, Consumers::kSplice)) add_tables(TableOwner::kItem, num_rows, encode.item_tables);
  }

  // The rest of the budget goes to one item's widest layer: few positions may have all rows of a step.
  void widen(StepPlan& plan) const {
    if (!limits_.has_wide_layers || source_ != RowSource::kEncode || plan.scheduled.encodes.empty()) return;
    int32_t rest = limits_.max_num_encoder_tokens;
    for (const PlannedEncode& encode : plan.scheduled.encodes) rest -= encode.num_rows;
    if (rest > 0) plan.scheduled.encodes.back().num_rows += rest;
  }

  const InputBatch::Limits& limits_;
  Consumers consumers_;
  RowSource source_;
  bool has_cross_;
  int32_t longest_item_;
};

}  // namespace

std::vector<StepPlan> largest_steps(const InputBatch::Limits& limits, Consumers consumers, RowSource source) {
  const LargestSteps steps(limits, consumers, source);
  std::vector<StepPlan> plans;
  plans.push_back(steps.prompts());
  plans.push_back(steps.decodes());
  plans.push_back(steps.short_prompts());
  return plans;
}

std::vector<StepPlan> largest_encodes(const InputBatch::Limits& limits, Consumers consumers) {
  const LargestSteps steps(limits, consumers, RowSource::kEncode);
  std::vector<StepPlan> plans;
  plans.push_back(steps.long_encodes());
  plans.push_back(steps.short_encodes());
  return plans;
}

Status check_step_memory(uint64_t bytes, std::string_view tokens, std::string_view flags) {
  const uint64_t total = total_memory_bytes();
  if (bytes <= total) return ok_status();
  return resource_exhausted("a step of ", tokens, " tokens wants ", format_bytes(bytes), ", more than the ",
                            format_bytes(total), " of memory that this machine has: lower ", flags);
}

std::vector<Consumers> kinds_of_items(const ModelSpec& spec) {
  const bool crosses = has(spec.consumers(), Consumers::kCross), splices = has(spec.consumers(), Consumers::kSplice);
  std::vector<Consumers> kinds;
  if (crosses) kinds.push_back(Consumers::kCross);
  if (splices) kinds.push_back(Consumers::kSplice);
  if (crosses && splices && spec.has_one_width()) kinds.push_back(Consumers::kCross | Consumers::kSplice);
  if (kinds.empty()) kinds.push_back(Consumers::kNone);
  return kinds;
}

}  // namespace transept
