// Shared tables: who shares them, when they are written, and what becomes of them when they have no owner.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kv/block_space_manager.h"

namespace transept {

// ---- Sharing

// The table of this digest and spec that another group, or a pin, has brought to the device. Null: none.
const BlockSpaceManager::SharedTable* BlockSpaceManager::find_shareable(const SharedRequest& request) const {
  if (!request.digest) return nullptr;
  const bool may_share = options_.share_identical_inputs || keeps_unused(request.spec);
  if (!may_share && !pinned_.contains(*request.digest)) return nullptr;
  const auto entry = offered_.find({*request.digest, request.spec});
  return entry == offered_.end() ? nullptr : &shared_tables_.at(entry->second);
}

bool BlockSpaceManager::shares(const Request& request, size_t i) const {
  const SharedTable* table = find_shareable(request.shared[i]);
  return table != nullptr && may_read(*table);
}

int32_t BlockSpaceManager::find_tokens(const Request& request, size_t i) const {
  const SharedTable* table = find_shareable(request.shared[i]);
  return table == nullptr ? 0 : table->num_tokens;
}

bool BlockSpaceManager::shares_all(const Request& request) const {
  for (size_t i = 0; i < request.shared.size(); ++i) {
    if (!shares(request, i)) return false;
  }
  return true;
}

bool BlockSpaceManager::awaits_shared(const Request& request) const {
  return std::any_of(request.shared.begin(), request.shared.end(), [this](const SharedRequest& wanted) {
    const SharedTable* table = find_shareable(wanted);
    return table != nullptr && !may_read(*table);
  });
}

// Idle tables and blocks that the request is about to use cannot be evicted for it.
int32_t BlockSpaceManager::num_available_blocks(const Request& request) const {
  int32_t count = num_available_device_blocks();
  for (size_t i = 0; i < request.shared.size(); ++i) {
    const SharedTable* table = shares(request, i) ? find_shareable(request.shared[i]) : nullptr;
    if (table != nullptr && table->is_idle) count -= static_cast<int32_t>(table->blocks.size());
  }
  return count - num_idle_in_prefix(request.prefix);
}

int64_t BlockSpaceManager::join_shared(const SharedRequest& request) {
  const int64_t key = offered_.at({*request.digest, request.spec});
  SharedTable& table = shared_tables_.at(key);
  CHECK(table.num_tokens == request.num_tokens, "one digest, two lengths");
  end_idle(table);
  ++table.num_owners;
  return key;
}

// A new table with one owner. It is not found by its digest.
int64_t BlockSpaceManager::make_shared_table(const SharedRequest& request) {
  CHECK(request.num_tokens > 0, "a shared table of no tokens");
  const int64_t key = next_shared_++;
  SharedTable table;
  table.spec = request.spec;
  table.num_owners = 1;
  table.num_tokens = request.num_tokens;
  table.digest = request.digest;
  const int32_t num_blocks = num_blocks_for(request.spec, request.num_tokens);
  table.blocks = take_table(num_blocks);
  for (int32_t i = 0; i < num_blocks; ++i) table.blocks.push_back(take_block(MemoryPool::kDevice));
  shared_tables_.emplace(key, std::move(table));
  return key;
}

int64_t BlockSpaceManager::add_shared(const SharedRequest& request) {
  const int64_t key = make_shared_table(request);
  offer_for_sharing(key, shared_tables_.at(key));
  return key;
}

void BlockSpaceManager::offer_for_sharing(int64_t key, const SharedTable& table) {
  if (table.digest && !table.is_forgotten) offered_.try_emplace({*table.digest, table.spec}, key);
}

void BlockSpaceManager::withdraw_from_sharing(int64_t key, const SharedTable& table) {
  if (!table.digest) return;
  const auto entry = offered_.find({*table.digest, table.spec});
  if (entry != offered_.end() && entry->second == key) offered_.erase(entry);
}

// An owner lets go of a table, which lies in `pool`; the last one that does leaves it idle, or frees it.
void BlockSpaceManager::release_shared(int64_t key, MemoryPool pool) {
  if (key == kNoTable) return;
  SharedTable& table = shared_tables_.at(key);
  if (--table.num_owners > 0) return;
  if (pool == MemoryPool::kDevice) offer_for_sharing(key, table);
  if (is_kept(key, table)) {
    begin_idle(key, table);
    keep_cap();
  } else {
    drop_shared(key, pool);
  }
}

// REQUIRES: it has no owner.
void BlockSpaceManager::drop_shared(int64_t key, MemoryPool pool) {
  const auto entry = shared_tables_.find(key);
  SharedTable& table = entry->second;
  end_idle(table);
  for (const BlockId block : table.blocks) release(pool, block);
  withdraw_from_sharing(key, table);
  keep_table(std::move(table.blocks));
  shared_tables_.erase(entry);
}

// ---- Writing

bool BlockSpaceManager::needs_write(GroupId group_id) const {
  const auto entry = groups_.find(group_id);
  if (entry == groups_.end()) return false;
  const auto& shared = entry->second.shared;
  return std::any_of(shared.begin(), shared.end(), [this](int64_t key) {
    return key != kNoTable && shared_tables_.at(key).state == WriteState::kUnwritten;
  });
}

bool BlockSpaceManager::needs_write(GroupId group_id, size_t i) const {
  const auto entry = groups_.find(group_id);
  if (entry == groups_.end() || i >= entry->second.shared.size()) return false;
  const int64_t key = entry->second.shared[i];
  return key != kNoTable && shared_tables_.at(key).state == WriteState::kUnwritten;
}

void BlockSpaceManager::begin_write(GroupId group_id, size_t i) {
  CHECK(needs_write(group_id, i), "group ", group_id.value(), ": a shared table is written once");
  const int64_t key = groups_.at(group_id).shared[i];
  shared_tables_.at(key).state = WriteState::kBegun;
  being_written_.push_back(key);
}

void BlockSpaceManager::finish_writes(size_t count) {
  CHECK(count <= being_written_.size(), "more writes end than have begun");
  const auto end = being_written_.begin() + static_cast<std::ptrdiff_t>(count);
  for (auto key = being_written_.begin(); key != end; ++key) {
    const auto entry = shared_tables_.find(*key);
    if (entry != shared_tables_.end()) entry->second.state = WriteState::kWritten;
  }
  being_written_.erase(being_written_.begin(), end);
}

void BlockSpaceManager::abandon_writes() {
  for (const int64_t key : being_written_) {
    const auto entry = shared_tables_.find(key);
    if (entry == shared_tables_.end()) continue;
    entry->second.state = WriteState::kUnwritten;
    if (entry->second.num_owners == 0) drop_shared(key, MemoryPool::kDevice);
  }
  being_written_.clear();
}

// ---- Pins

void BlockSpaceManager::pin(const ContentDigest& digest) {
  if (!pinned_.insert(digest).second) return;
  for (size_t spec = 0; spec < options_.specs.size(); ++spec) {
    const auto entry = offered_.find({digest, static_cast<int32_t>(spec)});
    if (entry != offered_.end()) set_cached(shared_tables_.at(entry->second), false);
  }
}

void BlockSpaceManager::unpin(const ContentDigest& digest) {
  if (pinned_.erase(digest) == 0) return;
  for (size_t spec = 0; spec < options_.specs.size(); ++spec) {
    const auto entry = offered_.find({digest, static_cast<int32_t>(spec)});
    if (entry == offered_.end()) continue;
    const int64_t key = entry->second;
    SharedTable& table = shared_tables_.at(key);
    if (!table.is_idle) continue;
    if (stays_unpinned(static_cast<int32_t>(spec))) {
      end_idle(table);
      begin_idle(key, table);
    } else {
      drop_shared(key, MemoryPool::kDevice);
    }
  }
  keep_cap();
}

// Whether a table without an owner stays. One that lies on the host, or beside another of its digest, could not be
// found.
bool BlockSpaceManager::is_kept(int64_t key, const SharedTable& table) const {
  if (!table.digest || table.state == WriteState::kUnwritten || table.is_forgotten) return false;
  if (!stays_unpinned(table.spec) && !pinned_.contains(*table.digest)) return false;
  const auto entry = offered_.find({*table.digest, table.spec});
  return entry != offered_.end() && entry->second == key;
}

// At the end of the order: it has been idle shortest.
void BlockSpaceManager::begin_idle(int64_t key, SharedTable& table) {
  table.is_idle = true;
  table.idle_since = now_;
  table.idle_before = idle_shortest_;
  table.idle_after = kNoTable;
  (idle_shortest_ == kNoTable ? idle_longest_ : shared_tables_.at(idle_shortest_).idle_after) = key;
  idle_shortest_ = key;
  table.idle_number = next_idle_number_++;
  num_idle_blocks_ += static_cast<int32_t>(table.blocks.size());
  set_cached(table, !pinned_.contains(*table.digest));
}

// No-op if it is not idle.
void BlockSpaceManager::end_idle(SharedTable& table) {
  if (!table.is_idle) return;
  set_cached(table, false);
  table.is_idle = false;
  const int64_t before = table.idle_before, after = table.idle_after;
  (before == kNoTable ? idle_longest_ : shared_tables_.at(before).idle_after) = after;
  (after == kNoTable ? idle_shortest_ : shared_tables_.at(after).idle_before) = before;
  num_idle_blocks_ -= static_cast<int32_t>(table.blocks.size());
}

}  // namespace transept
