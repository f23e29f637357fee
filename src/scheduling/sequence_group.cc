#include "scheduling/sequence_group.h"

#include <algorithm>

#include "base/check.h"

namespace transept {

SequenceGroup::SequenceGroup(const Init& init)
    : group_id_(init.group_id),
      request_id_(init.request_id),
      params_(init.params),
      arrival_time_(init.arrival_time),
      priority_(init.priority),
      continues_(init.continues),
      items_(init.inputs.items),
      item_states_(items_.size(), ItemState::kUnwritten),
      layout_(init.inputs.layout),
      shares_items_(init.shares_items),
      num_cross_tokens_(num_cross_positions(items_)),
      prefix_root_(init.prefix_root) {
  for (const EncoderItem& item : items_) has_remote_items_ |= item.remote.has_value();
  CHECK(!init.inputs.prompt_token_ids.empty(), "a decoder prompt is never empty");
  seqs_.push_back(std::make_unique<Sequence>(init.first_seq_id, init.inputs.prompt_token_ids));
  if (shares_items_ && num_cross_tokens_ > 0) cross_digest_ = transept::cross_digest(items_);
}

size_t SequenceGroup::num_spliced_before(size_t item) const {
  size_t count = 0;
  for (size_t i = 0; i < item; ++i) count += has(items_[i].consumers, Consumers::kSplice) ? 1 : 0;
  return count;
}

size_t SequenceGroup::num_remote_before(size_t item) const {
  size_t count = 0;
  for (size_t i = 0; i < item; ++i) {
    count += items_[i].remote.has_value() && !has(items_[i].consumers, Consumers::kSplice) ? 1 : 0;
  }
  return count;
}

std::optional<ContentDigest> SequenceGroup::rows_digest(size_t item) const {
  if (items_[item].remote.has_value()) return items_[item].remote->digest;
  return shares_items_ ? items_[item].digest : std::nullopt;
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
