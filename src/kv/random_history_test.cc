// Seeded random histories of the block manager against a model that keeps the contents of every slot.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

#include "base/content_digest_testing.h"
#include "kv/block_space_manager.h"

namespace transept {
namespace {

using Request = BlockSpaceManager::Request;

// What lies in the blocks, written as the engine would write it: a wrong table, a missing copy or a premature reuse
// shows as a wrong content.
class Contents {
 public:
  Contents(int32_t num_device, int32_t num_host, int32_t block_size)
      : block_size_(block_size), device_(slots(num_device)), host_(slots(num_host)) {}

  void apply(const BlockMoves& moves) {
    transfer(device_, host_, moves.swap_out);
    poison(device_, moves.freed_device);
    transfer(host_, device_, moves.swap_in);
    poison(host_, moves.freed_host);
    transfer(device_, device_, moves.copy);
  }
  void write(std::span<const BlockId> table, int32_t begin, const std::vector<uint64_t>& tokens) {
    for (size_t i = static_cast<size_t>(begin); i < tokens.size(); ++i) at(device_, table, i) = tokens[i];
  }
  bool holds(MemoryPool pool, std::span<const BlockId> table, const std::vector<uint64_t>& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (at(pool == MemoryPool::kDevice ? device_ : host_, table, i) != tokens[i]) return false;
    }
    return true;
  }

 private:
  static constexpr uint64_t kPoison = ~uint64_t{0};
  std::vector<uint64_t> slots(int32_t blocks) const {
    return std::vector<uint64_t>(size_t(blocks) * size_t(block_size_));
  }
  uint64_t& at(std::vector<uint64_t>& pool, std::span<const BlockId> table, size_t i) const {
    const size_t size = static_cast<size_t>(block_size_);
    return pool.at(static_cast<size_t>(table[i / size]) * size + i % size);
  }
  void transfer(std::vector<uint64_t>& from, std::vector<uint64_t>& to, const std::vector<BlockCopy>& copies) const {
    for (const BlockCopy& copy : copies) {
      std::copy_n(from.begin() + copy.src * block_size_, block_size_, to.begin() + copy.dst * block_size_);
    }
  }
  void poison(std::vector<uint64_t>& pool, const std::vector<BlockId>& blocks) const {
    for (const BlockId block : blocks) std::fill_n(pool.begin() + block * block_size_, block_size_, kPoison);
  }

  int32_t block_size_;
  std::vector<uint64_t> device_, host_;
};

class History {
 public:
  explicit History(uint64_t seed)
      : random_(seed),
        options_(random_options()),
        manager_(options_),
        contents_(options_.num_device_blocks, options_.num_host_blocks, options_.block_size) {}

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
    RETURN_IF_ERROR(manager_.check_invariants());
    if (manager_.num_available_device_blocks() != options_.num_device_blocks) {
      return absl::InternalError("blocks are neither free nor idle");
    }
    for (uint64_t input = 0; input < 130; ++input) manager_.unpin(testing::digest_of(input));
    if (manager_.get_num_free_device_blocks() != options_.num_device_blocks ||
        manager_.get_num_free_host_blocks() != options_.num_host_blocks) {
      return absl::InternalError("blocks are lost");
    }
    return manager_.check_invariants();
  }

  int num_shared_idle() const { return num_shared_idle_; }

 private:
  struct GroupModel {
    std::map<SeqId, std::vector<uint64_t>> seqs;
    std::optional<ContentDigest> hash;
    std::vector<uint64_t> cross;
    bool swapped = false;
    bool cross_written = true;
  };

  int32_t draw(int32_t low, int32_t high) {
    return low + static_cast<int32_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }

  BlockSpaceManager::Options random_options() {
    BlockSpaceManager::Options options;
    options.block_size = draw(1, 5);
    options.num_device_blocks = draw(4, 40);
    options.num_host_blocks = draw(0, 30);
    options.watermark = draw(0, 3) * 0.1;
    options.share_identical_inputs = draw(0, 1) == 1;
    options.track_freed_blocks = true;
    if (draw(0, 1) == 1) options.shuffle_seed = random_();
    return options;
  }

  std::string_view step() {
    switch (draw(0, 14)) {
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
      default: return draw(0, 60) == 0 ? reset() : append();
    }
  }

  std::string_view allocate() {
    Request request{.group_id = GroupId(next_id_), .seq_id = SeqId(next_id_)};
    ++next_id_;
    request.num_tokens = draw(0, 12);
    request.num_encoder_tokens = draw(0, 2) == 0 ? 0 : 4 * draw(1, 3) - 1;
    request.num_blocks_ahead = draw(0, 2);
    const uint64_t input = static_cast<uint64_t>(request.num_encoder_tokens) * 10 + (random_() & 1);
    request.encoder_digest = testing::digest_of(input);
    if (manager_.awaits_cross(request)) return "nothing";
    if (manager_.can_allocate(request) != AllocStatus::kOk) return "refused allocate";
    num_shared_idle_ += manager_.shares_cross(request) && draws_on_idle(request);
    const bool is_new = manager_.allocate(request);
    GroupModel& group = groups_[request.group_id];
    group.cross_written = !is_new || draw(0, 4) > 0;
    if (is_new && group.cross_written) {
      manager_.begin_cross_write(request.group_id);
      manager_.finish_cross_writes();
    }
    group.hash = request.encoder_digest;
    for (int32_t i = 0; i < request.num_encoder_tokens; ++i) group.cross.push_back(input * 1000 + uint64_t(i));
    std::vector<uint64_t>& tokens = group.seqs[request.seq_id];
    for (int32_t i = 0; i < request.num_tokens; ++i) tokens.push_back(random_());
    pending_.emplace_back([this, is_new, id = request.group_id, seq = request.seq_id] {
      if (is_new && groups_[id].cross_written)
        contents_.write(manager_.get_cross_block_table(id), 0, groups_[id].cross);
      contents_.write(manager_.get_block_table(seq), 0, groups_[id].seqs[seq]);
    });
    return "allocate";
  }

