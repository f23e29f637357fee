#include "kv/block_space_manager.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"

namespace transept {
namespace {

// The entry of an id that must have one.
template <typename Map, typename Id>
auto& existing(Map& map, Id id, std::string_view what) {
  const auto entry = map.find(id);
  CHECK(entry != map.end(), what, " ", id.value(), " has no table");
  return entry->second;
}

}  // namespace

Status BlockSpaceManager::Options::validate() const {
  if (block_size < 1 || block_size > kMaxBlockSize) {
    return field_error("block_size", str_cat("must be 1 to ", kMaxBlockSize, ", is ", block_size));
  }
  if (num_device_blocks < 1) {
    return field_error("num_device_blocks", str_cat("must be at least 1, is ", num_device_blocks));
  }
  if (num_host_blocks < 0) {
    return field_error("num_host_blocks", str_cat("must be at least 0, is ", num_host_blocks));
  }
  if (!(watermark >= 0 && watermark < 1)) {
    return field_error("watermark", str_cat("must be at least 0 and below 1, is ", watermark));
  }
  return ok_status();
}

BlockSpaceManager::BlockSpaceManager(const Options& options)
    : options_(options),
      watermark_blocks_(static_cast<int32_t>(options.watermark * options.num_device_blocks)),
      device_(options.num_device_blocks, options.shuffle_seed),
      host_(options.num_host_blocks, options.shuffle_seed) {
  const Status status = options.validate();
  CHECK(status.ok(), error_message(status));
}

int32_t BlockSpaceManager::num_blocks_for(int64_t num_tokens) const {
  return static_cast<int32_t>(ceil_div(num_tokens, options_.block_size));
}

// ---- Admission

int32_t BlockSpaceManager::num_needed_blocks(const Request& request) const {
  const int32_t cross = shares_cross(request) ? 0 : num_blocks_for(request.num_encoder_tokens);
  return cross + num_blocks_for(request.num_tokens);
}

AllocStatus BlockSpaceManager::can_allocate(const Request& request) const {
  const int64_t need = int64_t{num_needed_blocks(request)} + request.num_blocks_ahead;
  if (device_.num_total() - need < watermark_blocks_) return AllocStatus::kNever;
  return num_available_blocks(request) - need >= watermark_blocks_ ? AllocStatus::kOk : AllocStatus::kLater;
}

bool BlockSpaceManager::allocate(const Request& request) {
  CHECK(num_needed_blocks(request) <= num_available_blocks(request), "allocate without can_allocate");
  CHECK(!groups_.contains(request.group_id), "group ", request.group_id.value(), " has tables already");
  const auto [entry, is_new] = sequences_.try_emplace(request.seq_id);
  CHECK(is_new, "sequence ", request.seq_id.value(), " has a table already");

  Group& group = groups_[request.group_id];
  group.sequences.push_back(request.seq_id);
  const bool is_shared = shares_cross(request);
  // First of all, so that a table which was idle is not given up for the blocks of its own group.
  if (is_shared) join_cross(group, request);

  SequenceTable& table = entry->second;
  table.group_id = request.group_id;
  table.num_tokens = request.num_tokens;
  table.blocks = take_table(std::max(request.num_tokens, request.max_tokens));
  for (int32_t i = 0; i < num_blocks_for(request.num_tokens); ++i) {
    table.blocks.push_back(take_block(MemoryPool::kDevice));
  }
  if (is_shared || request.num_encoder_tokens == 0) return false;
  add_cross(group, request);
  return true;
}

// ---- Growth

bool BlockSpaceManager::writes_shared_block(const SequenceTable& table) const {
  return table.num_tokens % options_.block_size != 0 && device_.num_references(table.blocks.back()) > 1;
}

int32_t BlockSpaceManager::num_new_blocks(const SequenceTable& table, int32_t num_tokens) const {
  return num_blocks_for(int64_t{table.num_tokens} + num_tokens) - static_cast<int32_t>(table.blocks.size());
}

bool BlockSpaceManager::can_append_slots(std::span<const SlotRequest> requests) const {
  int64_t need = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].num_tokens == 0) continue;
    const SequenceTable& table = existing(sequences_, requests[i].seq_id, "sequence");
    need += num_new_blocks(table, requests[i].num_tokens);
    if (!writes_shared_block(table)) continue;
    // Of r owners that all write into it, the last one finds the block its own: r - 1 copies.
    int32_t num_earlier = 0;
    for (size_t j = 0; j < i; ++j) {
      const SequenceTable& other = existing(sequences_, requests[j].seq_id, "sequence");
      num_earlier += requests[j].num_tokens > 0 && other.num_tokens % options_.block_size != 0 &&
                     other.blocks.back() == table.blocks.back();
    }
    if (num_earlier < device_.num_references(table.blocks.back()) - 1) ++need;
  }
  return need <= num_available_device_blocks();
}

