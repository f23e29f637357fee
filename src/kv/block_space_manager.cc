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
  bool has_sequence_spec = false;
  for (const TableSpec& spec : specs) {
    has_sequence_spec |= spec.owner == TableOwner::kSequence;
    if (spec.tokens_per_block >= 0 && spec.tokens_per_block <= kMaxBlockSize) continue;
    return field_error("specs",
                       str_cat("tokens_per_block must be 0 to ", kMaxBlockSize, ", is ", spec.tokens_per_block));
  }
  if (!has_sequence_spec) return field_error("specs", "must have one of owner kSequence");
  if (num_device_blocks < 1) {
    return field_error("num_device_blocks", str_cat("must be at least 1, is ", num_device_blocks));
  }
  if (num_host_blocks < 0) {
    return field_error("num_host_blocks", str_cat("must be at least 0, is ", num_host_blocks));
  }
  if (max_reserved_blocks < 0 || max_reserved_blocks > num_device_blocks) {
    return field_error("max_reserved_blocks",
                       str_cat("must be 0 to num_device_blocks, is ", max_reserved_blocks, " of ", num_device_blocks));
  }
  if (cache_inputs && !share_identical_inputs) {
    return field_error("cache_inputs", "needs share_identical_inputs: what is not shared is not found again");
  }
  if (max_cached_blocks.value_or(0) < 0) {
    return field_error("max_cached_blocks", str_cat("must be at least 0, is ", *max_cached_blocks));
  }
  if (cache_ttl.value_or(Duration::zero()) < Duration::zero()) {
    return field_error("cache_ttl", "must not be negative");
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
  for (size_t i = 0; i < options.specs.size(); ++i) {
    specs_of_[static_cast<size_t>(options.specs[i].owner)].push_back(static_cast<int32_t>(i));
  }
}

int32_t BlockSpaceManager::tokens_per_block(int32_t spec) const {
  const int32_t own = options_.specs.at(static_cast<size_t>(spec)).tokens_per_block;
  return own > 0 ? own : options_.block_size;
}

bool BlockSpaceManager::keeps_unused(int32_t spec) const {
  return options_.keep_unused_items && options_.specs.at(static_cast<size_t>(spec)).owner == TableOwner::kItem;
}

int32_t BlockSpaceManager::num_blocks_for(int32_t spec, int64_t num_tokens) const {
  return static_cast<int32_t>(ceil_div(num_tokens, tokens_per_block(spec)));
}

int64_t BlockSpaceManager::num_blocks_for(TableOwner owner, int64_t num_tokens) const {
  int64_t count = 0;
  for (const int32_t spec : specs_of(owner)) count += ceil_div(num_tokens, tokens_per_block(spec));
  return count;
}

int64_t BlockSpaceManager::num_full_sequence_blocks(int64_t num_tokens) const {
  int64_t count = 0;
  for (const int32_t spec : sequence_specs()) count += num_tokens / tokens_per_block(spec);
  return count;
}

bool BlockSpaceManager::Group::has_shared() const {
  return std::any_of(shared.begin(), shared.end(), [](int64_t key) { return key != kNoTable; });
}

// ---- Admission

int32_t BlockSpaceManager::num_needed_blocks(const Request& request) const {
  int64_t count = num_blocks_for(TableOwner::kSequence, request.num_tokens);
  for (size_t i = 0; i < request.shared.size(); ++i) {
    if (!shares(request, i)) count += num_blocks_for(request.shared[i].spec, request.shared[i].num_tokens);
  }
  count -= find_prefix(request.prefix);
  return static_cast<int32_t>(count);
}

AllocStatus BlockSpaceManager::can_allocate(const Request& request) const {
  const int64_t need = int64_t{num_needed_blocks(request)} + request.num_blocks_ahead;
  if (device_.num_total() - options_.max_reserved_blocks - need < watermark_blocks_) return AllocStatus::kNever;
  return num_available_blocks(request) - need >= watermark_blocks_ ? AllocStatus::kOk : AllocStatus::kLater;
}

