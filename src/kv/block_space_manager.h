// Assigns blocks of one pool to tables of several specs (kv/table_spec.h). Each decoder sequence has one table of every
// sequence spec: it grows, and after a fork shares its blocks until the sequences diverge (copy-on-write). Each group
// has shared tables, as its request lists them (cross-attention KV, rows of items): they are written once and shared by
// all sequences of the group, and by other groups with the same input if sharing is on. Holds ids, counts and digests
// only: no tensor, no Sequence, no byte of KV.
//
// A shared table of a pinned input, or of any input if they are cached, stays when its last owner ends. It is then
// idle: its blocks count as available, and an allocation that finds no free block evicts what has been idle longest, of
// whatever spec. So a pin and a cache never cause a refusal, a delay or a preemption. Idle tables that nothing pins are
// the cache: they may have a cap and an age.
//
// Full blocks of sequences may be remembered by a hash of what they hold (cache_prefixes). A new sequence that begins
// with the same content shares them. A remembered block without a reference is idle as such a table is, in one order
// with them.
//
// A reservation owns a shared table beside the groups: of an input whose rows come from another process, from before
// their first byte is sent until a group has them (encoder_cache/).
//
// Names are vLLM's; testdata/ has the rules as examples. No empty block is reserved: a sequence of n tokens has
// ceil(n / tokens_per_block) blocks of each spec. Owned by the scheduler. Not thread-safe (engine thread). An unknown
// id is a CHECK unless a function says otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "base/clock.h"
#include "base/content_digest.h"
#include "base/ids.h"
#include "base/status.h"
#include "kv/block.h"
#include "kv/block_allocator.h"
#include "kv/table_spec.h"

namespace transept {

using ReservationId = StrongId<struct ReservationTag, uint64_t>;

enum class AllocStatus : uint8_t {
  kOk,     // there is room now
  kLater,  // there is no room now
  kNever,  // even an empty pool has no room
};

class BlockSpaceManager final {
 public:
  static constexpr int32_t kMaxBlockSize = 1024;

  struct Options {
    int32_t block_size = 16;  // slots (tokens) per block of a spec that does not say
    std::vector<TableSpec> specs = {{TableOwner::kSequence}, {TableOwner::kGroup}};
    int32_t num_device_blocks = 0;
    int32_t num_host_blocks = 0;
    double watermark = 0.01;              // share of the device blocks that admission and swapping in leave free
    bool share_identical_inputs = false;  // between groups with equal digests; groups of a pinned input always share
    bool keep_unused_items = false;       // items' written tables stay after their last owner, as if all were pinned
    bool cache_inputs = false;  // the same of all shared tables with a digest. REQUIRES: share_identical_inputs
    std::optional<int32_t> max_cached_blocks = std::nullopt;  // of idle tables that nothing pins, and idle; unset: all
    std::optional<Duration> cache_ttl = std::nullopt;  // how long these and idle blocks stay at most; unset: for ever
    bool cache_prefixes = false;                       // see caches_prefixes()
    int32_t max_reserved_blocks = 0;  // of device blocks, what reservations may hold; groups are sized without them
    // Whether a table is shared that the planned step writes. False: steps are in flight, and the one that reads it may
    // do so before it is written.
    bool shares_begun = true;
    bool track_freed_blocks = false;                      // fills BlockMoves::freed_device and freed_host
    std::optional<uint64_t> shuffle_seed = std::nullopt;  // of the order of allocation

    // Errors: kInvalidArgument, naming the field and its range.
    Status validate() const;
  };

  // A shared table that a new group wants.
  struct SharedRequest {
    int32_t spec = 1;                                    // index in Options::specs; owner kGroup or kItem
    int32_t num_tokens = 0;                              // > 0
    std::optional<ContentDigest> digest = std::nullopt;  // of what it is computed from; unset: it is never shared
  };

  // Asks for the tables of a new group. A group begins with one sequence and forks after its prefill.
  struct Request {
    GroupId group_id{};
    SeqId seq_id{};
    int32_t num_tokens = 0;  // slots to allocate now
    int32_t max_tokens = 0;  // longest that the sequence may become: reserves memory for its table, no blocks
    absl::InlinedVector<SharedRequest, 2> shared = {};  // empty: a decoder-only group
    int32_t num_blocks_ahead = 0;  // can_allocate() counts these too; allocate() does not take them
    // Hashes of the sequence's first full blocks, of which it begins with those that are remembered: find_prefix().
    // They are fewer than the blocks of num_tokens. A view.
    std::span<const ContentDigest> prefix = {};
  };

