// What stays without an owner: idle shared tables, and full blocks of sequences that are found by what they hold. One
// order, that of their last use, says which goes first when blocks are taken.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kv/block_space_manager.h"

namespace transept {

// A free block of the pool; if the device has none, what has been idle longest is evicted: a table or a block.
// REQUIRES: one is available.
BlockId BlockSpaceManager::take_block(MemoryPool pool) {
  if (pool == MemoryPool::kDevice && device_.num_free() == 0) {
    CHECK(num_idle_blocks_ > 0, "no block is available among ", device_.num_total());
    evict_older(idle_longest_);
  }
  return allocator(pool).allocate();
}

// Of this idle table and the block that has been idle longest; kNoTable: the block. REQUIRES: there is one of them.
void BlockSpaceManager::evict_older(int64_t key) {
  const bool has_block = oldest_idle_block_ != kNoBlock;
  if (key == kNoTable ||
      (has_block && known_blocks_.at(oldest_idle_block_).idle_number < shared_tables_.at(key).idle_number)) {
    drop_idle_block(oldest_idle_block_);
  } else {
    ++cache_counts_.evictions;
    drop_shared(key, MemoryPool::kDevice);
  }
}

// ---- Tables

// No-op if it is not idle.
void BlockSpaceManager::set_cached(SharedTable& table, bool is_cached) {
  if (!table.is_idle || table.is_cached == is_cached) return;
  table.is_cached = is_cached;
  cache_counts_.num_tables += is_cached ? 1 : -1;
  cache_counts_.num_blocks += (is_cached ? 1 : -1) * static_cast<int32_t>(table.blocks.size());
}

// The table that has been cached longest; kNoTable: none. Walks past pinned ones, which are at most the handles and the
// requests that wait.
int64_t BlockSpaceManager::first_cached() const {
  if (cache_counts_.num_tables == 0) return kNoTable;
  int64_t key = idle_longest_;
  while (key != kNoTable && !shared_tables_.at(key).is_cached) key = shared_tables_.at(key).idle_after;
  return key;
}

void BlockSpaceManager::keep_cap() {
  while (options_.max_cached_blocks.has_value() &&
         cache_counts_.num_blocks + num_idle_prefix_blocks_ > *options_.max_cached_blocks) {
    evict_older(first_cached());
  }
}

// ---- Full blocks of sequences

void BlockSpaceManager::remember_block(SeqId seq_id, int32_t index, const ContentDigest& hash) {
  CHECK(caches_prefixes(), "blocks are not remembered");
  const auto entry = sequences_.find(seq_id);
  CHECK(entry != sequences_.end(), "sequence ", seq_id.value(), " has no table");
  const SequenceTable& table = entry->second;
  CHECK((int64_t{index} + 1) * tokens_per_block(sequence_specs().front()) <= table.num_tokens,
        "a block that is not full");
  const BlockId block = table.blocks.front()[static_cast<size_t>(index)];
  if (blocks_by_hash_.contains(hash) || known_blocks_.contains(block)) return;
  blocks_by_hash_.emplace(hash, block);
  known_blocks_.emplace(block, KnownBlock{.hash = hash});
}

int32_t BlockSpaceManager::find_prefix(std::span<const ContentDigest> hashes) const {
  const auto unknown =
      std::ranges::find_if(hashes, [this](const ContentDigest& hash) { return !blocks_by_hash_.contains(hash); });
  return static_cast<int32_t>(unknown - hashes.begin());
}

int32_t BlockSpaceManager::num_idle_in_prefix(std::span<const ContentDigest> hashes) const {
  int32_t count = 0;
  for (int32_t i = 0; i < find_prefix(hashes); ++i) {
    count += known_blocks_.at(blocks_by_hash_.at(hashes[static_cast<size_t>(i)])).is_idle ? 1 : 0;
  }
  return count;
}

// Another owner of a block that is known.
BlockId BlockSpaceManager::join_block(const ContentDigest& hash) {
  const BlockId block = blocks_by_hash_.at(hash);
  KnownBlock& known = known_blocks_.at(block);
  if (known.is_idle) {
    end_idle_block(known);
    device_.revive(block);
  } else {
    device_.add_reference(block);
  }
  return block;
}

// Its owner is about to write into it, or its hash is to be found no more. No-op if it is not known.
void BlockSpaceManager::forget_block(BlockId block) {
  const auto entry = known_blocks_.find(block);
  if (entry == known_blocks_.end()) return;
  CHECK(!entry->second.is_idle, "an idle block is dropped");
  blocks_by_hash_.erase(entry->second.hash);
  known_blocks_.erase(entry);
}

// Its last owner lets go of it. At the end of the order.
void BlockSpaceManager::begin_idle_block(BlockId block, KnownBlock& known) {
  device_.keep(block);
  known.is_idle = true;
  known.idle_since = now_;
  known.idle_number = next_idle_number_++;
  known.before = newest_idle_block_;
  known.after = kNoBlock;
  (newest_idle_block_ == kNoBlock ? oldest_idle_block_ : known_blocks_.at(newest_idle_block_).after) = block;
  newest_idle_block_ = block;
  ++num_idle_blocks_;
  ++num_idle_prefix_blocks_;
  keep_cap();
}

void BlockSpaceManager::end_idle_block(KnownBlock& known) {
  known.is_idle = false;
  (known.before == kNoBlock ? oldest_idle_block_ : known_blocks_.at(known.before).after) = known.after;
  (known.after == kNoBlock ? newest_idle_block_ : known_blocks_.at(known.after).before) = known.before;
  --num_idle_blocks_;
  --num_idle_prefix_blocks_;
}

void BlockSpaceManager::drop_idle_block(BlockId block) {
  end_idle_block(known_blocks_.at(block));
  forget_block(block);
  device_.free_kept(block);
  if (options_.track_freed_blocks) freed_device_.push_back(block);
}

// ---- Both

void BlockSpaceManager::advance_to(TimePoint now) {
  now_ = std::max(now_, now);
  if (!options_.cache_ttl.has_value()) return;
  const TimePoint over = now_ - *options_.cache_ttl;
  for (int64_t key = first_cached(); key != kNoTable && shared_tables_.at(key).idle_since <= over;
       key = first_cached()) {
    ++cache_counts_.expirations;
    drop_shared(key, MemoryPool::kDevice);
  }
  while (oldest_idle_block_ != kNoBlock && known_blocks_.at(oldest_idle_block_).idle_since <= over) {
    drop_idle_block(oldest_idle_block_);
  }
}

TimePoint BlockSpaceManager::next_expiry() const {
  if (!options_.cache_ttl.has_value()) return TimePoint::max();
  TimePoint first = TimePoint::max();
  if (const int64_t key = first_cached(); key != kNoTable) {
    first = shared_tables_.at(key).idle_since + *options_.cache_ttl;
  }
  if (oldest_idle_block_ == kNoBlock) return first;
  return std::min(first, known_blocks_.at(oldest_idle_block_).idle_since + *options_.cache_ttl);
}

// A table that a reservation has is still found by its digest: requests in flight were told of it.
int32_t BlockSpaceManager::clear_cache() {
  const int32_t num_free = device_.num_free();
  while (idle_longest_ != kNoTable) drop_shared(idle_longest_, MemoryPool::kDevice);
  while (oldest_idle_block_ != kNoBlock) drop_idle_block(oldest_idle_block_);
  known_blocks_.clear();
  blocks_by_hash_.clear();
  for (auto& [key, table] : shared_tables_) {
    table.is_forgotten = true;
    if (table.num_reservations == 0) withdraw_from_sharing(key, table);
  }
  return device_.num_free() - num_free;
}

BlockSpaceManager::CacheCounts BlockSpaceManager::cache_counts() const { return cache_counts_; }

}  // namespace transept
