// Seeded random histories of the block manager against a model that keeps the contents of every slot.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

#include "base/content_digest_testing.h"
#include "kv/block_contents_testing.h"
#include "kv/block_space_manager.h"
#include "kv/random_pool_testing.h"

namespace transept {
namespace {

using Request = BlockSpaceManager::Request;
using testing::Contents;
using testing::GroupModel;
using testing::kMaxPerBlock;
using testing::SharedModel;

class History {
 public:
  explicit History(uint64_t seed)
      : random_(seed),
        options_(testing::random_pool(random_)),
        manager_(options_),
        contents_(options_.num_device_blocks, options_.num_host_blocks, kMaxPerBlock) {}

  Status run(int num_operations) {
    for (int i = 0; i < num_operations; ++i) {
      const std::string_view operation = step();
      manager_.take_freed_blocks(moves_);
      contents_.apply(moves_);
      moves_.clear();
      for (const auto& write : pending_) write();
      pending_.clear();
      if (const Status status = check(); !status.ok()) return with_prefix(status, str_cat("after ", operation, ": "));
    }
    while (!groups_.empty()) free_group(groups_.begin()->first);
    while (!reservations_.empty()) free_reservation(reservations_.begin()->first);
    RETURN_IF_ERROR(manager_.check_invariants());
    if (manager_.num_available_device_blocks() != options_.num_device_blocks) {
      return absl::InternalError("blocks are neither free nor idle");
    }
    for (uint64_t input = 0; input < 1300; ++input) manager_.unpin(testing::digest_of(input));
    RETURN_IF_ERROR(manager_.check_invariants());
    if (options_.cache_ttl.has_value()) {
      manager_.advance_to(now_ + *options_.cache_ttl);
      EXPECT_EQ(manager_.next_expiry(), TimePoint::max());
      EXPECT_EQ(manager_.cache_counts().num_tables, 0);
    } else {
      num_cached_ += manager_.cache_counts().num_tables;
      manager_.clear_cache();
    }
    if (manager_.get_num_free_device_blocks() != options_.num_device_blocks ||
        manager_.get_num_free_host_blocks() != options_.num_host_blocks) {
      return absl::InternalError("blocks are lost");
    }
    return manager_.check_invariants();
  }

  int num_shared_idle() const { return num_shared_idle_; }
  int num_injected() const { return num_injected_; }
  int num_poisoned() const { return num_poisoned_; }
  int num_remembered() const { return num_remembered_; }
  int num_cached() const { return num_cached_; }

 private:
  int32_t draw(int32_t low, int32_t high) { return testing::draw(random_, low, high); }

  std::string_view step() {
    if (drafted_.has_value()) return settle_drafts();
    now_ += std::chrono::seconds(1);
    if (draw(0, 3) == 0) manager_.advance_to(now_);
    switch (draw(0, 22)) {
      case 0:
      case 1: return allocate();
      case 2:
      case 3:
      case 4:
      case 5: return append();
      case 6:
      case 7: return fork();
      case 8: return truncate();
      case 9: return swap();
      case 10: return draw(0, 3) == 0 ? free_some_group() : free_sequence();
      case 11: return pin();
      case 12: return write_late();
      case 13: return free_some_group();
      case 14: return free_one_table();
      case 15:
      case 16: return reserve();
      case 17: return change_reservation();
      case 18:
      case 19: return remember();
      case 20: return draw(0, 9) == 0 ? clear() : remember();
      case 21: return draft();
      default: return draw(0, 60) == 0 ? reset() : append();
    }
  }

  int32_t per_block(int32_t spec) const {
    const int32_t own = options_.specs[static_cast<size_t>(spec)].tokens_per_block;
    return own > 0 ? own : options_.block_size;
  }
  std::vector<int32_t> specs_of(TableOwner owner) const {
    std::vector<int32_t> specs;
    for (size_t i = 0; i < options_.specs.size(); ++i) {
      if (options_.specs[i].owner == owner) specs.push_back(static_cast<int32_t>(i));
    }
    return specs;
  }
  Contents::Table table_of(SeqId seq, size_t sequence_spec) const {
    const int32_t spec = specs_of(TableOwner::kSequence)[sequence_spec];
    return {manager_.get_block_table(seq, sequence_spec), per_block(spec), static_cast<uint64_t>(spec)};
  }
  Contents::Table table_of(GroupId id, const GroupModel& group, size_t i) const {
    const int32_t spec = group.shared[i].spec;
    return {manager_.get_shared_table(id, i), per_block(spec), static_cast<uint64_t>(spec)};
  }
  void write_sequence(SeqId seq, int32_t begin, const std::vector<uint64_t>& tokens) {
    for (size_t i = 0; i < specs_of(TableOwner::kSequence).size(); ++i)
      contents_.write(table_of(seq, i), begin, tokens);
  }
  void write_shared(GroupId id) {
    const GroupModel& group = groups_[id];
    for (size_t i = 0; i < group.shared.size(); ++i) {
      const SharedModel& table = group.shared[i];
      if (table.written && !table.freed) contents_.write(table_of(id, group, i), 0, table.content);
    }
  }

