#include "scheduling/sequence.h"

#include "base/check.h"

namespace transept {

Sequence::Sequence(SeqId id, const EncoderDecoderInputs& inputs, bool from_decoder_prompt)
    : id_(id),
      from_decoder_prompt_(from_decoder_prompt),
      token_ids_(from_decoder_prompt ? inputs.prompt_token_ids : inputs.encoder_prompt_token_ids),
      num_prompt_tokens_(static_cast<int32_t>(token_ids_.size())) {}

void Sequence::become_fork_of(const Sequence& parent, SeqId child_id, int32_t child_index) {
  const size_t capacity = parent.token_ids_.capacity();
  *this = parent;
  token_ids_.reserve(capacity);
  id_ = child_id;
  index_ = child_index;
}

void Sequence::append_token(int32_t token_id, double logprob) {
  CHECK(from_decoder_prompt_, "an encoder sequence never generates");
  CHECK(!is_finished(), "sequence ", id_.value(), " has ended");
  token_ids_.push_back(token_id);
  cumulative_logprob_ += logprob;
}

void Sequence::set_num_computed_tokens(int32_t count) {
  CHECK(count >= 0 && count <= num_tokens());
  num_computed_tokens_ = count;
}

}  // namespace transept