  struct SlotRequest {
    SeqId seq_id;
    int32_t num_tokens = 0;  // new slots
  };

  // REQUIRES: options.validate().ok().
  explicit BlockSpaceManager(const Options& options);

  // need = blocks of the shared tables that are not shares() + blocks of the sequence that are not remembered +
  // num_blocks_ahead.
  // kNever: total - need < watermark + max_reserved_blocks; kOk: available - need >= watermark; else kLater.
  AllocStatus can_allocate(const Request& request) const;
  // Whether request.shared[i] names an existing table that is written, or that this step writes before it is read
  // (Options::shares_begun).
  bool shares(const Request& request, size_t i) const;
  bool shares_all(const Request& request) const;  // true also for a request without shared tables
  // Whether one of the tables exists but cannot be shared yet: a group that waits will share it.
  bool awaits_shared(const Request& request) const;
  // The tokens of the table that request.shared[i] would find by its digest, in whatever state; 0: there is none.
  // Another number than it asks for: one digest, two lengths, and the request must not be allocated.
  int32_t find_tokens(const Request& request, size_t i) const;
  // Makes the tables of a new group. Returns true if a shared table is new and must be written; false: there are none,
  // or all exist. REQUIRES: as many available blocks as needed, and neither group nor sequence has a table.
  bool allocate(const Request& request);

  // Progress of writing a group's shared tables. begin: the planned step writes the rest of the table, which is neither
  // written nor begun, before it reads it. Then finish: the step was executed; or abandon: it was not, and the table is
  // unwritten again. finish applies to the `count` tables that began first, abandon to all that have begun. A table
  // that takes several steps (a long encode, several items) begins with the last of them.
  bool needs_write(GroupId group_id) const;            // some table of the group is neither written nor begun
  bool needs_write(GroupId group_id, size_t i) const;  // Request::shared[i] is; false: also if it was freed
  void begin_write(GroupId group_id, size_t i);        // REQUIRES: needs_write(group_id, i)
  size_t num_begun_writes() const { return being_written_.size(); }
  void finish_writes(size_t count);  // REQUIRES: count <= num_begun_writes()
  void finish_writes() { finish_writes(num_begun_writes()); }
  void abandon_writes();

  // A pin allocates no blocks: the first group with this digest makes the tables. unpin() frees idle ones, unless they
  // are cached: then they were used now. No-ops if the digest is pinned already, or not pinned.
  void pin(const ContentDigest& digest);
  void unpin(const ContentDigest& digest);

  // ---- Remembered blocks

  // Whether blocks of sequences can be remembered: Options::cache_prefixes, and there is one spec of sequences.
  bool caches_prefixes() const { return options_.cache_prefixes && sequence_specs().size() == 1; }
  // Remembers a full block of a sequence by a hash that determines its content. It must have been computed. It
  // is found until its sequence, after truncate(), writes into it again. No-op if the block has a hash, or another
  // block this one. REQUIRES: caches_prefixes(), and the group is on the device.
  void remember_block(SeqId seq_id, int32_t index, const ContentDigest& hash);
  // Of a block of the device. For tests.
  bool is_remembered(BlockId block) const { return known_blocks_.contains(block); }
  // The first hashes, up to one that no block has.
  int32_t find_prefix(std::span<const ContentDigest> hashes) const;

  // ---- The cache: idle tables that nothing pins, and idle blocks

  // Sets the time that what becomes idle is stamped with, and frees that whose time is over. Time never goes back.
  void advance_to(TimePoint now);
  // When the first of them is over, if nothing uses it until then; max(): never.
  TimePoint next_expiry() const;
  // Frees all that is idle, pinned or not, and lets what is in use go with its last owner: later groups find neither.
  // Returns the number of blocks that are free by it.
  int32_t clear_cache();
  struct CacheCounts {
    int64_t evictions = 0;    // idle tables that made room, or were above the cap
    int64_t expirations = 0;  // idle tables whose time was over
    int32_t num_tables = 0;   // idle now, pinned ones not counted
    int32_t num_blocks = 0;   // of these
  };
  CacheCounts cache_counts() const;
  int32_t num_idle_prefix_blocks() const { return num_idle_prefix_blocks_; }