  // An input of a drawn length, which says what it holds; of two texts each.
  SharedModel draw_shared(int32_t spec) {
    const int32_t num_tokens = 4 * draw(1, 3) - 1;
    const uint64_t input = static_cast<uint64_t>(num_tokens) * 10 + (random_() & 1);
    SharedModel table{.spec = spec, .hash = testing::digest_of(input)};
    for (int32_t i = 0; i < num_tokens; ++i) table.content.push_back(input * 1000 + static_cast<uint64_t>(i));
    return table;
  }

  std::string_view allocate() {
    Request request{.group_id = GroupId(next_id_), .seq_id = SeqId(next_id_)};
    ++next_id_;
    request.num_tokens = draw(0, 12);
    const std::vector<uint64_t> beginning = draw_beginning(request.num_tokens);
    const std::vector<ContentDigest> hashes = hashes_of(beginning, request.num_tokens - 1);
    request.prefix = hashes;
    request.num_blocks_ahead = draw(0, 2);
    GroupModel group;
    if (draw(0, 2) > 0) group.shared.push_back(draw_shared(1));
    for (const int32_t spec : specs_of(TableOwner::kItem)) {
      for (int32_t items = draw(0, 2); items > 0; --items) group.shared.push_back(draw_shared(spec));
    }
    for (const SharedModel& table : group.shared) {
      request.shared.push_back({table.spec, static_cast<int32_t>(table.content.size()), table.hash});
    }
    // Two items of one request that are the same would want one table: the caller lists it once.
    for (size_t i = 0; i < request.shared.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (request.shared[i].spec == request.shared[j].spec && request.shared[i].digest == request.shared[j].digest) {
          request.shared[i].digest.reset();
          group.shared[i].hash.reset();
        }
      }
    }
    if (manager_.awaits_shared(request)) return "nothing";
    if (manager_.can_allocate(request) != AllocStatus::kOk) return "refused allocate";
    std::vector<bool> is_shared;
    for (size_t i = 0; i < request.shared.size(); ++i) {
      is_shared.push_back(manager_.shares(request, i));
      num_shared_idle_ += is_shared.back() && draws_on_idle(group.shared[i]);
    }
    const int32_t num_known = manager_.find_prefix(hashes) * per_block(0);
    num_remembered_ += num_known;
    const bool is_new = manager_.allocate(request);
    EXPECT_EQ(is_new, std::ranges::find(is_shared, false) != is_shared.end());
    const bool writes = draw(0, 4) > 0;
    for (size_t i = 0; i < group.shared.size(); ++i) group.shared[i].written = is_shared[i] || writes;
    if (is_new && writes) {
      begin_writes(request.group_id, request.shared.size());
      manager_.finish_writes();
    }
    std::vector<uint64_t>& tokens = group.seqs[request.seq_id];
    tokens = beginning;
    groups_[request.group_id] = std::move(group);
    // What is remembered is there: the contents are looked at after every operation.
    pending_.emplace_back([this, is_new, writes, num_known, id = request.group_id, seq = request.seq_id] {
      if (is_new && writes) write_shared(id);
      write_sequence(seq, num_known, groups_[id].seqs[seq]);
    });
    return "allocate";
  }

  // Of a tree: what follows a token is one of two, but for a few that are no one else's.
  std::vector<uint64_t> draw_beginning(int32_t num_tokens) {
    std::vector<uint64_t> tokens;
    for (int32_t i = 0; i < num_tokens; ++i) {
      const uint64_t branch = draw(0, 7) == 0 ? 1 : 0;
      tokens.push_back(draw(0, 30) == 0 ? random_() : (tokens.empty() ? 1 : tokens.back()) * 3 + branch);
    }
    return tokens;
  }