bool BlockSpaceManager::allocate(const Request& request) {
  CHECK(num_needed_blocks(request) <= num_available_blocks(request), "allocate without can_allocate");
  CHECK(!groups_.contains(request.group_id), "group ", request.group_id.value(), " has tables already");
  const auto [entry, is_new] = sequences_.try_emplace(request.seq_id);
  CHECK(is_new, "sequence ", request.seq_id.value(), " has a table already");

  // What exists is joined first of all, so that a table which was idle is not evicted for the blocks of its own group.
  absl::InlinedVector<int64_t, 2> shared(request.shared.size(), kNoTable);
  for (size_t i = 0; i < shared.size(); ++i) {
    if (shares(request, i)) shared[i] = join_shared(request.shared[i]);
  }
  SequenceTable& table = entry->second;
  table.group_id = request.group_id;
  table.num_tokens = request.num_tokens;
  const int32_t num_known = find_prefix(request.prefix);
  CHECK(num_known == 0 || num_known < num_blocks_for(sequence_specs().front(), request.num_tokens), "no new block");
  for (const int32_t spec : sequence_specs()) {
    BlockTable& blocks =
        table.blocks.emplace_back(take_table(num_blocks_for(spec, std::max(request.num_tokens, request.max_tokens))));
    for (int32_t i = 0; i < num_known; ++i) blocks.push_back(join_block(request.prefix[static_cast<size_t>(i)]));
    for (int32_t i = num_known; i < num_blocks_for(spec, request.num_tokens); ++i) {
      blocks.push_back(take_block(MemoryPool::kDevice));
    }
  }
  bool is_any_new = false;
  for (size_t i = 0; i < shared.size(); ++i) {
    if (shared[i] != kNoTable) continue;
    shared[i] = add_shared(request.shared[i]);
    is_any_new = true;
  }
  Group& group = groups_[request.group_id];
  group.sequences.push_back(request.seq_id);
  group.shared = std::move(shared);
  return is_any_new;
}

// ---- Growth

bool BlockSpaceManager::writes_shared_block(const SequenceTable& table, size_t sequence_spec) const {
  return table.num_tokens % tokens_per_block(sequence_specs()[sequence_spec]) != 0 &&
         device_.num_references(table.blocks[sequence_spec].back()) > 1;
}

int32_t BlockSpaceManager::num_new_blocks(const SequenceTable& table, int32_t num_tokens) const {
  const int64_t after = num_blocks_for(TableOwner::kSequence, int64_t{table.num_tokens} + num_tokens);
  return static_cast<int32_t>(after - num_blocks_for(TableOwner::kSequence, table.num_tokens));
}

bool BlockSpaceManager::can_append_slots(std::span<const SlotRequest> requests) const {
  int64_t need = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].num_tokens == 0) continue;
    const SequenceTable& table = existing(sequences_, requests[i].seq_id, "sequence");
    need += num_new_blocks(table, requests[i].num_tokens);
    for (size_t spec = 0; spec < sequence_specs().size(); ++spec) {
      if (!writes_shared_block(table, spec)) continue;
      // Of r owners that all write into it, the last one finds the block its own: r - 1 copies.
      const BlockId block = table.blocks[spec].back();
      int32_t num_earlier = 0;
      for (size_t j = 0; j < i; ++j) {
        const SequenceTable& other = existing(sequences_, requests[j].seq_id, "sequence");
        num_earlier += requests[j].num_tokens > 0 && other.num_tokens % tokens_per_block(sequence_specs()[spec]) != 0 &&
                       other.blocks[spec].back() == block;
      }
      if (num_earlier < device_.num_references(block) - 1) ++need;
    }
  }
  return need <= num_available_device_blocks();
}

