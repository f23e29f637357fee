// Which blocks belong to which table: one self table a decoder sequence (it grows, and is shared block by block after a
// fork until sequences part: copy-on-write), one cross table a group (written once, shared by all its sequences, and by
// other groups with the same input if sharing is on). Ids, counts and digests only: no tensor, no Sequence, no byte of
// KV.
//
// A pinned input's cross table stays when its last group has gone. Then it is idle: its blocks count as available
// wherever room is asked for, and are given up, the least recently used table first, when blocks are taken. So a
// pin never refuses, delays or preempts anything.
//
// Names are vLLM's; the rules in numbers stand in testdata/. An empty block is never reserved: a sequence of n tokens
// has ceil(n / block_size) blocks. Owned by the scheduler. Not thread-safe (engine thread).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/content_digest.h"
#include "base/ids.h"
#include "base/status.h"
#include "kv/block.h"
#include "kv/block_allocator.h"

namespace transept {

enum class AllocStatus : uint8_t {
  kOk,     // there is room now
  kLater,  // not now, but there will be
  kNever,  // more than the pool less its watermark
};

class BlockSpaceManager final {
 public:
  static constexpr int32_t kMaxBlockSize = 1024;

  struct Options {
    int32_t block_size = 16;  // slots (tokens) a block
    int32_t num_device_blocks = 0;
    int32_t num_host_blocks = 0;
    double watermark = 0.01;              // share of the device blocks that admission and swapping in leave free
    bool share_identical_inputs = false;  // groups with equal digests; those of a pinned input share in any case
    bool track_freed_blocks = false;      // BlockMoves::freed_device, freed_host
    std::optional<uint64_t> shuffle_seed = std::nullopt;  // physical block order

    // Errors: name the field and its range.
    Status validate() const;
  };

  // A group comes with one sequence and forks after its prefill.
  struct Request {
    GroupId group_id{};
    SeqId seq_id{};
    int32_t num_tokens = 0;          // slots wanted now
    int32_t max_tokens = 0;          // how long the sequence may become: memory for its table, no blocks
    int32_t num_encoder_tokens = 0;  // 0: no cross table
    std::optional<ContentDigest> encoder_digest = std::nullopt;  // set: may be shared; equal digests mean equal inputs
    int32_t num_blocks_ahead = 0;  // can_allocate() counts these too; allocate() does not take them
  };

  struct SlotRequest {
    SeqId seq_id;
    int32_t num_tokens = 0;  // new slots
  };

  // REQUIRES: options.validate().ok().
  explicit BlockSpaceManager(const Options& options);

  // need = |cross table, unless it is there already| + blocks of the sequence (+ num_blocks_ahead).
  // kNever: total - need < watermark; kOk: available - need >= watermark; else kLater.
  AllocStatus can_allocate(const Request& request) const;
  // The cross table that this group wants is there already, and written when this step decodes.
  bool shares_cross(const Request& request) const;
  // The same, but it is not yet written: a group that waits will share it.
  bool awaits_cross(const Request& request) const;
  // True: the cross table is new and must be written; false: there is none, or it is shared.
  // REQUIRES: as many available blocks as needed, and neither group nor sequence has a table.
  bool allocate(const Request& request);

  // A cross table is written in one step, before anything of that step reads it: begin (a step is planned that writes
  // it wholly), then finish (the step was executed) or abandon (it was not). Both end all that have begun.
  bool needs_cross_write(GroupId group_id) const;  // it has a cross table that is not written, nor begun
  void begin_cross_write(GroupId group_id);        // REQUIRES: needs_cross_write()
  void finish_cross_writes();
  void abandon_cross_writes();

  // Pinning keeps no blocks of its own: the first group with this digest brings the table. Both do nothing if it is so
  // already.
  void pin(const ContentDigest& digest);
  void unpin(const ContentDigest& digest);

  // Whether all of these sequences can grow now, copies of shared last blocks included. The watermark does not count:
  // it is there so that running sequences can grow.
  bool can_append_slots(std::span<const SlotRequest> requests) const;
  // Adds slots after the sequence's last one; what has to be copied before they are written goes to `copies`.
  // REQUIRES: the table is on the device, and can_append_slots().
  void append_slots(SeqId seq_id, int32_t num_tokens, std::vector<BlockCopy>& copies);

  // The child begins with the parent's table, every block shared, in the parent's group. Costs no block.
  void fork(SeqId parent, SeqId child);
  // Keeps the first num_tokens slots (rejected drafts, a retry from a prefix). REQUIRES: 0 <= num_tokens <= its length.
  void truncate(SeqId seq_id, int32_t num_tokens);

  // Swapping moves all tables of a group: the blocks of its sequences, then its cross blocks, in order, each distinct
  // block once. can_swap_in asks for one block more a sequence and one more for the encoder, so that the group can run.
  // kNever: it wants more blocks than there are.
  AllocStatus can_swap_in(GroupId group_id) const;
  void swap_in(GroupId group_id, std::vector<BlockCopy>& moves);
  // False also if the group shares its cross table with another one, or if that is not written.
  bool can_swap_out(GroupId group_id) const;
  void swap_out(GroupId group_id, std::vector<BlockCopy>& moves);