  // Of the full blocks of the first num_tokens: each of all that is up to its end.
  std::vector<ContentDigest> hashes_of(const std::vector<uint64_t>& tokens, int32_t num_tokens) const {
    std::vector<ContentDigest> hashes;
    if (!manager_.caches_prefixes()) return hashes;
    uint64_t hash = 17;
    for (int32_t i = 0; i < num_tokens; ++i) {
      hash = (hash ^ tokens[static_cast<size_t>(i)]) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
      if ((i + 1) % per_block(0) == 0) hashes.push_back(testing::digest_of(hash));
    }
    return hashes;
  }

  // The full blocks of a sequence, as they are written by now.
  std::string_view remember() {
    const GroupModel* group = pick_group(true);
    if (group == nullptr || group->swapped || !manager_.caches_prefixes()) return "nothing";
    const SeqId seq = pick_sequence(*group);
    const std::vector<uint64_t>& tokens = group->seqs.at(seq);
    const std::vector<ContentDigest> hashes = hashes_of(tokens, static_cast<int32_t>(tokens.size()));
    for (size_t i = 0; i < hashes.size(); ++i) manager_.remember_block(seq, static_cast<int32_t>(i), hashes[i]);
    EXPECT_EQ(manager_.find_prefix(hashes), std::ssize(hashes));
    return "remember";
  }

  std::string_view clear() {
    const int32_t available = manager_.num_available_device_blocks();
    manager_.clear_cache();
    EXPECT_EQ(manager_.get_num_free_device_blocks(), available);
    EXPECT_EQ(manager_.num_available_device_blocks(), available);
    return "clear";
  }

  // Rows that another process will send, and what follows: they come, or they do not.
  std::string_view reserve() {
    const int32_t spec = static_cast<int32_t>(options_.specs.size()) - 1;
    if (!manager_.keeps_unused(spec)) return "nothing";
    SharedModel table = draw_shared(spec);
    const auto num_tokens = static_cast<int32_t>(table.content.size());
    const BlockSpaceManager::SharedRequest wanted{spec, num_tokens, table.hash};
    const int32_t available = manager_.num_available_device_blocks(), reserved = manager_.num_reserved_blocks();
    table.written = manager_.find_written(*table.hash, spec) > 0;
    if (manager_.can_reserve(wanted) != AllocStatus::kOk) return "refused reserve";
    const ReservationId id = manager_.reserve(wanted);
    EXPECT_EQ(manager_.is_written(id), table.written);
    // Of the pool it takes its blocks, unless somebody had them; of the cap, unless another reservation had them.
    const auto num_blocks = static_cast<int32_t>(manager_.get_reserved_table(id).size());
    EXPECT_EQ(num_blocks, (num_tokens + per_block(spec) - 1) / per_block(spec));
    const int32_t taken = available - manager_.num_available_device_blocks();
    const int32_t counted = manager_.num_reserved_blocks() - reserved;
    EXPECT_TRUE(taken == num_blocks || (taken == 0 && table.written));
    EXPECT_TRUE(counted == num_blocks || (counted == 0 && table.written));
    EXPECT_GE(manager_.num_available_device_blocks(), taken == 0 ? 0 : manager_.watermark_blocks());
    reservations_.emplace(id, std::move(table));
    return "reserve";
  }

  std::string_view change_reservation() {
    if (reservations_.empty()) return "nothing";
    const auto entry =
        std::next(reservations_.begin(), static_cast<int64_t>(random_() % static_cast<uint64_t>(reservations_.size())));
    if (draw(0, 2) == 0 || entry->second.written) {
      free_reservation(entry->first);
      return "free reservation";
    }
    contents_.write(table_of(entry->first, entry->second), 0, entry->second.content);
    entry->second.written = true;
    EXPECT_TRUE(manager_.finish_reservation(entry->first));
    ++num_injected_;
    return "finish reservation";
  }

  void free_reservation(ReservationId id) {
    manager_.free(id);
    if (draw(0, 3) == 0) manager_.free(id);
    reservations_.erase(id);
  }

  Contents::Table table_of(ReservationId id, const SharedModel& table) const {
    return {manager_.get_reserved_table(id), per_block(table.spec), static_cast<uint64_t>(table.spec)};
  }

  void begin_writes(GroupId id, size_t num_tables) {
    for (size_t i = 0; i < num_tables; ++i) {
      if (manager_.needs_write(id, i)) manager_.begin_write(id, i);
    }
    EXPECT_FALSE(manager_.needs_write(id));
  }

