// The prefix cache: which full blocks of a group's sequences are remembered, and which a new group begins with.
#include <algorithm>

#include "base/check.h"
#include "scheduling/scheduler.h"

namespace transept {
namespace {

// Shorter prompts are not worth a look: a block that is full has to be followed by another.
constexpr int32_t kMinPromptBlocks = 2;

// Of the tokens [begin, end), and of their positions where those are not their places.
ContentDigest next_hash(const SequenceGroup& group, const Sequence& seq, const ContentDigest& before, size_t begin,
                        size_t end) {
  DigestBuilder builder;
  builder.add_bytes(before.bytes);
  builder.add_bytes(std::as_bytes(seq.token_ids().subspan(begin, end - begin)));
  const std::span<const int32_t> positions = group.layout().prompt_positions;
  const auto num_prompt = static_cast<size_t>(seq.num_prompt_tokens());
  if (positions.empty()) return builder.finish();
  for (size_t axis = 0; begin < num_prompt && axis < positions.size(); axis += num_prompt) {
    builder.add_bytes(std::as_bytes(positions.subspan(axis + begin, std::min(end, num_prompt) - begin)));
  }
  if (end > num_prompt) builder.add_number(group.layout().position_delta);
  return builder.finish();
}

// The first row of a prompt that is wanted for itself, and not only for its K and V.
int32_t first_wanted_row(const SequenceGroup& group, const Sequence& seq) {
  const SamplingParams& params = group.params();
  if (params.capture_cross_attention) return 0;
  int32_t first = seq.num_tokens();
  if (params.prompt_logprobs.has_value() || params.score_only) first = seq.num_logits_tokens();
  if (params.probe.has_value()) first = std::min(first, params.probe->prompt_index);
  return first;
}

}  // namespace

int32_t Scheduler::tokens_per_prefix_block() const {
  return blocks_.tokens_per_block(blocks_.specs_of(TableOwner::kSequence).front());
}

bool Scheduler::uses_prefixes(const SequenceGroup& group) const {
  return blocks_.caches_prefixes() && group.prefix_root_.has_value() &&
         group.seqs_.front()->num_prompt_tokens() >= kMinPromptBlocks * tokens_per_prefix_block();
}

// Extends the sequence's hashes to its first num_blocks full blocks. Each is of all before it: the root, then the
// chain.
void Scheduler::hash_blocks(const SequenceGroup& group, Sequence& seq, int32_t num_blocks) const {
  const auto size = static_cast<size_t>(tokens_per_prefix_block());
  for (size_t i = seq.block_hashes().size(); i < static_cast<size_t>(num_blocks); ++i) {
    const ContentDigest& before = i == 0 ? *group.prefix_root_ : seq.block_hashes().back();
    seq.add_block_hash(next_hash(group, seq, before, i * size, (i + 1) * size));
  }
}

// At least one row is computed, and all that are wanted.
void Scheduler::look_for_prefix(SequenceGroup& group, BlockSpaceManager::Request& request) const {
  if (!uses_prefixes(group)) return;
  Sequence& seq = *group.find(request.seq_id);
  const int32_t num_rows = std::min(request.num_tokens - 1, first_wanted_row(group, seq));
  const int32_t num_blocks = std::max(num_rows, 0) / tokens_per_prefix_block();
  hash_blocks(group, seq, num_blocks);
  request.prefix = seq.block_hashes().first(static_cast<size_t>(num_blocks));
}

// Those that were filled by the step that was executed: of tokens that the sequence has, not of drafts of it. Of the
// answers of several sequences at once nothing is remembered: beams change with every step.
void Scheduler::remember_blocks(const SequenceGroup& group, Sequence& seq) {
  const bool is_alone = group.params().num_seqs() == 1;
  int32_t num_tokens = std::min(seq.num_computed_tokens(), seq.num_tokens());
  if (!is_alone) num_tokens = std::min(num_tokens, seq.num_prompt_tokens());
  const int32_t num_full = num_tokens / tokens_per_prefix_block();
  hash_blocks(group, seq, num_full);
  for (int32_t i = seq.num_remembered_blocks(); i < num_full; ++i) {
    blocks_.remember_block(seq.id(), i, seq.block_hashes()[static_cast<size_t>(i)]);
  }
  seq.set_num_remembered_blocks(std::max(num_full, seq.num_remembered_blocks()));
}

// Positions of the items that need no encode, because all their tables are there.
Scheduler::SharedPositions Scheduler::shared_positions(const SequenceGroup& group,
                                                       const BlockSpaceManager::Request& request) const {
  SharedPositions count;
  for (size_t i = 0; i < group.items_.size(); ++i) {
    const Consumers consumers = group.items_[i].consumers;
    const bool crosses = has(consumers, Consumers::kCross) && !shares(request, group_tables(group));
    const bool splices = has(consumers, Consumers::kSplice) && !shares(request, item_tables(group, i));
    if (crosses || splices) continue;
    const int32_t num_positions = group.items_[i].num_positions();
    count.all += num_positions;
    if (group.items_[i].token_ids.empty() && !has(consumers, Consumers::kSplice)) count.media += num_positions;
  }
  return count;
}

}  // namespace transept