  // Blocks go back to the pool in which they lie. No-ops if there is no such table (any more).
  void free(SeqId seq_id);
  void free_cross(GroupId group_id);
  // Forgets every table, idle ones too; both pools are full again. Pins stay.
  void reset();

  // Blocks freed since the last call, for poisoning; see BlockMoves. Nothing without track_freed_blocks.
  void take_freed_blocks(BlockMoves& moves);

  // Views into the manager, valid until the table changes. Empty if there is none.
  std::span<const BlockId> get_block_table(SeqId seq_id) const;
  std::span<const BlockId> get_cross_block_table(GroupId group_id) const;
  bool has_table(SeqId seq_id) const { return sequences_.contains(seq_id); }
  int32_t num_slots(SeqId seq_id) const;  // tokens that the sequence's table has slots for
  bool is_swapped(GroupId group_id) const;

  int32_t get_num_free_device_blocks() const { return device_.num_free(); }
  // Free ones and those of idle tables.
  int32_t num_available_device_blocks() const { return device_.num_free() + num_idle_blocks_; }
  int32_t get_num_free_host_blocks() const { return host_.num_free(); }
  int32_t num_device_blocks() const { return device_.num_total(); }
  int32_t num_host_blocks() const { return host_.num_total(); }
  int32_t watermark_blocks() const { return watermark_blocks_; }
  int32_t block_size() const { return options_.block_size; }
  int32_t num_blocks_for(int64_t num_tokens) const;  // ceil
  // Distinct blocks in use on the device by kind, for /debug/state and statistics.
  struct Usage {
    int32_t self = 0;
    int32_t cross = 0;
    int32_t pinned = 0;  // of idle tables: kept for a pin alone
  };
  Usage device_usage() const;

  // Reference counts equal the references of the tables; free + used = total; every table is as long as its tokens
  // want; each group lies in one pool; a table without a group is pinned, and counted as idle. The error says what is
  // wrong.
  Status check_invariants() const;

 private:
  struct SequenceTable {
    GroupId group_id;
    int32_t num_tokens = 0;
    BlockTable blocks;
  };
  enum class CrossState : uint8_t { kUnwritten, kBegun, kWritten };
  struct CrossTable {
    int32_t num_owners = 0;  // 0: idle
    int32_t num_tokens = 0;
    CrossState state = CrossState::kUnwritten;
    std::optional<ContentDigest> digest;
    BlockTable blocks;
  };
  struct Group {
    MemoryPool pool = MemoryPool::kDevice;
    std::vector<SeqId> sequences;  // in the order of their birth
    int64_t cross = kNoCross;      // key of cross_tables_
  };
  static constexpr int64_t kNoCross = -1;

  BlockAllocator& allocator(MemoryPool pool) { return pool == MemoryPool::kDevice ? device_ : host_; }
  const BlockAllocator& allocator(MemoryPool pool) const { return pool == MemoryPool::kDevice ? device_ : host_; }
  int32_t num_needed_blocks(const Request& request) const;
  int32_t num_available_blocks(const Request& request) const;
  const CrossTable* find_shareable(const Request& request) const;
  void join_cross(Group& group, const Request& request);
  void add_cross(Group& group, const Request& request);
  void drop_cross(int64_t key, MemoryPool pool);
  bool is_kept(int64_t key, const CrossTable& cross) const;
  void begin_idle(int64_t key, const CrossTable& cross);
  void end_idle(int64_t key, const CrossTable& cross);
  BlockId take_block(MemoryPool pool);
  void offer_for_sharing(int64_t key, const CrossTable& cross);
  void withdraw_from_sharing(int64_t key, const CrossTable& cross);
  int32_t num_new_blocks(const SequenceTable& table, int32_t num_tokens) const;
  bool writes_shared_block(const SequenceTable& table) const;
  int32_t num_distinct_blocks(const Group& group) const;
  void move(Group& group, MemoryPool to, std::vector<BlockCopy>& moves);
  void release(MemoryPool pool, BlockId block);
  void drop_if_empty(GroupId group_id);
  BlockTable take_table(int64_t num_tokens);
  void keep_table(BlockTable&& table);
  Status check_groups() const;
  Status check_cross_tables() const;
  Status check_idle_tables() const;

  Options options_;
  int32_t watermark_blocks_;
  BlockAllocator device_;
  BlockAllocator host_;
  absl::flat_hash_map<SeqId, SequenceTable> sequences_;
  absl::flat_hash_map<GroupId, Group> groups_;
  absl::flat_hash_map<int64_t, CrossTable> cross_tables_;
  absl::flat_hash_map<ContentDigest, int64_t> shared_cross_;  // cross tables on the device that may be shared
  absl::flat_hash_set<ContentDigest> pinned_;
  std::vector<int64_t> idle_;           // cross tables that no group uses, used longest ago first
  int32_t num_idle_blocks_ = 0;         // of those
  std::vector<int64_t> being_written_;  // cross tables, some of which may be gone
  int64_t next_cross_ = 0;
  std::vector<BlockId> freed_device_;
  std::vector<BlockId> freed_host_;
  std::vector<BlockTable> spare_tables_;  // emptied, for their memory
};

}  // namespace transept
