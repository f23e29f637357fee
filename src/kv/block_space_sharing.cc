// Cross tables: who shares them, when they are written, and what becomes of them when nobody uses them.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kv/block_space_manager.h"

namespace transept {

// ---- Sharing

// The table with the request's digest that another group, or a pin, has brought to the device. Null: none.
const BlockSpaceManager::CrossTable* BlockSpaceManager::find_shareable(const Request& request) const {
  if (request.num_encoder_tokens == 0 || !request.encoder_digest) return nullptr;
  if (!options_.share_identical_inputs && !pinned_.contains(*request.encoder_digest)) return nullptr;
  const auto entry = shared_cross_.find(*request.encoder_digest);
  return entry == shared_cross_.end() ? nullptr : &cross_tables_.at(entry->second);
}

bool BlockSpaceManager::shares_cross(const Request& request) const {
  const CrossTable* cross = find_shareable(request);
  return cross != nullptr && cross->state != CrossState::kUnwritten;
}

bool BlockSpaceManager::awaits_cross(const Request& request) const {
  const CrossTable* cross = find_shareable(request);
  return cross != nullptr && cross->state == CrossState::kUnwritten;
}

// An idle table that the request is about to use is not there to be given up.
int32_t BlockSpaceManager::num_available_blocks(const Request& request) const {
  const CrossTable* cross = shares_cross(request) ? find_shareable(request) : nullptr;
  const bool uses_idle = cross != nullptr && cross->num_owners == 0;
  return num_available_device_blocks() - (uses_idle ? static_cast<int32_t>(cross->blocks.size()) : 0);
}

void BlockSpaceManager::join_cross(Group& group, const Request& request) {
  group.cross = shared_cross_.at(*request.encoder_digest);
  CrossTable& shared = cross_tables_.at(group.cross);
  CHECK(shared.num_tokens == request.num_encoder_tokens, "one digest, two lengths");
  if (shared.num_owners == 0) end_idle(group.cross, shared);
  ++shared.num_owners;
}

void BlockSpaceManager::add_cross(Group& group, const Request& request) {
  group.cross = next_cross_++;
  CrossTable cross;
  cross.num_owners = 1;
  cross.num_tokens = request.num_encoder_tokens;
  cross.digest = request.encoder_digest;
  cross.blocks = take_table(request.num_encoder_tokens);
  for (int32_t i = 0; i < num_blocks_for(request.num_encoder_tokens); ++i) {
    cross.blocks.push_back(take_block(MemoryPool::kDevice));
  }
  offer_for_sharing(group.cross, cross);
  cross_tables_.emplace(group.cross, std::move(cross));
}

void BlockSpaceManager::offer_for_sharing(int64_t key, const CrossTable& cross) {
  if (cross.digest) shared_cross_.try_emplace(*cross.digest, key);
}

void BlockSpaceManager::withdraw_from_sharing(int64_t key, const CrossTable& cross) {
  if (!cross.digest) return;
  const auto entry = shared_cross_.find(*cross.digest);
  if (entry != shared_cross_.end() && entry->second == key) shared_cross_.erase(entry);
}

// REQUIRES: nobody owns it.
void BlockSpaceManager::drop_cross(int64_t key, MemoryPool pool) {
  const auto entry = cross_tables_.find(key);
  CrossTable& cross = entry->second;
  end_idle(key, cross);
  for (const BlockId block : cross.blocks) release(pool, block);
  withdraw_from_sharing(key, cross);
  keep_table(std::move(cross.blocks));
  cross_tables_.erase(entry);
}

// ---- Writing

bool BlockSpaceManager::needs_cross_write(GroupId group_id) const {
  const auto entry = groups_.find(group_id);
  return entry != groups_.end() && entry->second.cross != kNoCross &&
         cross_tables_.at(entry->second.cross).state == CrossState::kUnwritten;
}

void BlockSpaceManager::begin_cross_write(GroupId group_id) {
  CHECK(needs_cross_write(group_id), "group ", group_id.value(), ": a cross table is written once");
  const int64_t key = groups_.at(group_id).cross;
  cross_tables_.at(key).state = CrossState::kBegun;
  being_written_.push_back(key);
}

void BlockSpaceManager::finish_cross_writes() {
  for (const int64_t key : being_written_) {
    const auto entry = cross_tables_.find(key);
    if (entry != cross_tables_.end()) entry->second.state = CrossState::kWritten;
  }
  being_written_.clear();
}

void BlockSpaceManager::abandon_cross_writes() {
  for (const int64_t key : being_written_) {
    const auto entry = cross_tables_.find(key);
    if (entry == cross_tables_.end()) continue;
    entry->second.state = CrossState::kUnwritten;
    if (entry->second.num_owners == 0) drop_cross(key, MemoryPool::kDevice);
  }
  being_written_.clear();
}

// ---- Pins

void BlockSpaceManager::pin(const ContentDigest& digest) { pinned_.insert(digest); }

void BlockSpaceManager::unpin(const ContentDigest& digest) {
  if (pinned_.erase(digest) == 0) return;
  const auto entry = shared_cross_.find(digest);
  if (entry == shared_cross_.end() || cross_tables_.at(entry->second).num_owners > 0) return;
  drop_cross(entry->second, MemoryPool::kDevice);
}

// Whether a table that nobody uses any more stays. What lies on the host, or beside another table of its digest, nobody
// would find.
bool BlockSpaceManager::is_kept(int64_t key, const CrossTable& cross) const {
  if (!cross.digest || cross.state == CrossState::kUnwritten || !pinned_.contains(*cross.digest)) return false;
  const auto entry = shared_cross_.find(*cross.digest);
  return entry != shared_cross_.end() && entry->second == key;
}

void BlockSpaceManager::begin_idle(int64_t key, const CrossTable& cross) {
  idle_.push_back(key);
  num_idle_blocks_ += static_cast<int32_t>(cross.blocks.size());
}

// Nothing, if it is not idle.
void BlockSpaceManager::end_idle(int64_t key, const CrossTable& cross) {
  const auto place = std::find(idle_.begin(), idle_.end(), key);
  if (place == idle_.end()) return;
  idle_.erase(place);
  num_idle_blocks_ -= static_cast<int32_t>(cross.blocks.size());
}

// A free block of the pool; if the device has none, the table that has been idle longest makes room.
// REQUIRES: one is available.
BlockId BlockSpaceManager::take_block(MemoryPool pool) {
  if (pool == MemoryPool::kDevice && device_.num_free() == 0) {
    CHECK(!idle_.empty(), "no block is available among ", device_.num_total());
    drop_cross(idle_.front(), MemoryPool::kDevice);
  }
  return allocator(pool).allocate();
}

}  // namespace transept
