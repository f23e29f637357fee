// Reservations: shared tables of inputs whose rows come from another process.
#include <utility>

#include "base/check.h"
#include "kv/block_space_manager.h"

namespace transept {

// A table that this step is still writing does not count: if the step fails, its rows never come.
const BlockSpaceManager::SharedTable* BlockSpaceManager::find_written_table(const ContentDigest& digest,
                                                                            int32_t spec) const {
  const auto entry = offered_.find({digest, spec});
  if (entry == offered_.end()) return nullptr;
  const SharedTable& table = shared_tables_.at(entry->second);
  return table.state == WriteState::kWritten ? &table : nullptr;
}

int32_t BlockSpaceManager::find_written(const ContentDigest& digest, int32_t spec) const {
  const SharedTable* table = find_written_table(digest, spec);
  return table == nullptr ? 0 : table->num_tokens;
}

// Of blocks that the cap and the pool lose.
AllocStatus BlockSpaceManager::reserve_status(int32_t num_of_cap, int32_t num_of_pool) const {
  const bool never_fits = num_of_cap > options_.max_reserved_blocks;
  if (never_fits || device_.num_total() - num_of_pool < watermark_blocks_) return AllocStatus::kNever;
  if (num_of_cap > options_.max_reserved_blocks - num_reserved_blocks_) return AllocStatus::kLater;
  if (num_of_pool == 0) return AllocStatus::kOk;
  return num_available_device_blocks() - num_of_pool >= watermark_blocks_ ? AllocStatus::kOk : AllocStatus::kLater;
}

AllocStatus BlockSpaceManager::can_reserve_blocks(int32_t num_blocks) const {
  return reserve_status(num_blocks, num_blocks);
}

// An idle table's blocks are no longer available once it is reserved.
AllocStatus BlockSpaceManager::can_reserve(const SharedRequest& wanted) const {
  const int32_t num_blocks = num_blocks_for(wanted.spec, wanted.num_tokens);
  const SharedTable* table = find_written_table(*wanted.digest, wanted.spec);
  if (table == nullptr) return can_reserve_blocks(num_blocks);
  return reserve_status(table->num_reservations > 0 ? 0 : num_blocks, table->is_idle ? num_blocks : 0);
}

ReservationId BlockSpaceManager::reserve(const SharedRequest& wanted) {
  CHECK(wanted.digest.has_value() && keeps_unused(wanted.spec), "a reservation is found by its digest");
  CHECK(can_reserve(wanted) == AllocStatus::kOk, "reserve without can_reserve");
  const bool joins = find_written_table(*wanted.digest, wanted.spec) != nullptr;
  const int64_t key = joins ? join_shared(wanted) : make_shared_table(wanted);
  // Rows may be received into its blocks before the next plan poisons what was freed.
  if (!joins && !freed_device_.empty()) {
    const absl::flat_hash_set<BlockId> taken(shared_tables_.at(key).blocks.begin(),
                                             shared_tables_.at(key).blocks.end());
    std::erase_if(freed_device_, [&taken](BlockId block) { return taken.contains(block); });
  }
  count_reservation(shared_tables_.at(key), 1);
  const ReservationId id(next_reservation_++);
  reservations_.emplace(id, key);
  return id;
}

// The cap counts distinct tables.
void BlockSpaceManager::count_reservation(SharedTable& table, int32_t change) {
  const bool was_reserved = table.num_reservations > 0;
  table.num_reservations += change;
  const bool is_reserved = table.num_reservations > 0;
  if (was_reserved == is_reserved) return;
  num_reserved_blocks_ += change * static_cast<int32_t>(table.blocks.size());
}

bool BlockSpaceManager::is_written(ReservationId id) const {
  const auto entry = reservations_.find(id);
  return entry != reservations_.end() && shared_tables_.at(entry->second).state == WriteState::kWritten;
}

bool BlockSpaceManager::finish_reservation(ReservationId id) {
  const auto entry = reservations_.find(id);
  CHECK(entry != reservations_.end(), "reservation ", id.value(), " has no table");
  const int64_t key = entry->second;
  SharedTable& table = shared_tables_.at(key);
  if (table.state == WriteState::kWritten) return true;
  if (const SharedTable* equal = find_written_table(*table.digest, table.spec); equal != nullptr) {
    if (equal->num_tokens != table.num_tokens) return false;
    entry->second = join_shared({table.spec, table.num_tokens, table.digest});
    count_reservation(shared_tables_.at(entry->second), 1);
    count_reservation(table, -1);
    release_shared(key, MemoryPool::kDevice);
    return true;
  }
  table.state = WriteState::kWritten;
  // Found from now on, instead of one that a group is still to write.
  const auto [offer, is_only] = offered_.try_emplace({*table.digest, table.spec}, key);
  const int64_t unwritten = std::exchange(offer->second, key);
  if (!is_only && shared_tables_.at(unwritten).is_idle) drop_shared(unwritten, MemoryPool::kDevice);
  return true;
}

void BlockSpaceManager::free(ReservationId id) {
  const auto entry = reservations_.find(id);
  if (entry == reservations_.end()) return;
  const int64_t key = entry->second;
  reservations_.erase(entry);
  count_reservation(shared_tables_.at(key), -1);
  release_shared(key, MemoryPool::kDevice);
}

std::span<const BlockId> BlockSpaceManager::get_reserved_table(ReservationId id) const {
  const auto entry = reservations_.find(id);
  return entry == reservations_.end() ? std::span<const BlockId>() : shared_tables_.at(entry->second).blocks;
}

}  // namespace transept
