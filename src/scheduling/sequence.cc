#include "scheduling/sequence.h"

#include "base/check.h"

namespace transept {

Sequence::Sequence(SeqId id, std::span<const int32_t> prompt_token_ids)
    : id_(id),
      token_ids_(prompt_token_ids.begin(), prompt_token_ids.end()),
      num_prompt_tokens_(static_cast<int32_t>(token_ids_.size())) {}

void Sequence::become_fork_of(const Sequence& parent, SeqId child_id, int32_t child_index) {
  const size_t capacity = parent.token_ids_.capacity();
  *this = parent;
  token_ids_.reserve(capacity);
  id_ = child_id;
  index_ = child_index;
}

void Sequence::append_token(int32_t token_id, double logprob) {
  CHECK(!is_finished(), "sequence ", id_.value(), " has ended");
  token_ids_.push_back(token_id);
  cumulative_logprob_ += logprob;
}

void Sequence::set_num_computed_tokens(int32_t count) {
  CHECK(count >= 0 && count <= num_tokens());
  num_computed_tokens_ = count;
}

}  // namespace transept
