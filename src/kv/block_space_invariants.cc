// What must hold after every operation of BlockSpaceManager; for tests and debug runs.
#include <algorithm>

#include "kv/block_space_manager.h"

namespace transept {
namespace {

template <typename... Parts>
Status broken(const Parts&... parts) {
  return absl::InternalError(str_cat(parts...));
}

}  // namespace

Status BlockSpaceManager::check_invariants() const {
  RETURN_IF_ERROR(check_groups());
  RETURN_IF_ERROR(check_shared_tables());
  RETURN_IF_ERROR(check_idle_tables());
  RETURN_IF_ERROR(check_known_blocks());
  RETURN_IF_ERROR(check_reservations());

  std::vector<int32_t> device(static_cast<size_t>(device_.num_total()));
  std::vector<int32_t> host(static_cast<size_t>(host_.num_total()));
  const auto count = [&](MemoryPool pool, const BlockTable& blocks) {
    std::vector<int32_t>& counts = pool == MemoryPool::kDevice ? device : host;
    for (const BlockId block : blocks) {
      if (block < 0 || block >= static_cast<int32_t>(counts.size())) return false;
      ++counts[static_cast<size_t>(block)];
    }
    return true;
  };
  absl::flat_hash_set<int64_t> seen;
  for (const auto& [id, group] : groups_) {
    for (const SeqId seq : group.sequences) {
      for (const BlockTable& blocks : sequences_.at(seq).blocks) {
        if (!count(group.pool, blocks)) return broken("sequence ", seq.value(), ": no such block");
      }
    }
    for (const int64_t key : group.shared) {
      if (key == kNoTable || !seen.insert(key).second) continue;
      if (!count(group.pool, shared_tables_.at(key).blocks)) return broken("group ", id.value(), ": no such block");
    }
  }
  for (const auto& [id, key] : reservations_) {
    if (!seen.insert(key).second) continue;
    if (!count(MemoryPool::kDevice, shared_tables_.at(key).blocks)) {
      return broken("reservation ", id.value(), ": no such block");
    }
  }
  for (const auto& [key, table] : shared_tables_) {
    if (!table.is_idle) continue;
    if (!count(MemoryPool::kDevice, table.blocks)) return broken("idle table ", key, ": no such block");
  }
  if (const Status status = device_.check_invariants(device); !status.ok()) return with_prefix(status, "device: ");
  if (const Status status = host_.check_invariants(host); !status.ok()) return with_prefix(status, "host: ");
  return ok_status();
}

Status BlockSpaceManager::check_groups() const {
  size_t num_listed = 0;
  for (const auto& [id, group] : groups_) {
    if (group.sequences.empty() && !group.has_shared()) return broken("group ", id.value(), " owns nothing");
    for (const SeqId seq : group.sequences) {
      const auto table = sequences_.find(seq);
      if (table == sequences_.end()) return broken("sequence ", seq.value(), " has no table");
      if (table->second.group_id != id) return broken("sequence ", seq.value(), " is of another group");
      if (std::count(group.sequences.begin(), group.sequences.end(), seq) != 1) {
        return broken("sequence ", seq.value(), " is listed twice");
      }
    }
    num_listed += group.sequences.size();
  }
  if (num_listed != sequences_.size()) return broken("a table belongs to no group");
  for (const auto& [seq, table] : sequences_) {
    if (table.blocks.size() != sequence_specs().size())
      return broken("sequence ", seq.value(), " lacks a spec's table");
    for (size_t i = 0; i < sequence_specs().size(); ++i) {
      if (std::ssize(table.blocks[i]) == num_blocks_for(sequence_specs()[i], table.num_tokens)) continue;
      return broken("sequence ", seq.value(), " of ", table.num_tokens, " tokens has ", table.blocks[i].size(),
                    " blocks of spec ", sequence_specs()[i]);
    }
  }
  return ok_status();
}

Status BlockSpaceManager::check_shared_tables() const {
  absl::flat_hash_map<int64_t, int32_t> owners;
  for (const auto& [id, group] : groups_) {
    for (const int64_t key : group.shared) {
      if (key == kNoTable) continue;
      const auto table = shared_tables_.find(key);
      if (table == shared_tables_.end()) return broken("group ", id.value(), " has lost a shared table");
      if (table->second.num_owners > 1 && group.pool != MemoryPool::kDevice) {
        return broken("group ", id.value(), ": a table of several owners was swapped");
      }
      ++owners[key];
    }
  }
  for (const auto& [id, key] : reservations_) ++owners[key];
  for (const auto& [key, table] : shared_tables_) {
    const auto entry = owners.find(key);
    if ((entry == owners.end() ? 0 : entry->second) != table.num_owners) {
      return broken("shared table ", key, " counts ", table.num_owners, " owners");
    }
    if (options_.specs.at(static_cast<size_t>(table.spec)).owner == TableOwner::kSequence) {
      return broken("shared table ", key, " is of a spec of sequences");
    }
    if (std::ssize(table.blocks) != num_blocks_for(table.spec, table.num_tokens)) {
      return broken("shared table ", key, " of ", table.num_tokens, " tokens has ", table.blocks.size(), " blocks");
    }
  }
  for (const auto& [offer, key] : offered_) {
    const auto table = shared_tables_.find(key);
    const bool is_found = table != shared_tables_.end() && table->second.digest == offer.first;
    if (!is_found || table->second.spec != offer.second) return broken("a shared digest leads nowhere");
  }
  return ok_status();
}

// Exactly the tables without an owner are idle, each once in the order both ways, and each is there because a pin or
// its spec wants it, and can be found.
Status BlockSpaceManager::check_idle_tables() const {
  int64_t num_idle = 0, num_blocks = 0, before = kNoTable, num_cached = 0, num_cached_blocks = 0;
  const auto num_tables = static_cast<int64_t>(shared_tables_.size());
  for (int64_t key = idle_longest_; key != kNoTable; ++num_idle) {
    const auto entry = shared_tables_.find(key);
    if (num_idle >= num_tables || entry == shared_tables_.end())
      return broken("the order of idle tables leads nowhere");
    const SharedTable& table = entry->second;
    if (!table.is_idle || table.num_owners > 0) return broken("idle table ", key, " is not idle");
    if (table.idle_before != before) return broken("idle table ", key, " is out of order");
    if (!is_kept(key, table)) return broken("idle table ", key, " may not stay");
    if (table.is_cached == pinned_.contains(*table.digest)) return broken("idle table ", key, " is pinned or cached");
    num_cached += table.is_cached ? 1 : 0;
    num_cached_blocks += table.is_cached ? std::ssize(table.blocks) : 0;
    num_blocks += std::ssize(table.blocks);
    before = key;
    key = table.idle_after;
  }
  if (idle_shortest_ != before) return broken("the order of idle tables ends elsewhere");
  if (num_blocks != num_idle_blocks_ - num_idle_prefix_blocks_) {
    return broken("idle tables count ", num_idle_blocks_ - num_idle_prefix_blocks_, " blocks");
  }
  if (num_cached != cache_counts_.num_tables || num_cached_blocks != cache_counts_.num_blocks) {
    return broken("the cache counts ", cache_counts_.num_tables, " tables");
  }
  if (num_cached_blocks + num_idle_prefix_blocks_ > options_.max_cached_blocks.value_or(device_.num_total())) {
    return broken("the cache holds more than its cap");
  }
  const auto num_unowned = std::count_if(shared_tables_.begin(), shared_tables_.end(),
                                         [](const auto& entry) { return entry.second.num_owners == 0; });
  if (num_unowned != num_idle) return broken("a shared table has no owner and is not idle");
  return ok_status();
}

// Each hash leads to one block and back, which is in use unless it is idle; idle ones are in the order both ways.
Status BlockSpaceManager::check_known_blocks() const {
  if (blocks_by_hash_.size() != known_blocks_.size()) return broken("a block has two hashes, or a hash two blocks");
  int32_t num_idle = 0, num_in_order = 0;
  for (const auto& [block, known] : known_blocks_) {
    const auto entry = blocks_by_hash_.find(known.hash);
    if (entry == blocks_by_hash_.end() || entry->second != block) return broken("block ", block, " is not found");
    if (known.is_idle != (device_.num_references(block) == 0)) return broken("block ", block, " is idle, or is not");
    num_idle += known.is_idle ? 1 : 0;
  }
  BlockId before = kNoBlock;
  for (BlockId block = oldest_idle_block_; block != kNoBlock; ++num_in_order) {
    const auto entry = known_blocks_.find(block);
    if (num_in_order >= num_idle || entry == known_blocks_.end() || !entry->second.is_idle ||
        entry->second.before != before) {
      return broken("the order of idle blocks leads nowhere");
    }
    before = block;
    block = entry->second.after;
  }
  if (newest_idle_block_ != before || num_in_order != num_idle || num_idle != num_idle_prefix_blocks_)
    return broken("the order of idle blocks ends elsewhere");
  return ok_status();
}

// What was written is found by its digest; what was not is its reservation's alone.
Status BlockSpaceManager::check_reservations() const {
  absl::flat_hash_map<int64_t, int32_t> counts;
  int64_t num_blocks = 0;
  for (const auto& [id, key] : reservations_) {
    const auto entry = shared_tables_.find(key);
    if (entry == shared_tables_.end()) return broken("reservation ", id.value(), " has lost its table");
    const SharedTable& table = entry->second;
    if (++counts[key] == 1) num_blocks += std::ssize(table.blocks);
    if (table.state == WriteState::kBegun) return broken("reservation ", id.value(), " is written by a step");
    const auto offer = offered_.find({*table.digest, table.spec});
    const bool is_found = offer != offered_.end() && offer->second == key;
    if (is_found != (table.state == WriteState::kWritten)) {
      return broken("reservation ", id.value(), is_found ? " is found unwritten" : " is written and not found");
    }
    if (!is_found && table.num_owners > 1) return broken("reservation ", id.value(), " shares what is not written");
  }
  for (const auto& [key, table] : shared_tables_) {
    const auto entry = counts.find(key);
    if (table.num_reservations == (entry == counts.end() ? 0 : entry->second)) continue;
    return broken("shared table ", key, " counts ", table.num_reservations, " reservations");
  }
  if (num_blocks != num_reserved_blocks_) return broken("reservations count ", num_reserved_blocks_, " blocks");
  if (num_blocks > options_.max_reserved_blocks) return broken("reservations hold more than their cap");
  return ok_status();
}

}  // namespace transept