void BlockSpaceManager::append_slots(SeqId seq_id, int32_t num_tokens, std::vector<BlockCopy>& copies) {
  CHECK(num_tokens >= 0);
  if (num_tokens == 0) return;
  SequenceTable& table = existing(sequences_, seq_id, "sequence");
  CHECK(existing(groups_, table.group_id, "group").pool == MemoryPool::kDevice, "a swapped sequence cannot grow");
  for (size_t spec = 0; spec < sequence_specs().size(); ++spec) {
    if (!writes_shared_block(table, spec)) {
      // Full once, and truncated since: what it holds from now on is something else.
      if (table.num_tokens % tokens_per_block(sequence_specs()[spec]) != 0) forget_block(table.blocks[spec].back());
      continue;
    }
    BlockId& last = table.blocks[spec].back();
    const BlockId own = take_block(MemoryPool::kDevice);
    copies.push_back({.src = last, .dst = own});
    release(MemoryPool::kDevice, last);
    last = own;
  }
  table.num_tokens += num_tokens;
  for (size_t spec = 0; spec < sequence_specs().size(); ++spec) {
    while (std::ssize(table.blocks[spec]) < num_blocks_for(sequence_specs()[spec], table.num_tokens)) {
      table.blocks[spec].push_back(take_block(MemoryPool::kDevice));
    }
  }
}

void BlockSpaceManager::fork(SeqId parent, SeqId child) {
  const auto [entry, is_new] = sequences_.try_emplace(child);
  CHECK(is_new, "sequence ", child.value(), " has a table already");
  const SequenceTable& from = existing(sequences_, parent, "sequence");
  SequenceTable& to = entry->second;
  to.group_id = from.group_id;
  to.num_tokens = from.num_tokens;
  Group& group = existing(groups_, to.group_id, "group");
  for (const BlockTable& blocks : from.blocks) {
    BlockTable& copy = to.blocks.emplace_back(take_table(static_cast<int32_t>(blocks.capacity())));
    copy.assign(blocks.begin(), blocks.end());
    for (const BlockId block : copy) allocator(group.pool).add_reference(block);
  }
  group.sequences.push_back(child);
}

void BlockSpaceManager::truncate(SeqId seq_id, int32_t num_tokens) {
  SequenceTable& table = existing(sequences_, seq_id, "sequence");
  CHECK(num_tokens >= 0 && num_tokens <= table.num_tokens, "truncate to ", num_tokens, " of ", table.num_tokens);
  const MemoryPool pool = existing(groups_, table.group_id, "group").pool;
  if (options_.track_freed_blocks && num_tokens < table.num_tokens) {
    truncated_.push_back({seq_id, num_tokens, table.num_tokens});
  }
  table.num_tokens = num_tokens;
  for (size_t spec = 0; spec < sequence_specs().size(); ++spec) {
    BlockTable& blocks = table.blocks[spec];
    while (std::ssize(blocks) > num_blocks_for(sequence_specs()[spec], num_tokens)) {
      release(pool, blocks.back());
      blocks.pop_back();
    }
  }
}

// ---- Swapping

int32_t BlockSpaceManager::num_distinct_blocks(const Group& group) const {
  absl::flat_hash_set<BlockId> distinct;
  for (const SeqId seq : group.sequences) {
    for (const BlockTable& blocks : existing(sequences_, seq, "sequence").blocks) {
      distinct.insert(blocks.begin(), blocks.end());
    }
  }
  size_t shared = 0;
  for (const int64_t key : group.shared) shared += key == kNoTable ? 0 : shared_tables_.at(key).blocks.size();
  return static_cast<int32_t>(distinct.size() + shared);
}

