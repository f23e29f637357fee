#include "rank/group_shortlists.h"

#include <algorithm>

namespace transept {
namespace {

// Ids of a sentence of some 25 words with lists of 80.
constexpr int64_t kUsualIds = 2048;
constexpr int64_t kShareOfLayer = 3;

}  // namespace

GroupShortlists::GroupShortlists(const ShortlistOptions& options, const LmHead& lm_head, int64_t max_groups)
    : list_(options.list),
      always_(options.always),
      outputs_(lm_head.linear(), options.max_parts.value_or(num_parts_for(lm_head, max_groups))) {
  of_step_.reserve(static_cast<size_t>(max_groups));
}

int64_t GroupShortlists::num_parts_for(const LmHead& lm_head, int64_t max_groups) {
  const int64_t vocab = lm_head.vocab_size();
  return std::min(max_groups * ChosenOutputs::parts_for(std::min(vocab, kUsualIds)),
                  ChosenOutputs::parts_for(vocab / kShareOfLayer));
}

void GroupShortlists::begin_step(ThreadPool& threads, const SchedulerOutputs& scheduled) {
  ++step_;
  for (const GroupId id : scheduled.finished) {
    const auto ended = sets_.find(id);
    if (ended == sets_.end()) continue;
    outputs_.release(ended->second.copies);
    sets_.erase(ended);
  }
  of_step_.clear();
  for (const SequenceGroupMetadata& group : scheduled.groups) {
    of_step_.push_back(group.num_cross_tokens == 0 ? nullptr : &find_or_make(group).subset);
  }
  // Those that are preempted give theirs back before others take some.
  for (auto& [id, set] : sets_) {
    if (set.last_step != step_) outputs_.release(set.copies);
  }
  // All or nobody: where one group's scores are picked out of all ids', the others' are there, too.
  const bool has_parts = parts_of_step() <= outputs_.num_parts();
  for (auto& [id, set] : sets_) {
    if (set.last_step != step_) continue;
    if (has_parts && set.copies.empty()) CHECK(outputs_.gather(threads, set.ids, set.copies));
    set.subset = {set.ids, has_parts ? &set.copies : nullptr};
  }
}

// That its groups want together.
int64_t GroupShortlists::parts_of_step() const {
  int64_t sum = 0;
  for (const auto& [id, set] : sets_) sum += set.last_step == step_ ? set.num_parts() : 0;
  return sum;
}

GroupShortlists::Set& GroupShortlists::find_or_make(const SequenceGroupMetadata& group) {
  const auto [place, is_new] = sets_.try_emplace(group.group_id);
  Set& set = place->second;
  set.last_step = step_;
  if (!is_new) return set;
  also_ = always_;
  // The tokens of the decoder's prompt, to be scored; nobody predicts the first one.
  const SequenceData& prompt = group.seq_data[0];
  also_.insert(also_.end(), prompt.token_ids.begin() + (prompt.context_len == 0 ? 1 : 0), prompt.token_ids.end());
  list_->set_of(group.encoder_token_ids, also_, set.ids);
  return set;
}

std::string shortlist_text(const ShortlistOptions& options) {
  const Shortlist& list = *options.list;
  return str_cat("shortlist: ", options.path, ": ", list.num_words(), " words for ", list.num_lists(),
                 " source ids, the ", list.first(), " commonest ids beside them");
}

}  // namespace transept