  // Allocating it would take a table that is idle now.
  bool draws_on_idle(const SharedModel& wanted) const {
    for (const auto& [id, group] : groups_) {
      for (const SharedModel& table : group.shared) {
        if (!group.swapped && !table.freed && table.spec == wanted.spec && table.hash == wanted.hash) return false;
      }
    }
    return std::ranges::none_of(reservations_, [&](const auto& entry) {
      return entry.second.spec == wanted.spec && entry.second.hash == wanted.hash;
    });
  }

  // Rows that were used.
  std::string_view free_one_table() {
    for (auto& [id, group] : groups_) {
      for (size_t i = 0; i < group.shared.size(); ++i) {
        if (group.shared[i].freed || draw(0, 2) > 0) continue;
        manager_.free_shared(id, i);
        if (draw(0, 3) == 0) manager_.free_shared(id, i);
        group.shared[i].freed = true;
        if (group.owns_nothing()) groups_.erase(id);
        return "free one table";
      }
    }
    return "nothing";
  }

  std::string_view pin() {
    const int content = (4 * draw(1, 3) - 1) * 10 + draw(0, 1);
    const ContentDigest input = testing::digest_of(static_cast<uint64_t>(content));
    draw(0, 2) > 0 ? manager_.pin(input) : manager_.unpin(input);
    return "pin";
  }

  // What was allocated and not written is now; or its step fails, and it is not.
  std::string_view write_late() {
    for (auto& [id, group] : groups_) {
      const auto is_unwritten = [](const SharedModel& table) { return !table.written && !table.freed; };
      if (std::ranges::none_of(group.shared, is_unwritten)) continue;
      EXPECT_TRUE(manager_.needs_write(id));
      begin_writes(id, group.shared.size());
      if (draw(0, 2) == 0) {
        manager_.abandon_writes();
        return "abandoned write";
      }
      manager_.finish_writes();
      for (SharedModel& table : group.shared) table.written = true;
      pending_.emplace_back([this, id = id] { write_shared(id); });
      return "late write";
    }
    return "nothing";
  }

  // A group on the device (or wherever) with a sequence; null: none.
  GroupModel* pick_group(bool on_device, GroupId* id = nullptr) {
    std::vector<GroupId> candidates;
    for (auto& [group_id, group] : groups_) {
      if (!group.seqs.empty() && !(on_device && group.swapped)) candidates.push_back(group_id);
    }
    if (candidates.empty()) return nullptr;
    const GroupId picked = candidates[random_() % candidates.size()];
    if (id != nullptr) *id = picked;
    return &groups_[picked];
  }
  SeqId pick_sequence(const GroupModel& group) {
    return std::next(group.seqs.begin(), static_cast<int64_t>(random_() % group.seqs.size()))->first;
  }

  // All sequences of a group at once, as a scheduler does: some by no token at all.
  std::string_view append() {
    GroupModel* group = pick_group(true);
    if (group == nullptr) return "nothing";
    std::vector<BlockSpaceManager::SlotRequest> requests;
    for (const auto& [seq, tokens] : group->seqs) requests.push_back({seq, draw(0, 3)});
    const bool fits = manager_.can_append_slots(requests);
    const BlockSpaceManager::Usage usage = manager_.device_usage();
    EXPECT_EQ(fits, blocks_to_append(*group, requests) <= manager_.get_num_free_device_blocks() + usage.pinned);
    EXPECT_EQ(usage.self + usage.cross + usage.items + usage.pinned + manager_.get_num_free_device_blocks(),
              options_.num_device_blocks);
    if (!fits) return "refused append";
    for (const auto& [seq, count] : requests) {
      manager_.append_slots(seq, count, moves_.copy);
      std::vector<uint64_t>& tokens = group->seqs[seq];
      const int32_t begin = static_cast<int32_t>(tokens.size());
      for (int32_t i = 0; i < count; ++i) tokens.push_back(random_());
      pending_.emplace_back([this, seq = seq, begin, group] { write_sequence(seq, begin, group->seqs[seq]); });
    }
    return "append";
  }