  // Reservations of items' tables by digest. REQUIRES: wanted.digest, num_tokens > 0, keeps_unused(wanted.spec). A
  // written table of this digest is joined, and must have as many tokens (find_written()); else a table is made, which
  // is not found before finish_reservation().
  // kNever: more than max_reserved_blocks. kLater: the cap, or the pool less the watermark, has no room now. A table
  // that another reservation or a group has costs the pool nothing, and the cap nothing if a reservation has it.
  AllocStatus can_reserve(const SharedRequest& wanted) const;
  AllocStatus can_reserve_blocks(int32_t num_blocks) const;  // of a table that is made
  // REQUIRES: can_reserve() is kOk.
  ReservationId reserve(const SharedRequest& wanted);
  bool is_written(ReservationId id) const;  // false also: there is no such reservation
  // All rows are in the table. If an equal table was written in the meantime, the reservation has that one afterwards,
  // and its own blocks are free. False: a table of this digest and of another length was written in the meantime, and
  // this one stays unwritten. REQUIRES: has_reservation(id).
  bool finish_reservation(ReservationId id);
  bool has_reservation(ReservationId id) const { return reservations_.contains(id); }
  // The tokens of the written table that reserve() would join; 0: there is none.
  int32_t find_written(const ContentDigest& digest, int32_t spec) const;

  // Whether all of these sequences can grow now, copies of shared last blocks included. Ignores the watermark, which
  // keeps blocks free for this.
  bool can_append_slots(std::span<const SlotRequest> requests) const;
  // Adds slots after the sequence's last one. Appends to `copies` the block that must be copied before the slots are
  // written. REQUIRES: the table is on the device, and can_append_slots().
  void append_slots(SeqId seq_id, int32_t num_tokens, std::vector<BlockCopy>& copies);

  // Gives the child the parent's group and table; all blocks are shared. Allocates no block. REQUIRES: the child has no
  // table.
  void fork(SeqId parent, SeqId child);
  // Keeps the first num_tokens slots: rejected drafts go. A block that other sequences share stays as it is. REQUIRES:
  // 0 <= num_tokens <= num_slots(seq_id).
  void truncate(SeqId seq_id, int32_t num_tokens);

  // Swapping moves all tables of a group: the blocks of its sequences, then of its shared tables, in order, each
  // distinct block once. Appends the copies to `moves`. can_swap_in counts the group's blocks and one more for each
  // table, so that the group can run. kNever: more than all device blocks; kOk: the watermark stays free. REQUIRES: the
  // group is in the host pool.
  AllocStatus can_swap_in(GroupId group_id) const;
  // REQUIRES: the group is in the host pool, and its blocks are available on the device.
  void swap_in(GroupId group_id, std::vector<BlockCopy>& moves);
  // False: the host pool has too few free blocks, or a shared table is used by another group or not written.
  // REQUIRES: the group is on the device.
  bool can_swap_out(GroupId group_id) const;
  // REQUIRES: can_swap_out().
  void swap_out(GroupId group_id, std::vector<BlockCopy>& moves);

  // Release the blocks to their pool. No-ops if there is no such table. A shared table stays if it has other owners, or
  // if it is pinned or keeps_unused() (idle).
  void free(SeqId seq_id);
  void free(ReservationId id);
  void free_shared(GroupId group_id);            // all of the group's
  void free_shared(GroupId group_id, size_t i);  // Request::shared[i] of the group: rows that were used
  // Frees all tables, idle ones too. Pins stay.
  void reset();

  // Appends the blocks freed since the last call to freed_device and freed_host, but not those reserved since; and the
  // slots that truncate() took from blocks which their sequence kept for itself to `truncated`. No-op without
  // track_freed_blocks.
  void take_freed_blocks(BlockMoves& moves);

  // Views into the manager, valid until the table changes. Empty: there is no table.
  // sequence_spec: an index of specs_of(kSequence); i: of Request::shared.
  std::span<const BlockId> get_block_table(SeqId seq_id, size_t sequence_spec = 0) const;
  std::span<const BlockId> get_shared_table(GroupId group_id, size_t i = 0) const;
  std::span<const BlockId> get_reserved_table(ReservationId id) const;
  bool has_table(SeqId seq_id) const { return sequences_.contains(seq_id); }
  int32_t num_slots(SeqId seq_id) const;    // tokens that the table has slots for; 0: there is no table
  bool is_swapped(GroupId group_id) const;  // false also for a group without tables