AllocStatus BlockSpaceManager::can_swap_in(GroupId group_id) const {
  const Group& group = existing(groups_, group_id, "group");
  CHECK(group.pool == MemoryPool::kHost);
  const auto num_shared = std::ssize(group.shared) - std::count(group.shared.begin(), group.shared.end(), kNoTable);
  const int64_t num_growing = std::ssize(group.sequences) * std::ssize(sequence_specs()) + num_shared;
  const int64_t need = num_distinct_blocks(group) + num_growing;
  if (need > device_.num_total() - options_.max_reserved_blocks) return AllocStatus::kNever;
  return num_available_device_blocks() - need >= watermark_blocks_ ? AllocStatus::kOk : AllocStatus::kLater;
}

bool BlockSpaceManager::can_swap_out(GroupId group_id) const {
  const Group& group = existing(groups_, group_id, "group");
  CHECK(group.pool == MemoryPool::kDevice);
  for (const int64_t key : group.shared) {
    if (key == kNoTable) continue;
    const SharedTable& table = shared_tables_.at(key);
    if (table.num_owners > 1 || table.state != WriteState::kWritten) return false;
  }
  return num_distinct_blocks(group) <= host_.num_free();
}

void BlockSpaceManager::swap_in(GroupId group_id, std::vector<BlockCopy>& moves) {
  Group& group = existing(groups_, group_id, "group");
  CHECK(group.pool == MemoryPool::kHost && num_distinct_blocks(group) <= num_available_device_blocks());
  move(group, MemoryPool::kDevice, moves);
  for (const int64_t key : group.shared) {
    if (key != kNoTable) offer_for_sharing(key, shared_tables_.at(key));
  }
}

void BlockSpaceManager::swap_out(GroupId group_id, std::vector<BlockCopy>& moves) {
  Group& group = existing(groups_, group_id, "group");
  CHECK(can_swap_out(group_id));
  for (const int64_t key : group.shared) {
    if (key != kNoTable) withdraw_from_sharing(key, shared_tables_.at(key));
  }
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
  for (const SeqId seq : group.sequences) {
    for (BlockTable& blocks : existing(sequences_, seq, "sequence").blocks) move_table(blocks);
  }
  for (const int64_t key : group.shared) {
    if (key != kNoTable) move_table(shared_tables_.at(key).blocks);
  }
  group.pool = to;
}

// ---- Freeing

void BlockSpaceManager::release(MemoryPool pool, BlockId block) {
  if (pool == MemoryPool::kDevice && !known_blocks_.empty() && device_.num_references(block) == 1) {
    const auto known = known_blocks_.find(block);
    if (known != known_blocks_.end()) return begin_idle_block(block, known->second);
  }
  if (allocator(pool).release(block) && options_.track_freed_blocks) {
    (pool == MemoryPool::kDevice ? freed_device_ : freed_host_).push_back(block);
  }
}

void BlockSpaceManager::free(SeqId seq_id) {
  const auto entry = sequences_.find(seq_id);
  if (entry == sequences_.end()) return;
  const GroupId group_id = entry->second.group_id;
  Group& group = existing(groups_, group_id, "group");
  for (BlockTable& blocks : entry->second.blocks) {
    // Of remembered blocks the last is evicted first: without it the others are of use.
    if (caches_prefixes()) {
      for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) release(group.pool, *block);
    } else {
      for (const BlockId block : blocks) release(group.pool, block);
    }
    keep_table(std::move(blocks));
  }
  sequences_.erase(entry);
  group.sequences.erase(std::find(group.sequences.begin(), group.sequences.end(), seq_id));
  drop_if_empty(group_id);
}

void BlockSpaceManager::free_shared(GroupId group_id) {
  const auto entry = groups_.find(group_id);
  if (entry == groups_.end()) return;
  for (int64_t& key : entry->second.shared) release_shared(std::exchange(key, kNoTable), entry->second.pool);
  drop_if_empty(group_id);
}

void BlockSpaceManager::free_shared(GroupId group_id, size_t i) {
  const auto entry = groups_.find(group_id);
  if (entry == groups_.end() || i >= entry->second.shared.size()) return;
  release_shared(std::exchange(entry->second.shared[i], kNoTable), entry->second.pool);
  drop_if_empty(group_id);
}