  // By doing it on copies of the tables.
  int32_t blocks_to_append(const GroupModel& group, const std::vector<BlockSpaceManager::SlotRequest>& requests) const {
    std::map<BlockId, int32_t> references = sequence_references();
    const std::vector<int32_t> specs = specs_of(TableOwner::kSequence);
    int32_t taken = 0;
    for (const auto& [seq, count] : requests) {
      const int32_t length = static_cast<int32_t>(group.seqs.at(seq).size());
      for (size_t i = 0; i < specs.size(); ++i) {
        for (int32_t slot = length; slot < length + count; ++slot) {
          if (slot % per_block(specs[i]) == 0) {
            ++taken;
          } else if (slot == length && references[manager_.get_block_table(seq, i).back()] > 1) {
            --references[manager_.get_block_table(seq, i).back()];
            ++taken;
          }
        }
      }
    }
    return taken;
  }

  std::string_view fork() {
    GroupModel* group = pick_group(false);
    if (group == nullptr || group->seqs.size() > 5) return "nothing";
    const SeqId parent = pick_sequence(*group);
    const SeqId child(next_id_++);
    manager_.fork(parent, child);
    group->seqs[child] = group->seqs[parent];
    return "fork";
  }

  std::string_view truncate() {
    GroupModel* group = pick_group(false);
    if (group == nullptr) return "nothing";
    const SeqId seq = pick_sequence(*group);
    const auto length = static_cast<int32_t>(group->seqs[seq].size());
    truncate(*group, seq, static_cast<size_t>(length - draw(0, std::min(4, length))));
    return "truncate";
  }

  // What is taken back cannot be read any longer, unless others share it: their tokens stay (check()).
  void truncate(GroupModel& group, SeqId seq, size_t num_kept) {
    std::vector<uint64_t>& tokens = group.seqs[seq];
    const size_t num_before = tokens.size();
    tokens.resize(num_kept);
    manager_.truncate(seq, static_cast<int32_t>(num_kept));
    if (group.swapped) return;
    const std::map<BlockId, int32_t> references = sequence_references();
    for (size_t i = 0; i < specs_of(TableOwner::kSequence).size(); ++i) {
      const Contents::Table table = table_of(seq, i);
      const size_t num_slots = table.blocks.size() * static_cast<size_t>(table.per_block);
      for (size_t place = num_kept; place < std::min(num_before, num_slots); ++place) {
        const BlockId block = table.blocks[place / static_cast<size_t>(table.per_block)];
        if (references.at(block) > 1 || manager_.is_remembered(block)) continue;
        ++num_poisoned_;
        pending_.emplace_back([this, table, place] { EXPECT_TRUE(contents_.is_poisoned(table, place)); });
      }
    }
  }

  // A token and drafts behind it, in one step; the next step begins with what became of them.
  std::string_view draft() {
    GroupModel* group = pick_group(true);
    if (group == nullptr) return "nothing";
    const SeqId seq = pick_sequence(*group);
    const int32_t num_drafts = draw(0, 9);
    const BlockSpaceManager::SlotRequest rows[] = {{seq, 1 + num_drafts}};
    if (!manager_.can_append_slots(rows)) return "refused draft";
    manager_.append_slots(seq, 1, moves_.copy);
    const size_t num_copies = moves_.copy.size();
    manager_.append_slots(seq, num_drafts, moves_.copy);
    EXPECT_EQ(moves_.copy.size(), num_copies) << "the slot before made the block the sequence's own";
    std::vector<uint64_t>& tokens = group->seqs[seq];
    const auto begin = static_cast<int32_t>(tokens.size());
    for (int32_t i = 0; i <= num_drafts; ++i) tokens.push_back(random_());
    pending_.emplace_back([this, seq, begin, group] { write_sequence(seq, begin, group->seqs[seq]); });
    drafted_ = Drafted{group, seq, tokens.size() - static_cast<size_t>(num_drafts), static_cast<size_t>(num_drafts)};
    return "draft";
  }

  std::string_view settle_drafts() {
    const auto [group, seq, num_certain, num_drafts] = *std::exchange(drafted_, std::nullopt);
    truncate(*group, seq, num_certain + random_() % (num_drafts + 1));
    return "settle drafts";
  }

  // Of all groups: prefixes are shared between them.
  std::map<BlockId, int32_t> sequence_references() const {
    std::map<BlockId, int32_t> references;
    for (const auto& [id, group] : groups_) {
      if (group.swapped) continue;
      for (const auto& [seq, tokens] : group.seqs) {
        for (size_t i = 0; i < specs_of(TableOwner::kSequence).size(); ++i) {
          for (const BlockId block : manager_.get_block_table(seq, i)) ++references[block];
        }
      }
    }
    return references;
  }