  int32_t get_num_free_device_blocks() const { return device_.num_free(); }
  // Free blocks and idle ones.
  int32_t num_available_device_blocks() const { return device_.num_free() + num_idle_blocks_; }
  int32_t get_num_free_host_blocks() const { return host_.num_free(); }
  int32_t num_device_blocks() const { return device_.num_total(); }
  int32_t num_host_blocks() const { return host_.num_total(); }
  // Options::watermark of the device blocks, rounded down.
  int32_t watermark_blocks() const { return watermark_blocks_; }
  int32_t max_reserved_blocks() const { return options_.max_reserved_blocks; }
  // Distinct blocks of tables that reservations hold, alone or beside groups.
  int32_t num_reserved_blocks() const { return num_reserved_blocks_; }
  int32_t block_size() const { return options_.block_size; }
  int32_t tokens_per_block(int32_t spec) const;
  bool keeps_unused(int32_t spec) const;  // Options::keep_unused_items, and it is a spec of items
  // The specs of this owner, as indices of Options::specs, ascending.
  std::span<const int32_t> specs_of(TableOwner owner) const { return specs_of_[static_cast<size_t>(owner)]; }
  // Blocks of a table of spec `spec` with so many tokens: ceil.
  int32_t num_blocks_for(int32_t spec, int64_t num_tokens) const;
  // Blocks of all tables of one sequence, group or item with so many tokens; and those of a sequence that are full.
  int64_t num_blocks_for(TableOwner owner, int64_t num_tokens) const;
  int64_t num_full_sequence_blocks(int64_t num_tokens) const;
  // Distinct device blocks in use, by kind, for /debug/state and statistics.
  struct Usage {
    int32_t self = 0;    // of sequences
    int32_t cross = 0;   // owner kGroup, of tables that groups or reservations use
    int32_t items = 0;   // owner kItem, of tables that groups or reservations use
    int32_t pinned = 0;  // idle ones, of tables and remembered
  };
  Usage device_usage() const;

  // Checks that reference counts equal the references of the tables, every table has the blocks of its tokens, no
  // table of several owners is swapped, a table without an owner may stay and is counted as idle, and reservations hold
  // no more than their cap and find what was written. Errors: kInternal, saying what is wrong. For tests and debug
  // runs.
  Status check_invariants() const;

 private:
  struct SequenceTable {
    GroupId group_id;
    int32_t num_tokens = 0;
    absl::InlinedVector<BlockTable, 1> blocks;  // of each sequence spec
  };
  enum class WriteState : uint8_t { kUnwritten, kBegun, kWritten };
  static constexpr int64_t kNoTable = -1;
  struct SharedTable {
    int32_t spec = 0;
    int32_t num_owners = 0;  // groups and reservations; 0: idle
    int32_t num_reservations = 0;
    int32_t num_tokens = 0;
    WriteState state = WriteState::kUnwritten;
    std::optional<ContentDigest> digest;
    BlockTable blocks;
    // Neighbours in the order of idle tables, and since when. Meaningful only while is_idle.
    int64_t idle_before = kNoTable, idle_after = kNoTable;
    TimePoint idle_since{};
    uint64_t idle_number = 0;  // its place in the order of all that is idle
    bool is_idle = false;
    bool is_cached = false;     // idle, and nothing pins it
    bool is_forgotten = false;  // clear_cache() was called while it had owners
  };
  static constexpr BlockId kNoBlock = -1;
  // A remembered block of the device.
  struct KnownBlock {
    ContentDigest hash;
    // As of SharedTable.
    BlockId before = kNoBlock, after = kNoBlock;
    TimePoint idle_since{};
    uint64_t idle_number = 0;
    bool is_idle = false;
  };
  struct Group {
    MemoryPool pool = MemoryPool::kDevice;
    std::vector<SeqId> sequences;            // in order of creation
    absl::InlinedVector<int64_t, 2> shared;  // keys of shared_tables_, as Request::shared; kNoTable: freed
    bool has_shared() const;
  };
  using OfferKey = std::pair<ContentDigest, int32_t>;  // and the spec

