// One sequence of tokens: a decoder prompt and the tokens generated after it. Owned by its SequenceGroup. Not
// thread-safe (engine thread).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/content_digest.h"
#include "base/ids.h"
#include "core/request_output.h"

namespace transept {

class Sequence final {
 public:
  Sequence(SeqId id, std::span<const int32_t> prompt_token_ids);

  // Becomes a copy of `parent` with its own id and index, and reserves as much memory. `child_index` selects its random
  // numbers.
  void become_fork_of(const Sequence& parent, SeqId child_id, int32_t child_index);

  SeqId id() const { return id_; }
  // 0 for the first sequence of a group, then counting forks. Sampling is keyed by (request seed, index, position).
  int32_t index() const { return index_; }

  int32_t num_tokens() const { return static_cast<int32_t>(token_ids_.size()); }
  int32_t num_prompt_tokens() const { return num_prompt_tokens_; }
  int32_t num_output_tokens() const { return num_tokens() - num_prompt_tokens_; }
  std::span<const int32_t> token_ids() const { return token_ids_; }
  std::span<const int32_t> prompt_token_ids() const {
    return token_ids().first(static_cast<size_t>(num_prompt_tokens_));
  }
  std::span<const int32_t> output_token_ids() const {
    return token_ids().subspan(static_cast<size_t>(num_prompt_tokens_));
  }

  // REQUIRES: it is not finished.
  void append_token(int32_t token_id, double logprob = 0);
  double cumulative_logprob() const { return cumulative_logprob_; }

  // Tokens whose K and V are in the cache. The scheduler sets it; 0 again after a preemption by recompute.
  int32_t num_computed_tokens() const { return num_computed_tokens_; }
  // REQUIRES: 0 <= count <= num_tokens().
  void set_num_computed_tokens(int32_t count);
  // Positions whose logits were returned already, so that a recompute does not request them again.
  int32_t num_logits_tokens() const { return num_logits_tokens_; }
  void set_num_logits_tokens(int32_t count) { num_logits_tokens_ = count; }

  bool is_finished() const { return finish_reason_ != FinishReason::kNone; }
  FinishReason finish_reason() const { return finish_reason_; }
  // Sets the reason only. Scheduler::finish_sequence calls it and frees the blocks. The output processor calls it alone
  // before Scheduler::abort_seq_group, which frees them.
  void finish(FinishReason reason) { finish_reason_ = reason; }

  // Hashes of its first full blocks of tokens, in order: each of all that is up to the block's end, and of what the
  // group's tokens depend on. For BlockSpaceManager::remember_block().
  std::span<const ContentDigest> block_hashes() const { return block_hashes_; }
  void add_block_hash(const ContentDigest& hash) { block_hashes_.push_back(hash); }
  // Of these the blocks that were remembered, since its blocks were last allocated.
  int32_t num_remembered_blocks() const { return num_remembered_blocks_; }
  void set_num_remembered_blocks(int32_t count) { num_remembered_blocks_ = count; }

  // Reserves memory for `num_tokens` tokens, so that appending does not allocate.
  void reserve(int32_t num_tokens) { token_ids_.reserve(static_cast<size_t>(num_tokens)); }

 private:
  SeqId id_;
  int32_t index_ = 0;
  FinishReason finish_reason_ = FinishReason::kNone;
  std::vector<int32_t> token_ids_;  // prompt, then output
  int32_t num_prompt_tokens_;
  int32_t num_computed_tokens_ = 0;
  int32_t num_logits_tokens_ = 0;
  double cumulative_logprob_ = 0;
  std::vector<ContentDigest> block_hashes_;
  int32_t num_remembered_blocks_ = 0;
};

}  // namespace transept