void BlockSpaceManager::append_slots(SeqId seq_id, int32_t num_tokens, std::vector<BlockCopy>& copies) {
  CHECK(num_tokens >= 0);
  if (num_tokens == 0) return;
  SequenceTable& table = existing(sequences_, seq_id, "sequence");
  CHECK(existing(groups_, table.group_id, "group").pool == MemoryPool::kDevice, "a swapped sequence cannot grow");
  if (writes_shared_block(table)) {
    const BlockId own = take_block(MemoryPool::kDevice);
    copies.push_back({.src = table.blocks.back(), .dst = own});
    release(MemoryPool::kDevice, table.blocks.back());
    table.blocks.back() = own;
  }
  table.num_tokens += num_tokens;
  while (static_cast<int32_t>(table.blocks.size()) < num_blocks_for(table.num_tokens)) {
    table.blocks.push_back(take_block(MemoryPool::kDevice));
  }
}

void BlockSpaceManager::fork(SeqId parent, SeqId child) {
  const auto [entry, is_new] = sequences_.try_emplace(child);
  CHECK(is_new, "sequence ", child.value(), " has a table already");
  const SequenceTable& from = existing(sequences_, parent, "sequence");
  SequenceTable& to = entry->second;
  to.group_id = from.group_id;
  to.num_tokens = from.num_tokens;
  to.blocks = take_table(static_cast<int64_t>(from.blocks.capacity()) * options_.block_size);
  to.blocks.assign(from.blocks.begin(), from.blocks.end());
  Group& group = existing(groups_, to.group_id, "group");
  for (const BlockId block : to.blocks) allocator(group.pool).add_reference(block);
  group.sequences.push_back(child);
}

void BlockSpaceManager::truncate(SeqId seq_id, int32_t num_tokens) {
  SequenceTable& table = existing(sequences_, seq_id, "sequence");
  CHECK(num_tokens >= 0 && num_tokens <= table.num_tokens, "truncate to ", num_tokens, " of ", table.num_tokens);
  const MemoryPool pool = existing(groups_, table.group_id, "group").pool;
  table.num_tokens = num_tokens;
  while (static_cast<int32_t>(table.blocks.size()) > num_blocks_for(num_tokens)) {
    release(pool, table.blocks.back());
    table.blocks.pop_back();
  }
}

// ---- Swapping

int32_t BlockSpaceManager::num_distinct_blocks(const Group& group) const {
  absl::flat_hash_set<BlockId> distinct;
  for (const SeqId seq : group.sequences) {
    const BlockTable& blocks = existing(sequences_, seq, "sequence").blocks;
    distinct.insert(blocks.begin(), blocks.end());
  }
  const size_t cross = group.cross == kNoCross ? 0 : cross_tables_.at(group.cross).blocks.size();
  return static_cast<int32_t>(distinct.size() + cross);
}

AllocStatus BlockSpaceManager::can_swap_in(GroupId group_id) const {
  const Group& group = existing(groups_, group_id, "group");
  CHECK(group.pool == MemoryPool::kHost);
  const int64_t num_growing = static_cast<int64_t>(group.sequences.size()) + (group.cross != kNoCross ? 1 : 0);
  const int64_t need = num_distinct_blocks(group) + num_growing;
  if (need > device_.num_total()) return AllocStatus::kNever;
  return num_available_device_blocks() - need >= watermark_blocks_ ? AllocStatus::kOk : AllocStatus::kLater;
}

bool BlockSpaceManager::can_swap_out(GroupId group_id) const {
  const Group& group = existing(groups_, group_id, "group");
  CHECK(group.pool == MemoryPool::kDevice);
  if (group.cross != kNoCross) {
    const CrossTable& cross = cross_tables_.at(group.cross);
    if (cross.num_owners > 1 || cross.state != CrossState::kWritten) return false;
  }
  return num_distinct_blocks(group) <= host_.num_free();
}

void BlockSpaceManager::swap_in(GroupId group_id, std::vector<BlockCopy>& moves) {
  Group& group = existing(groups_, group_id, "group");
  CHECK(group.pool == MemoryPool::kHost && num_distinct_blocks(group) <= num_available_device_blocks());
  move(group, MemoryPool::kDevice, moves);
  if (group.cross != kNoCross) offer_for_sharing(group.cross, cross_tables_.at(group.cross));
}

void BlockSpaceManager::swap_out(GroupId group_id, std::vector<BlockCopy>& moves) {
  Group& group = existing(groups_, group_id, "group");
  CHECK(can_swap_out(group_id));
  if (group.cross != kNoCross) withdraw_from_sharing(group.cross, cross_tables_.at(group.cross));
  move(group, MemoryPool::kHost, moves);
}

void BlockSpaceManager::move(Group& group, MemoryPool to, std::vector<BlockCopy>& moves) {
  absl::flat_hash_map<BlockId, BlockId> moved;
  const auto move_table = [&](BlockTable& blocks) {
    for (BlockId& block : blocks) {
      const BlockId source = block;
      if (const auto known = moved.find(source); known != moved.end()) {
        block = known->second;
        allocator(to).add_reference(block);
      } else {
        block = take_block(to);
        moved.emplace(source, block);
        moves.push_back({.src = source, .dst = block});
      }
      release(group.pool, source);
    }
  };
  for (const SeqId seq : group.sequences) move_table(existing(sequences_, seq, "sequence").blocks);
  if (group.cross != kNoCross) move_table(cross_tables_.at(group.cross).blocks);
  group.pool = to;
}