  // Allocating it would take a table that is idle now.
  bool draws_on_idle(const Request& request) const {
    for (const auto& [id, group] : groups_) {
      if (!group.swapped && group.hash == request.encoder_digest && !group.cross.empty()) return false;
    }
    return true;
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
      if (group.cross_written) continue;
      EXPECT_TRUE(manager_.needs_cross_write(id));
      manager_.begin_cross_write(id);
      if (draw(0, 2) == 0) {
        manager_.abandon_cross_writes();
        return "abandoned write";
      }
      manager_.finish_cross_writes();
      group.cross_written = true;
      pending_.emplace_back(
          [this, id = id] { contents_.write(manager_.get_cross_block_table(id), 0, groups_[id].cross); });
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
    EXPECT_EQ(usage.self + usage.cross + usage.pinned + manager_.get_num_free_device_blocks(),
              options_.num_device_blocks);
    if (!fits) return "refused append";
    for (const auto& [seq, count] : requests) {
      manager_.append_slots(seq, count, moves_.copy);
      std::vector<uint64_t>& tokens = group->seqs[seq];
      const int32_t begin = static_cast<int32_t>(tokens.size());
      for (int32_t i = 0; i < count; ++i) tokens.push_back(random_());
      pending_.emplace_back(
          [this, seq = seq, begin, group] { contents_.write(manager_.get_block_table(seq), begin, group->seqs[seq]); });
    }
    return "append";
  }

  // By doing it on copies of the tables.
  int32_t blocks_to_append(const GroupModel& group, const std::vector<BlockSpaceManager::SlotRequest>& requests) const {
    std::map<BlockId, int32_t> references;
    for (const auto& [seq, tokens] : group.seqs) {
      for (const BlockId block : manager_.get_block_table(seq)) ++references[block];
    }
    int32_t taken = 0;
    for (const auto& [seq, count] : requests) {
      const int32_t length = static_cast<int32_t>(group.seqs.at(seq).size());
      for (int32_t slot = length; slot < length + count; ++slot) {
        if (slot % options_.block_size == 0) {
          ++taken;
        } else if (slot == length && references[manager_.get_block_table(seq).back()] > 1) {
          --references[manager_.get_block_table(seq).back()];
          ++taken;
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
    std::vector<uint64_t>& tokens = group->seqs[seq];
    tokens.resize(tokens.size() -
                  static_cast<size_t>(draw(0, std::min<int32_t>(4, static_cast<int32_t>(tokens.size())))));
    manager_.truncate(seq, static_cast<int32_t>(tokens.size()));
    return "truncate";
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
    if (group->seqs.empty() && group->cross.empty()) groups_.erase(id);
    return "free sequence";
  }

  std::string_view free_some_group() {
    if (groups_.empty()) return "nothing";
    free_group(std::next(groups_.begin(), static_cast<int64_t>(random_() % groups_.size()))->first);
    return "free group";
  }
  void free_group(GroupId id) {
    const bool cross_first = draw(0, 1) == 1;
    if (cross_first) manager_.free_cross(id);
    for (const auto& [seq, tokens] : groups_[id].seqs) manager_.free(seq);
    manager_.free_cross(id);
    groups_.erase(id);
  }

  std::string_view reset() {
    manager_.reset();
    groups_.clear();
    return "reset";
  }

  Status check() {
    RETURN_IF_ERROR(manager_.check_invariants());
    for (const auto& [id, group] : groups_) {
      const MemoryPool pool = group.swapped ? MemoryPool::kHost : MemoryPool::kDevice;
      if (group.cross_written && !contents_.holds(pool, manager_.get_cross_block_table(id), group.cross)) {
        return absl::InternalError(str_cat("group ", id.value(), ": wrong cross content"));
      }
      for (const auto& [seq, tokens] : group.seqs) {
        if (!contents_.holds(pool, manager_.get_block_table(seq), tokens)) {
          return absl::InternalError(str_cat("sequence ", seq.value(), ": wrong content"));
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
  BlockMoves moves_;
  std::vector<std::function<void()>> pending_;
  uint64_t next_id_ = 1;
  int num_shared_idle_ = 0;
};

TEST(BlockSpaceManager, RandomHistoriesKeepEveryContent) {
  int num_shared_idle = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    History history(seed);
    const Status status = history.run(400);
    ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status;
    num_shared_idle += history.num_shared_idle();
  }
  EXPECT_GT(num_shared_idle, 200);
}

}  // namespace
}  // namespace transept