  BlockAllocator& allocator(MemoryPool pool) { return pool == MemoryPool::kDevice ? device_ : host_; }
  const BlockAllocator& allocator(MemoryPool pool) const { return pool == MemoryPool::kDevice ? device_ : host_; }
  std::span<const int32_t> sequence_specs() const { return specs_of(TableOwner::kSequence); }
  int32_t num_needed_blocks(const Request& request) const;
  int32_t num_available_blocks(const Request& request) const;
  const SharedTable* find_shareable(const SharedRequest& request) const;
  bool may_read(const SharedTable& table) const {
    return table.state == WriteState::kWritten || (table.state == WriteState::kBegun && options_.shares_begun);
  }
  const SharedTable* find_written_table(const ContentDigest& digest, int32_t spec) const;
  AllocStatus reserve_status(int32_t num_of_cap, int32_t num_of_pool) const;
  void count_reservation(SharedTable& table, int32_t change);
  int64_t join_shared(const SharedRequest& request);
  int64_t make_shared_table(const SharedRequest& request);
  int64_t add_shared(const SharedRequest& request);
  void release_shared(int64_t key, MemoryPool pool);
  void drop_shared(int64_t key, MemoryPool pool);
  bool is_kept(int64_t key, const SharedTable& table) const;
  bool stays_unpinned(int32_t spec) const { return options_.cache_inputs || keeps_unused(spec); }
  void begin_idle(int64_t key, SharedTable& table);
  void end_idle(SharedTable& table);
  void set_cached(SharedTable& table, bool is_cached);
  int64_t first_cached() const;
  void evict_older(int64_t key);
  void keep_cap();
  int32_t num_idle_in_prefix(std::span<const ContentDigest> hashes) const;
  BlockId join_block(const ContentDigest& hash);
  void forget_block(BlockId block);
  void begin_idle_block(BlockId block, KnownBlock& known);
  void end_idle_block(KnownBlock& known);
  void drop_idle_block(BlockId block);
  BlockId take_block(MemoryPool pool);
  void offer_for_sharing(int64_t key, const SharedTable& table);
  void withdraw_from_sharing(int64_t key, const SharedTable& table);
  int32_t num_new_blocks(const SequenceTable& table, int32_t num_tokens) const;
  bool writes_shared_block(const SequenceTable& table, size_t sequence_spec) const;
  int32_t num_distinct_blocks(const Group& group) const;
  void move(Group& group, MemoryPool to, std::vector<BlockCopy>& moves);
  void release(MemoryPool pool, BlockId block);
  void drop_if_empty(GroupId group_id);
  BlockTable take_table(int32_t num_blocks);
  void keep_table(BlockTable&& table);
  Status check_groups() const;
  Status check_shared_tables() const;
  Status check_idle_tables() const;
  Status check_known_blocks() const;
  Status check_reservations() const;

  Options options_;
  std::array<std::vector<int32_t>, kNumTableOwners> specs_of_;  // indices of the specs of each owner
  int32_t watermark_blocks_;
  BlockAllocator device_;
  BlockAllocator host_;
  absl::flat_hash_map<SeqId, SequenceTable> sequences_;
  absl::flat_hash_map<GroupId, Group> groups_;
  absl::flat_hash_map<int64_t, SharedTable> shared_tables_;
  absl::flat_hash_map<ReservationId, int64_t> reservations_;  // and the keys of their tables
  absl::flat_hash_map<OfferKey, int64_t> offered_;            // shared tables on the device that may be shared
  absl::flat_hash_set<ContentDigest> pinned_;
  // The order of idle tables, of all specs: which table has been idle longest, and which shortest.
  int64_t idle_longest_ = kNoTable, idle_shortest_ = kNoTable;
  // The same of idle blocks.
  BlockId oldest_idle_block_ = kNoBlock, newest_idle_block_ = kNoBlock;
  absl::flat_hash_map<BlockId, KnownBlock> known_blocks_;
  absl::flat_hash_map<ContentDigest, BlockId> blocks_by_hash_;
  uint64_t next_idle_number_ = 0;
  int32_t num_idle_blocks_ = 0;         // blocks of idle tables, and idle blocks
  int32_t num_idle_prefix_blocks_ = 0;  // of these the idle blocks
  CacheCounts cache_counts_;
  TimePoint now_{};                     // of advance_to()
  std::vector<int64_t> being_written_;  // keys of shared tables, in the order of begin; some may be freed already
  int64_t next_shared_ = 0;
  uint64_t next_reservation_ = 1;
  int32_t num_reserved_blocks_ = 0;
  // Slots [begin, end) that a sequence lost to truncate(), since the last take_freed_blocks().
  struct Truncated {
    SeqId seq_id;
    int32_t begin = 0, end = 0;
  };
  void take_truncated(const Truncated& lost, std::vector<SlotRange>& slots) const;

  std::vector<Truncated> truncated_;
  std::vector<BlockId> freed_device_;
  std::vector<BlockId> freed_host_;
  std::vector<BlockTable> spare_tables_;  // empty; kept to reuse their memory
};

}  // namespace transept