// ---- Freeing

void BlockSpaceManager::release(MemoryPool pool, BlockId block) {
  if (allocator(pool).release(block) && options_.track_freed_blocks) {
    (pool == MemoryPool::kDevice ? freed_device_ : freed_host_).push_back(block);
  }
}

void BlockSpaceManager::free(SeqId seq_id) {
  const auto entry = sequences_.find(seq_id);
  if (entry == sequences_.end()) return;
  const GroupId group_id = entry->second.group_id;
  Group& group = existing(groups_, group_id, "group");
  for (const BlockId block : entry->second.blocks) release(group.pool, block);
  keep_table(std::move(entry->second.blocks));
  sequences_.erase(entry);
  group.sequences.erase(std::find(group.sequences.begin(), group.sequences.end(), seq_id));
  drop_if_empty(group_id);
}

void BlockSpaceManager::free_cross(GroupId group_id) {
  const auto entry = groups_.find(group_id);
  if (entry == groups_.end() || entry->second.cross == kNoCross) return;
  const int64_t key = std::exchange(entry->second.cross, kNoCross);
  CrossTable& cross = cross_tables_.at(key);
  if (--cross.num_owners == 0) {
    if (entry->second.pool == MemoryPool::kDevice) offer_for_sharing(key, cross);
    if (is_kept(key, cross)) {
      begin_idle(key, cross);
    } else {
      drop_cross(key, entry->second.pool);
    }
  }
  drop_if_empty(group_id);
}

void BlockSpaceManager::drop_if_empty(GroupId group_id) {
  const auto entry = groups_.find(group_id);
  if (entry->second.sequences.empty() && entry->second.cross == kNoCross) groups_.erase(entry);
}

void BlockSpaceManager::reset() {
  while (!groups_.empty()) {
    // Copied, because freeing changes the group.
    const GroupId group_id = groups_.begin()->first;
    const std::vector<SeqId> sequences = groups_.begin()->second.sequences;
    for (const SeqId seq : sequences) free(seq);
    free_cross(group_id);
  }
  while (!idle_.empty()) drop_cross(idle_.front(), MemoryPool::kDevice);
  device_.reset();
  host_.reset();
}

BlockTable BlockSpaceManager::take_table(int64_t num_tokens) {
  BlockTable table;
  if (!spare_tables_.empty()) {
    table = std::move(spare_tables_.back());
    spare_tables_.pop_back();
  }
  table.reserve(static_cast<size_t>(num_blocks_for(num_tokens)));
  return table;
}

void BlockSpaceManager::keep_table(BlockTable&& table) {
  table.clear();
  spare_tables_.push_back(std::move(table));
}

void BlockSpaceManager::take_freed_blocks(BlockMoves& moves) {
  moves.freed_device.insert(moves.freed_device.end(), freed_device_.begin(), freed_device_.end());
  std::copy_if(freed_host_.begin(), freed_host_.end(), std::back_inserter(moves.freed_host),
               [this](BlockId block) { return host_.num_references(block) == 0; });
  freed_device_.clear();
  freed_host_.clear();
}

// ---- Questions

std::span<const BlockId> BlockSpaceManager::get_block_table(SeqId seq_id) const {
  const auto entry = sequences_.find(seq_id);
  return entry == sequences_.end() ? std::span<const BlockId>() : entry->second.blocks;
}

std::span<const BlockId> BlockSpaceManager::get_cross_block_table(GroupId group_id) const {
  const auto entry = groups_.find(group_id);
  if (entry == groups_.end() || entry->second.cross == kNoCross) return {};
  return cross_tables_.at(entry->second.cross).blocks;
}

int32_t BlockSpaceManager::num_slots(SeqId seq_id) const {
  const auto entry = sequences_.find(seq_id);
  return entry == sequences_.end() ? 0 : entry->second.num_tokens;
}

bool BlockSpaceManager::is_swapped(GroupId group_id) const {
  const auto entry = groups_.find(group_id);
  return entry != groups_.end() && entry->second.pool == MemoryPool::kHost;
}

BlockSpaceManager::Usage BlockSpaceManager::device_usage() const {
  Usage usage;
  absl::flat_hash_set<int64_t> seen;
  for (const auto& [id, group] : groups_) {
    if (group.pool != MemoryPool::kDevice || group.cross == kNoCross || !seen.insert(group.cross).second) continue;
    usage.cross += static_cast<int32_t>(cross_tables_.at(group.cross).blocks.size());
  }
  usage.pinned = num_idle_blocks_;
  usage.self = device_.num_total() - num_available_device_blocks() - usage.cross;
  return usage;
}

}  // namespace transept