  std::string_view swap() {
    GroupId id;
    GroupModel* group = pick_group(false, &id);
    if (group == nullptr) return "nothing";
    if (group->swapped) {
      if (manager_.can_swap_in(id) != AllocStatus::kOk) return "refused swap in";
      manager_.swap_in(id, moves_.swap_in);
    } else {
      if (!manager_.can_swap_out(id)) return "refused swap out";
      manager_.swap_out(id, moves_.swap_out);
    }
    group->swapped = !group->swapped;
    return "swap";
  }

  std::string_view free_sequence() {
    GroupId id;
    GroupModel* group = pick_group(false, &id);
    if (group == nullptr) return "nothing";
    const SeqId seq = pick_sequence(*group);
    manager_.free(seq);
    if (draw(0, 3) == 0) manager_.free(seq);
    group->seqs.erase(seq);
    if (group->owns_nothing()) groups_.erase(id);
    return "free sequence";
  }

  std::string_view free_some_group() {
    if (groups_.empty()) return "nothing";
    free_group(std::next(groups_.begin(), static_cast<int64_t>(random_() % groups_.size()))->first);
    return "free group";
  }
  void free_group(GroupId id) {
    const bool cross_first = draw(0, 1) == 1;
    if (cross_first) manager_.free_shared(id);
    for (const auto& [seq, tokens] : groups_[id].seqs) manager_.free(seq);
    manager_.free_shared(id);
    groups_.erase(id);
  }

  std::string_view reset() {
    manager_.reset();
    groups_.clear();
    reservations_.clear();
    return "reset";
  }

  Status check() {
    RETURN_IF_ERROR(manager_.check_invariants());
    for (const auto& [id, table] : reservations_) {
      if (!table.written || contents_.holds(MemoryPool::kDevice, table_of(id, table), table.content)) continue;
      return absl::InternalError(str_cat("wrong content of reservation ", id.value()));
    }
    for (const auto& [id, group] : groups_) {
      const MemoryPool pool = group.swapped ? MemoryPool::kHost : MemoryPool::kDevice;
      for (size_t i = 0; i < group.shared.size(); ++i) {
        const SharedModel& table = group.shared[i];
        if (table.freed || !table.written || contents_.holds(pool, table_of(id, group, i), table.content)) continue;
        return absl::InternalError(str_cat("group ", id.value(), ": wrong content of shared table ", i));
      }
      for (const auto& [seq, tokens] : group.seqs) {
        for (size_t i = 0; i < specs_of(TableOwner::kSequence).size(); ++i) {
          if (contents_.holds(pool, table_of(seq, i), tokens)) continue;
          return absl::InternalError(str_cat("sequence ", seq.value(), ": wrong content of table ", i));
        }
      }
    }
    return ok_status();
  }

  std::mt19937_64 random_;
  BlockSpaceManager::Options options_;
  BlockSpaceManager manager_;
  Contents contents_;
  std::map<GroupId, GroupModel> groups_;
  std::map<ReservationId, SharedModel> reservations_;
  BlockMoves moves_;
  std::vector<std::function<void()>> pending_;
  uint64_t next_id_ = 1;
  TimePoint now_{};
  int num_shared_idle_ = 0;
  int num_injected_ = 0;
  int num_remembered_ = 0;
  int num_cached_ = 0;
  int num_poisoned_ = 0;  // slots

  struct Drafted {
    GroupModel* group;
    SeqId seq;
    size_t num_certain, num_drafts;  // tokens
  };
  std::optional<Drafted> drafted_;
};

TEST(BlockSpaceManager, RandomHistoriesKeepEveryContent) {
  int num_shared_idle = 0, num_injected = 0, num_remembered = 0, num_cached = 0, num_poisoned = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    History history(seed);
    const Status status = history.run(400);
    ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status;
    num_shared_idle += history.num_shared_idle();
    num_injected += history.num_injected();
    num_remembered += history.num_remembered();
    num_cached += history.num_cached();
    num_poisoned += history.num_poisoned();
  }
  EXPECT_GT(num_shared_idle, 200);
  EXPECT_GT(num_injected, 100);
  EXPECT_GT(num_remembered, 500);
  EXPECT_GT(num_cached, 50);
  EXPECT_GT(num_poisoned, 2000);
}

}  // namespace
}  // namespace transept
