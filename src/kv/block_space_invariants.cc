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
  RETURN_IF_ERROR(check_cross_tables());
  RETURN_IF_ERROR(check_idle_tables());

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
      if (!count(group.pool, sequences_.at(seq).blocks)) return broken("sequence ", seq.value(), ": no such block");
    }
    if (group.cross == kNoCross || !seen.insert(group.cross).second) continue;
    if (!count(group.pool, cross_tables_.at(group.cross).blocks))
      return broken("group ", id.value(), ": no such block");
  }
  for (const int64_t key : idle_) {
    if (!count(MemoryPool::kDevice, cross_tables_.at(key).blocks)) return broken("idle table ", key, ": no such block");
  }
  if (const Status status = device_.check_invariants(device); !status.ok()) return with_prefix(status, "device: ");
  if (const Status status = host_.check_invariants(host); !status.ok()) return with_prefix(status, "host: ");
  return ok_status();
}

Status BlockSpaceManager::check_groups() const {
  size_t num_listed = 0;
  for (const auto& [id, group] : groups_) {
    if (group.sequences.empty() && group.cross == kNoCross) return broken("group ", id.value(), " owns nothing");
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
    if (static_cast<int32_t>(table.blocks.size()) != num_blocks_for(table.num_tokens)) {
      return broken("sequence ", seq.value(), " of ", table.num_tokens, " tokens has ", table.blocks.size(), " blocks");
    }
  }
  return ok_status();
}

Status BlockSpaceManager::check_cross_tables() const {
  absl::flat_hash_map<int64_t, int32_t> owners;
  for (const auto& [id, group] : groups_) {
    if (group.cross == kNoCross) continue;
    const auto table = cross_tables_.find(group.cross);
    if (table == cross_tables_.end()) return broken("group ", id.value(), " has lost its cross table");
    if (table->second.num_owners > 1 && group.pool != MemoryPool::kDevice) {
      return broken("group ", id.value(), ": a shared cross table was swapped");
    }
    ++owners[group.cross];
  }
  for (const auto& [key, cross] : cross_tables_) {
    const auto entry = owners.find(key);
    if ((entry == owners.end() ? 0 : entry->second) != cross.num_owners) {
      return broken("cross table ", key, " counts ", cross.num_owners, " owners");
    }
    if (static_cast<int32_t>(cross.blocks.size()) != num_blocks_for(cross.num_tokens)) {
      return broken("cross table ", key, " of ", cross.num_tokens, " tokens has ", cross.blocks.size(), " blocks");
    }
  }
  for (const auto& [digest, key] : shared_cross_) {
    const auto cross = cross_tables_.find(key);
    if (cross == cross_tables_.end() || cross->second.digest != digest) return broken("a shared digest leads nowhere");
  }
  return ok_status();
}

// Exactly the tables without an owner are idle, and each is there because a pin wants it and can find it.
Status BlockSpaceManager::check_idle_tables() const {
  int32_t num_blocks = 0;
  for (const int64_t key : idle_) {
    const auto entry = cross_tables_.find(key);
    if (entry == cross_tables_.end() || entry->second.num_owners > 0) return broken("idle table ", key, " is not idle");
    if (std::count(idle_.begin(), idle_.end(), key) != 1) return broken("idle table ", key, " is listed twice");
    if (!is_kept(key, entry->second)) return broken("idle table ", key, " is kept for nobody");
    num_blocks += static_cast<int32_t>(entry->second.blocks.size());
  }
  if (num_blocks != num_idle_blocks_) return broken("idle tables count ", num_idle_blocks_, " blocks");
  const auto num_unowned = std::count_if(cross_tables_.begin(), cross_tables_.end(),
                                         [](const auto& entry) { return entry.second.num_owners == 0; });
  if (num_unowned != static_cast<int64_t>(idle_.size())) return broken("a cross table belongs to nobody");
  return ok_status();
}

}  // namespace transept
