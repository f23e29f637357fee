// What must hold between steps; for tests and debug runs.
#include <algorithm>

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
  int32_t num_running_seqs = 0, num_busy = 0;
  for (const auto& [queue, state] :
       {std::pair(&waiting_, SequenceGroup::State::kWaiting), std::pair(&running_, SequenceGroup::State::kRunning),
        std::pair(&swapped_, SequenceGroup::State::kSwapped)}) {
    num_queued += queue->size();
    for (size_t i = 0; i < queue->size(); ++i) {
      const SequenceGroup& group = *(*queue)[i];
      if (group.state() != state) return broken(group, "is not in the queue of its state");
      if (find(group.group_id()) != &group) return broken(group, "is queued and unknown");
      if (i > 0 && !(*queue)[i - 1]->comes_before(group)) return broken(group, "is out of order");
      RETURN_IF_ERROR(check_group(group));
      if (state == SequenceGroup::State::kRunning) num_running_seqs += group.max_running_seqs();
      if (group.is_busy_ && state != SequenceGroup::State::kRunning) return broken(group, "is busy and does not run");
      if (group.is_aborted_ && !group.is_busy_) return broken(group, "was aborted and is not freed");
      num_busy += group.is_busy_ ? 1 : 0;
    }
  }
  if (num_queued != groups_.size()) return absl::InternalError("a group is in no queue, or in two");
  if (long_encode_ != nullptr) {
    if (long_encode_->state() != SequenceGroup::State::kRunning)
      return broken(*long_encode_, "encodes and does not run");
    if (missing_writes(*long_encode_, long_item_) == Consumers::kNone) {
      return broken(*long_encode_, "encodes what is written");
    }
  }
  if (num_busy != num_busy_ || (num_busy > 0 && in_flight_.empty())) {
    return absl::InternalError(
        str_cat(num_busy, " groups are busy, and ", num_busy_, " are counted in ", in_flight_.size(), " plans"));
  }
  if (num_running_seqs > options_.max_num_seqs) return absl::InternalError("more sequences run than max_num_seqs");
  return ok_status();
}

Status Scheduler::check_group(const SequenceGroup& group) const {
  const bool has_blocks = group.state() != SequenceGroup::State::kWaiting;
  RETURN_IF_ERROR(check_items(group));
  if (blocks_.is_swapped(group.group_id()) != (group.state() == SequenceGroup::State::kSwapped)) {
    return broken(group, "lies in the wrong pool");
  }
  bool is_first = true;
  for (const auto& seq : group.seqs()) {
    if (seq->is_finished()) {
      if (blocks_.has_table(seq->id()) && !group.is_aborted_) return broken(group, "a finished sequence has a table");
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

// The cross tables are there as long as the group has blocks; an item's own tables until its rows were used.
Status Scheduler::check_items(const SequenceGroup& group) const {
  const bool has_blocks = group.state() != SequenceGroup::State::kWaiting;
  const auto check_tables = [&](TableRange tables, TableOwner owner, int32_t num_tokens, bool may_be_freed) {
    for (size_t i = tables.begin; i < tables.end; ++i) {
      const int32_t spec = blocks_.specs_of(owner)[i - tables.begin];
      const size_t count = blocks_.get_shared_table(group.group_id(), i).size();
      const size_t expected = has_blocks ? static_cast<size_t>(blocks_.num_blocks_for(spec, num_tokens)) : 0;
      if (count == expected || (may_be_freed && count == 0)) continue;
      return broken(group, "table ", i, " has ", count, " blocks instead of ", expected);
    }
    return ok_status();
  };
  RETURN_IF_ERROR(check_tables(group_tables(group), TableOwner::kGroup, group.num_cross_tokens(), false));
  int32_t computed = 0;
  for (const auto& seq : group.seqs()) {
    if (!seq->is_finished()) computed = std::max(computed, seq->num_computed_tokens());
  }
  for (size_t i = 0; i < group.items().size(); ++i) {
    const EncoderItem& item = group.items()[i];
    if (!has(item.consumers, Consumers::kSplice)) continue;
    const bool was_used = computed >= item.splice_offset + item.num_positions();
    const TableRange tables = item_tables(group, i);
    RETURN_IF_ERROR(check_tables(tables, TableOwner::kItem, item.num_positions(), was_used || group.is_finished()));
    for (size_t table = tables.begin; was_used && table < tables.end; ++table) {
      if (blocks_.get_shared_table(group.group_id(), table).empty()) continue;
      return broken(group, "item ", i, " keeps rows that were used");
    }
  }
  if (has_blocks && group.awaits_items() && !has_missing_writes(group) && encoding_.empty()) {
    return broken(group, "awaits items that are encoded");
  }
  return ok_status();
}

}  // namespace transept