void BlockSpaceManager::drop_if_empty(GroupId group_id) {
  const auto entry = groups_.find(group_id);
  if (entry->second.sequences.empty() && !entry->second.has_shared()) groups_.erase(entry);
}

void BlockSpaceManager::reset() {
  while (!groups_.empty()) {
    // Copied, because freeing changes the group.
    const GroupId group_id = groups_.begin()->first;
    const std::vector<SeqId> sequences = groups_.begin()->second.sequences;
    for (const SeqId seq : sequences) free(seq);
    free_shared(group_id);
  }
  while (!reservations_.empty()) free(reservations_.begin()->first);
  clear_cache();
  device_.reset();
  host_.reset();
}

BlockTable BlockSpaceManager::take_table(int32_t num_blocks) {
  BlockTable table;
  if (!spare_tables_.empty()) {
    table = std::move(spare_tables_.back());
    spare_tables_.pop_back();
  }
  table.reserve(static_cast<size_t>(num_blocks));
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
  for (const Truncated& lost : truncated_) take_truncated(lost, moves.truncated);
  truncated_.clear();
}

// Of the blocks that are the sequence's alone: in others these slots may be tokens of others that share them. A
// remembered one keeps what it is found by until its owner writes into it.
void BlockSpaceManager::take_truncated(const Truncated& lost, std::vector<SlotRange>& slots) const {
  const auto entry = sequences_.find(lost.seq_id);
  if (entry == sequences_.end() || is_swapped(entry->second.group_id)) return;
  for (size_t i = 0; i < sequence_specs().size(); ++i) {
    const int32_t spec = sequence_specs()[i], size = tokens_per_block(spec);
    const BlockTable& blocks = entry->second.blocks[i];
    const auto num_slots = static_cast<int32_t>(std::min<int64_t>(std::ssize(blocks) * size, lost.end));
    for (int32_t begin = lost.begin; begin < num_slots;) {
      const int32_t first = begin % size, count = std::min(size - first, num_slots - begin);
      const BlockId block = blocks[static_cast<size_t>(begin / size)];
      if (device_.num_references(block) == 1 && !known_blocks_.contains(block)) {
        slots.push_back({spec, block, first, first + count});
      }
      begin += count;
    }
  }
}

// ---- Questions

std::span<const BlockId> BlockSpaceManager::get_block_table(SeqId seq_id, size_t sequence_spec) const {
  const auto entry = sequences_.find(seq_id);
  return entry == sequences_.end() ? std::span<const BlockId>() : entry->second.blocks.at(sequence_spec);
}

std::span<const BlockId> BlockSpaceManager::get_shared_table(GroupId group_id, size_t i) const {
  const auto entry = groups_.find(group_id);
  if (entry == groups_.end() || i >= entry->second.shared.size()) return {};
  const int64_t key = entry->second.shared[i];
  return key == kNoTable ? std::span<const BlockId>() : shared_tables_.at(key).blocks;
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
  const auto count = [&](int64_t key) {
    if (key == kNoTable || !seen.insert(key).second) return;
    const SharedTable& table = shared_tables_.at(key);
    const bool is_item = options_.specs[static_cast<size_t>(table.spec)].owner == TableOwner::kItem;
    (is_item ? usage.items : usage.cross) += static_cast<int32_t>(table.blocks.size());
  };
  for (const auto& [id, group] : groups_) {
    if (group.pool != MemoryPool::kDevice) continue;
    for (const int64_t key : group.shared) count(key);
  }
  for (const auto& [id, key] : reservations_) count(key);
  usage.pinned = num_idle_blocks_;
  usage.self = device_.num_total() - num_available_device_blocks() - usage.cross - usage.items;
  return usage;
}

}  // namespace transept
