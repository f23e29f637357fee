// What must hold between steps; for tests and debug runs.
#include "scheduling/scheduler.h"

namespace transept {
namespace {

template <typename... Parts>
Status broken(const SequenceGroup& group, const Parts&... parts) {
  return absl::InternalError(str_cat("group ", group.group_id().value(), ": ", parts...));
}

}  // namespace

Status Scheduler::check_invariants() const {
  RETURN_IF_ERROR(blocks_.check_invariants());
  size_t num_queued = 0;
  int32_t num_running_seqs = 0;
  for (const auto& [queue, state] :
       {std::pair(&waiting_, SequenceGroup::State::kWaiting), std::pair(&running_, SequenceGroup::State::kRunning),
        std::pair(&swapped_, SequenceGroup::State::kSwapped)}) {
    num_queued += queue->size();
    for (size_t i = 0; i < queue->size(); ++i) {
      const SequenceGroup& group = *(*queue)[i];
      if (group.state() != state) return broken(group, "is not in the queue of its state");
      if (find(group.group_id()) != &group) return broken(group, "is queued and unknown");
      if (i > 0 && (*queue)[i - 1]->arrival_index() >= group.arrival_index()) return broken(group, "is out of order");
      RETURN_IF_ERROR(check_group(group));
      if (state == SequenceGroup::State::kRunning) num_running_seqs += group.max_running_seqs();
    }
  }
  if (num_queued != groups_.size()) return absl::InternalError("a group is in no queue, or in two");
  if (long_encode_ != nullptr) {
    if (long_encode_->state() != SequenceGroup::State::kRunning)
      return broken(*long_encode_, "encodes and does not run");
    if (!blocks_.needs_write(long_encode_->group_id())) return broken(*long_encode_, "encodes what is written");
  }
  if (num_running_seqs > options_.max_num_seqs) return absl::InternalError("more sequences run than max_num_seqs");
  return ok_status();
}

Status Scheduler::check_group(const SequenceGroup& group) const {
  const bool has_blocks = group.state() != SequenceGroup::State::kWaiting;
  const size_t num_cross = blocks_.get_shared_table(group.group_id()).size();
  const size_t expected = has_blocks && group.has_encoder()
                              ? static_cast<size_t>(blocks_.num_blocks_for(cross_spec_, group.num_encoder_tokens()))
                              : 0;
  if (num_cross != expected) return broken(group, "has ", num_cross, " cross blocks instead of ", expected);
  if (blocks_.is_swapped(group.group_id()) != (group.state() == SequenceGroup::State::kSwapped)) {
    return broken(group, "lies in the wrong pool");
  }
  bool is_first = true;
  for (const auto& seq : group.seqs()) {
    if (seq->is_finished()) {
      if (blocks_.has_table(seq->id())) return broken(group, "a finished sequence has a table");
      continue;
    }
    const bool awaits_fork = group.fork_at_ > 0 && !is_first;
    is_first = false;
    if (blocks_.has_table(seq->id()) != (has_blocks && !awaits_fork)) {
      return broken(group, "sequence ", seq->id().value(), has_blocks ? " has no table" : " has a table");
    }
    if (seq->num_computed_tokens() > blocks_.num_slots(seq->id())) {
      return broken(group, "sequence ", seq->id().value(), " has more tokens computed than slots");
    }
  }
  return ok_status();
}

}  // namespace transept
