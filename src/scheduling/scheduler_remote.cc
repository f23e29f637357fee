// Items that are encoded elsewhere: where their rows lie, and whether a group may take them.
#include "base/check.h"
#include "scheduling/scheduler.h"

namespace transept {

bool Scheduler::can_have_rows(SequenceGroup& group, BlockSpaceManager::Request& request) const {
  if (!options_.may_encode) {
    for (const EncoderItem& item : group.items_) {
      DCHECK(item.remote.has_value(), "an item to encode where nothing can be encoded");
      if (!item.remote.has_value()) return false;
    }
  }
  return !group.has_remote_items_ || find_remote_rows(group, request);
}

// Whether the rows of all remote items are here, or nobody needs them: cross KV of equal items is, too. If rows are
// needed for cross KV, the request asks for their tables, so that they stay until it is written.
bool Scheduler::find_remote_rows(SequenceGroup& group, BlockSpaceManager::Request& request) const {
  for (size_t i = 0; i < request.shared.size(); ++i) {
    const int32_t num_tokens = blocks_.find_tokens(request, i);
    if (num_tokens != 0 && num_tokens != request.shared[i].num_tokens) return false;
  }
  const bool crosses = !shares(request, group_tables(group)) && !blocks_.awaits_shared(request);
  const int32_t spec = blocks_.specs_of(TableOwner::kItem).front();
  for (size_t i = 0; i < group.items().size(); ++i) {
    const EncoderItem& item = group.items()[i];
    if (!item.remote.has_value()) continue;
    const bool is_spliced = has(item.consumers, Consumers::kSplice);
    if (!is_spliced && !crosses) continue;
    if (blocks_.find_written(*group.rows_digest(i), spec) != item.num_positions()) return false;
    group.holds_rows_ |= !is_spliced;
  }
  if (group.holds_rows_) request = admission_request(group);
  return true;
}

// One table, behind those of spliced items if the item is crossed alone; none, if the group did not need it. REQUIRES:
// the item is remote.
Scheduler::TableRange Scheduler::remote_tables(const SequenceGroup& group, size_t item) const {
  if (has(group.items_[item].consumers, Consumers::kSplice)) return item_tables(group, item);
  if (!group.holds_rows_) return {};
  const size_t num_before = group.num_spliced_before(group.items_.size()) + group.num_remote_before(item);
  const size_t begin = group_tables(group).end + num_before * blocks_.specs_of(TableOwner::kItem).size();
  return {begin, begin + 1};
}

void Scheduler::encode_here(GroupId group_id) {
  const auto found = groups_.find(group_id);
  CHECK(found != groups_.end() && options_.may_encode, "no group, or nothing that encodes");
  SequenceGroup& group = *found->second;
  if (group.state() != SequenceGroup::State::kWaiting) return;
  for (EncoderItem& item : group.items_) {
    if (item.remote.has_value()) make_local(item);
  }
  group.has_remote_items_ = false;
  group.holds_rows_ = false;
}

// Cross KV was written from them.
void Scheduler::free_taken_rows(SequenceGroup& group, size_t item) {
  const EncoderItem& taken = group.items_[item];
  if (!taken.remote.has_value() || has(taken.consumers, Consumers::kSplice)) return;
  const TableRange tables = remote_tables(group, item);
  for (size_t i = tables.begin; i < tables.end; ++i) blocks_.free_shared(group.group_id(), i);
}

}  // namespace transept
