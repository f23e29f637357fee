#include "scheduling/sequence_group.h"

#include <algorithm>

#include "base/check.h"

namespace transept {

SequenceGroup::SequenceGroup(const Init& init)
    : group_id_(init.group_id),
      request_id_(init.request_id),
      params_(init.params),
      arrival_time_(init.arrival_time),
      continues_(init.continues),
      encoder_features_(init.inputs.encoder_features),
      num_encoder_tokens_(init.inputs.num_encoder_tokens()),
      encoder_digest_(init.encoder_digest) {
  CHECK(!init.inputs.prompt_token_ids.empty(), "a decoder prompt is never empty");
  seqs_.push_back(std::make_unique<Sequence>(init.first_seq_id, init.inputs));
  if (has_encoder()) encoder_seq_.emplace(init.first_seq_id, init.inputs, /*from_decoder_prompt=*/false);
}

Sequence* SequenceGroup::find(SeqId id) const {
  for (const auto& seq : seqs_) {
    if (seq->id() == id) return seq.get();
  }
  return nullptr;
}

int32_t SequenceGroup::num_unfinished() const {
  int32_t count = 0;
  for (const auto& seq : seqs_) count += !seq->is_finished();
  return count;
}

int32_t SequenceGroup::max_running_seqs() const {
  if (params_.num_beams > 1) return params_.num_beams;
  const bool has_forked = next_index_ > 1;
  return has_forked ? num_unfinished() : params_.num_seqs();
}

int64_t SequenceGroup::max_tokens_per_seq() const {
  return int64_t{seqs_.front()->num_prompt_tokens()} + params_.max_tokens;
}

}  // namespace transept
