#include "kv/block_space_manager.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/content_digest_testing.h"

namespace transept {
namespace {

using Request = BlockSpaceManager::Request;

BlockSpaceManager::Options small_options() {
  return {.block_size = 4, .num_device_blocks = 8, .num_host_blocks = 8, .watermark = 0};
}

TEST(BlockSpaceManager, RefusesBadOptions) {
  const auto param = [](auto change) {
    BlockSpaceManager::Options options = small_options();
    change(options);
    return error_param(options.validate());
  };
  EXPECT_EQ(param([](auto&) {}), "");
  EXPECT_EQ(param([](auto& o) { o.block_size = 0; }), "block_size");
  EXPECT_EQ(param([](auto& o) { o.block_size = 1025; }), "block_size");
  EXPECT_EQ(param([](auto& o) { o.specs[1].tokens_per_block = 1025; }), "specs");
  EXPECT_EQ(param([](auto& o) { o.specs = {{TableOwner::kGroup}}; }), "specs");
  EXPECT_EQ(param([](auto& o) { o.num_device_blocks = 0; }), "num_device_blocks");
  EXPECT_EQ(param([](auto& o) { o.num_host_blocks = -1; }), "num_host_blocks");
  EXPECT_EQ(param([](auto& o) { o.max_reserved_blocks = -1; }), "max_reserved_blocks");
  EXPECT_EQ(param([](auto& o) { o.max_reserved_blocks = 8; }), "");
  EXPECT_EQ(param([](auto& o) { o.max_reserved_blocks = 9; }), "max_reserved_blocks");
  EXPECT_EQ(param([](auto& o) { o.watermark = 1; }), "watermark");
  EXPECT_EQ(param([](auto& o) { o.watermark = std::numeric_limits<double>::quiet_NaN(); }), "watermark");
}

TEST(BlockSpaceManager, SaysWhetherTheCrossTableMustBeWritten) {
  BlockSpaceManager::Options options = small_options();
  options.share_identical_inputs = true;
  BlockSpaceManager manager(options);
  const ContentDigest hash = testing::digest_of(1, 2);
  EXPECT_TRUE(manager.allocate(
      {.group_id = GroupId(1), .seq_id = SeqId(1), .num_tokens = 1, .shared = {{.num_tokens = 4, .digest = hash}}}));
  EXPECT_TRUE(manager.needs_write(GroupId(1)));
  manager.begin_write(GroupId(1), 0);
  EXPECT_FALSE(manager.needs_write(GroupId(1)));
  EXPECT_FALSE(manager.allocate(
      {.group_id = GroupId(2), .seq_id = SeqId(2), .num_tokens = 1, .shared = {{.num_tokens = 4, .digest = hash}}}));
  EXPECT_FALSE(manager.allocate({.group_id = GroupId(3), .seq_id = SeqId(3), .num_tokens = 1}));
  EXPECT_EQ(manager.get_shared_table(GroupId(1)).data(), manager.get_shared_table(GroupId(2)).data());
  EXPECT_FALSE(manager.needs_write(GroupId(2)));
  EXPECT_FALSE(manager.needs_write(GroupId(3)));
}

// What a reclaimed table leaves is poisoned before its next owner writes there, and its memory of the plan is right.
TEST(BlockSpaceManager, ReportsTheBlocksThatAnIdleTableGaveUp) {
  BlockSpaceManager::Options options = small_options();
  options.track_freed_blocks = true;
  BlockSpaceManager manager(options);
  const ContentDigest hash = testing::digest_of(1);
  manager.pin(hash);
  manager.allocate({.group_id = GroupId(1), .seq_id = SeqId(1), .shared = {{.num_tokens = 12, .digest = hash}}});
  manager.begin_write(GroupId(1), 0);
  manager.finish_writes();
  manager.free(SeqId(1));
  manager.free_shared(GroupId(1));
  BlockMoves moves;
  manager.take_freed_blocks(moves);
  EXPECT_TRUE(moves.freed_device.empty());
  manager.allocate({.group_id = GroupId(2), .seq_id = SeqId(2), .num_tokens = 24});  // 6 of 8 blocks, 5 are free
  manager.take_freed_blocks(moves);
  EXPECT_EQ(moves.freed_device.size(), 3u);
  EXPECT_EQ(manager.get_num_free_device_blocks(), 2);
  EXPECT_TRUE(manager.check_invariants().ok());
}

TEST(BlockSpaceManager, ResetGivesIdleTablesUpAndKeepsPins) {
  BlockSpaceManager manager(small_options());
  const ContentDigest hash = testing::digest_of(1);
  manager.pin(hash);
  for (int round = 0; round < 2; ++round) {
    manager.allocate({.group_id = GroupId(1), .seq_id = SeqId(1), .shared = {{.num_tokens = 12, .digest = hash}}});
    manager.begin_write(GroupId(1), 0);
    manager.finish_writes();
    manager.free(SeqId(1));
    manager.free_shared(GroupId(1));
    EXPECT_EQ(manager.device_usage().pinned, 3);
    manager.reset();
    EXPECT_EQ(manager.get_num_free_device_blocks(), 8);
    EXPECT_EQ(manager.num_available_device_blocks(), 8);
    EXPECT_TRUE(manager.check_invariants().ok());
  }
}

TEST(BlockSpaceManager, ForksThatAllWriteNeedOneCopyLess) {
  BlockSpaceManager manager(small_options());
  manager.allocate({.group_id = GroupId(1), .seq_id = SeqId(1), .num_tokens = 22});  // 6 of 8 blocks
  manager.fork(SeqId(1), SeqId(2));
  manager.fork(SeqId(1), SeqId(3));
  const std::vector<BlockSpaceManager::SlotRequest> all = {{SeqId(1), 2}, {SeqId(2), 2}, {SeqId(3), 2}};
  EXPECT_TRUE(manager.can_append_slots(all));
  const std::vector<BlockSpaceManager::SlotRequest> long_ones = {{SeqId(1), 2}, {SeqId(2), 2}, {SeqId(3), 3}};
  EXPECT_FALSE(manager.can_append_slots(long_ones));
  std::vector<BlockCopy> copies;
  for (const auto& [seq, count] : all) manager.append_slots(seq, count, copies);
  EXPECT_EQ(copies.size(), 2u);
  EXPECT_EQ(manager.get_num_free_device_blocks(), 0);
  EXPECT_TRUE(manager.check_invariants().ok());
}

TEST(BlockSpaceManager, AFullBlockIsSharedWithoutBeingWritten) {
  BlockSpaceManager manager(small_options());
  manager.allocate({.group_id = GroupId(1), .seq_id = SeqId(1), .num_tokens = 8});
  manager.fork(SeqId(1), SeqId(2));
  manager.truncate(SeqId(2), 6);
  manager.allocate({.group_id = GroupId(2), .seq_id = SeqId(3), .num_tokens = 20});  // one block is left
  // The first takes it for its next block; the second must copy the block that the first keeps.
  const std::vector<BlockSpaceManager::SlotRequest> both = {{SeqId(1), 1}, {SeqId(2), 1}};
  EXPECT_FALSE(manager.can_append_slots(both));
  EXPECT_TRUE(manager.can_append_slots(std::span(both).first(1)));
  EXPECT_TRUE(manager.can_append_slots(std::span(both).last(1)));
}

TEST(BlockSpaceManager, ReportsSlotsThatWereTruncated) {
  BlockSpaceManager::Options options = small_options();  // blocks of four
  options.track_freed_blocks = true;
  BlockSpaceManager manager(options);
  BlockMoves moves;
  manager.allocate({.group_id = GroupId(1), .seq_id = SeqId(1), .num_tokens = 11});
  manager.truncate(SeqId(1), 5);
  manager.take_freed_blocks(moves);
  EXPECT_EQ(moves.truncated, (std::vector<SlotRange>{{.spec = 0, .block = 1, .begin = 1, .end = 4}}));
  EXPECT_EQ(moves.freed_device, (std::vector<BlockId>{2}));

  // A block that another sequence shares stays whole, until it is a sequence's own.
  moves.clear();
  manager.append_slots(SeqId(1), 2, moves.copy);
  manager.fork(SeqId(1), SeqId(2));
  manager.truncate(SeqId(2), 6);
  manager.take_freed_blocks(moves);
  EXPECT_TRUE(moves.truncated.empty());
  EXPECT_EQ(manager.get_block_table(SeqId(1)).back(), manager.get_block_table(SeqId(2)).back());
  manager.free(SeqId(2));
  manager.truncate(SeqId(1), 7);  // none
  manager.truncate(SeqId(1), 6);
  manager.take_freed_blocks(moves);
  EXPECT_EQ(moves.truncated, (std::vector<SlotRange>{{.spec = 0, .block = 1, .begin = 2, .end = 3}}));

  // What has no table on the device has no slots there.
  moves.clear();
  manager.truncate(SeqId(1), 5);
  manager.free(SeqId(1));
  manager.take_freed_blocks(moves);
  EXPECT_TRUE(moves.truncated.empty());
}

TEST(BlockSpaceManager, ReportsFreedBlocksOfBothPools) {
  BlockSpaceManager::Options options = small_options();
  options.track_freed_blocks = true;
  BlockSpaceManager manager(options);
  manager.allocate({.group_id = GroupId(1), .seq_id = SeqId(1), .num_tokens = 4, .shared = {{.num_tokens = 4}}});
  manager.begin_write(GroupId(1), 0);
  manager.finish_writes();
  BlockMoves moves;
  manager.swap_out(GroupId(1), moves.swap_out);
  manager.take_freed_blocks(moves);
  EXPECT_EQ(moves.freed_device, (std::vector<BlockId>{0, 1}));
  EXPECT_TRUE(moves.freed_host.empty());

  moves.clear();
  manager.free(SeqId(1));
  manager.free_shared(GroupId(1));
  // One of the two host blocks is in use again when the plan is made, so it must not be poisoned.
  manager.allocate({.group_id = GroupId(2), .seq_id = SeqId(2), .num_tokens = 4});
  manager.swap_out(GroupId(2), moves.swap_out);
  ASSERT_EQ(moves.swap_out.size(), 1u);
  manager.take_freed_blocks(moves);
  EXPECT_EQ(moves.freed_host.size(), 1u);
  EXPECT_NE(moves.freed_host[0], moves.swap_out[0].dst);
}

// Mllama's four self-attention layers to one of cross-attention: a block holds four times the cross tokens.
TEST(BlockSpaceManager, SpecsFillBlocksWithTokensOfTheirOwn) {
  BlockSpaceManager::Options options = small_options();
  options.specs = {
      {TableOwner::kSequence}, {TableOwner::kGroup, 16}, {TableOwner::kSequence, 2}, {TableOwner::kItem, 3}};
  BlockSpaceManager manager(options);
  EXPECT_EQ(manager.num_blocks_for(TableOwner::kSequence, 5), 2 + 3);
  EXPECT_EQ(manager.num_full_sequence_blocks(5), 1 + 2);
  const Request request{.group_id = GroupId(1),
                        .seq_id = SeqId(1),
                        .num_tokens = 3,
                        .shared = {{.spec = 1, .num_tokens = 16}, {.spec = 3, .num_tokens = 4}}};
  ASSERT_TRUE(manager.allocate(request));
  EXPECT_EQ(manager.get_block_table(SeqId(1), 0).size(), 1u);
  EXPECT_EQ(manager.get_block_table(SeqId(1), 1).size(), 2u);
  EXPECT_EQ(manager.get_shared_table(GroupId(1), 0).size(), 1u);
  EXPECT_EQ(manager.get_shared_table(GroupId(1), 1).size(), 2u);
  const BlockSpaceManager::Usage usage = manager.device_usage();
  EXPECT_EQ(usage.self, 3);
  EXPECT_EQ(usage.cross, 1);
  EXPECT_EQ(usage.items, 2);
  // Two tokens more: the first spec begins a block, the second has one slot left and begins one.
  std::vector<BlockCopy> copies;
  const BlockSpaceManager::SlotRequest two{SeqId(1), 2};
  ASSERT_TRUE(manager.can_append_slots({&two, 1}));
  manager.append_slots(SeqId(1), 2, copies);
  EXPECT_EQ(manager.get_num_free_device_blocks(), 0);
  const BlockSpaceManager::SlotRequest one{SeqId(1), 1}, more{SeqId(1), 2};
  EXPECT_TRUE(manager.can_append_slots({&one, 1}));
  EXPECT_FALSE(manager.can_append_slots({&more, 1}));
  // Rows that the prompt has used are given up alone.
  manager.free_shared(GroupId(1), 1);
  EXPECT_TRUE(manager.get_shared_table(GroupId(1), 1).empty());
  EXPECT_EQ(manager.get_shared_table(GroupId(1), 0).size(), 1u);
  EXPECT_TRUE(manager.can_append_slots({&more, 1}));
  EXPECT_TRUE(manager.check_invariants().ok()) << manager.check_invariants();
}

// A digest may have a table of each spec: an image whose rows are spliced and whose K and V are kept.
TEST(BlockSpaceManager, OneInputHasATableOfEachSpec) {
  BlockSpaceManager::Options options = small_options();
  options.specs.push_back({TableOwner::kItem, 2});
  options.share_identical_inputs = true;
  BlockSpaceManager manager(options);
  const ContentDigest hash = testing::digest_of(1);
  Request request{
      .group_id = GroupId(1),
      .seq_id = SeqId(1),
      .num_tokens = 1,
      .shared = {{.spec = 1, .num_tokens = 4, .digest = hash}, {.spec = 2, .num_tokens = 4, .digest = hash}}};
  ASSERT_TRUE(manager.allocate(request));
  manager.begin_write(GroupId(1), 0);
  manager.finish_writes();
  manager.free_shared(GroupId(1), 1);  // the rows were used
  request.group_id = GroupId(2);
  request.seq_id = SeqId(2);
  EXPECT_TRUE(manager.shares(request, 0));
  EXPECT_FALSE(manager.shares(request, 1));
  EXPECT_FALSE(manager.shares_all(request));
  ASSERT_TRUE(manager.allocate(request)) << "the rows are new";
  EXPECT_TRUE(manager.needs_write(GroupId(2)));
  EXPECT_EQ(manager.get_shared_table(GroupId(1), 0).data(), manager.get_shared_table(GroupId(2), 0).data());
  EXPECT_EQ(manager.get_shared_table(GroupId(2), 1).size(), 2u);
  EXPECT_TRUE(manager.check_invariants().ok()) << manager.check_invariants();
}

// One order for tables of all specs: whatever has been idle longest goes first.
TEST(BlockSpaceManager, TheLongestIdleTableIsEvictedFirstOfWhateverSpec) {
  BlockSpaceManager::Options options = small_options();
  options.specs.push_back({TableOwner::kItem, 4});
  BlockSpaceManager manager(options);
  for (const uint64_t i : {1, 2, 3}) {
    manager.pin(testing::digest_of(i));
    manager.allocate({.group_id = GroupId(i),
                      .seq_id = SeqId(i),
                      .shared = {{.spec = i == 2 ? 2 : 1, .num_tokens = 8, .digest = testing::digest_of(i)}}});
    manager.begin_write(GroupId(i), 0);
    manager.finish_writes();
  }
  for (const uint64_t i : {2, 3, 1}) {  // this order of ending
    manager.free(SeqId(i));
    manager.free_shared(GroupId(i));
  }
  EXPECT_EQ(manager.device_usage().pinned, 6);
  const auto is_there = [&](uint64_t i) {
    return manager.shares({.group_id = GroupId(9),
                           .seq_id = SeqId(9),
                           .shared = {{.spec = i == 2 ? 2 : 1, .num_tokens = 8, .digest = testing::digest_of(i)}}},
                          0);
  };
  manager.allocate({.group_id = GroupId(4), .seq_id = SeqId(4), .num_tokens = 12});
  EXPECT_TRUE(is_there(1) && !is_there(2) && is_there(3));
  manager.allocate({.group_id = GroupId(5), .seq_id = SeqId(5), .num_tokens = 8});
  EXPECT_TRUE(is_there(1) && !is_there(3));
  EXPECT_TRUE(manager.check_invariants().ok()) << manager.check_invariants();
}

// A group whose table a reservation has stays on the device: rows that are about to be read by another do not move.
TEST(BlockSpaceManager, AReservedTableIsNotSwapped) {
  BlockSpaceManager::Options options = small_options();
  options.specs[1].owner = TableOwner::kItem;
  options.keep_unused_items = true;
  options.max_reserved_blocks = 2;
  BlockSpaceManager manager(options);
  const BlockSpaceManager::SharedRequest wanted{.num_tokens = 8, .digest = testing::digest_of(1)};
  const ReservationId id = manager.reserve(wanted);
  EXPECT_FALSE(manager.is_written(id));
  EXPECT_TRUE(manager.finish_reservation(id));
  EXPECT_TRUE(manager.finish_reservation(id)) << "told twice";
  EXPECT_TRUE(manager.is_written(id));
  manager.allocate({.group_id = GroupId(1), .seq_id = SeqId(1), .num_tokens = 4, .shared = {wanted}});
  EXPECT_EQ(manager.get_reserved_table(id).data(), manager.get_shared_table(GroupId(1)).data());
  EXPECT_EQ(manager.device_usage().items, 2);
  EXPECT_FALSE(manager.can_swap_out(GroupId(1)));
  manager.free(id);
  EXPECT_FALSE(manager.has_reservation(id));
  EXPECT_FALSE(manager.is_written(id));
  EXPECT_TRUE(manager.get_reserved_table(id).empty());
  EXPECT_TRUE(manager.can_swap_out(GroupId(1)));
  std::vector<BlockCopy> moves;
  manager.swap_out(GroupId(1), moves);
  EXPECT_EQ(manager.find_written(*wanted.digest, 1), 0) << "a table on the host is not found";
  EXPECT_EQ(manager.can_swap_in(GroupId(1)), AllocStatus::kOk);
  EXPECT_TRUE(manager.check_invariants().ok()) << manager.check_invariants();
}

// What reservations may take is no room to come back to.
// What is received into a block must not be poisoned as what it held before.
TEST(BlockSpaceManager, ReservedBlocksAreNotReportedAsFreed) {
  BlockSpaceManager::Options options;
  options.block_size = 1;
  options.specs = {{TableOwner::kSequence}, {TableOwner::kItem}};
  options.num_device_blocks = 4;
  options.watermark = 0;
  options.keep_unused_items = true;
  options.max_reserved_blocks = 2;
  options.track_freed_blocks = true;
  BlockSpaceManager blocks(options);
  blocks.allocate({.group_id = GroupId(1), .seq_id = SeqId(1), .num_tokens = 4, .max_tokens = 4});
  blocks.free(SeqId(1));
  blocks.free_shared(GroupId(1));
  ContentDigest digest;
  digest.bytes[0] = std::byte{1};
  const ReservationId id = blocks.reserve({.spec = 1, .num_tokens = 2, .digest = digest});
  const std::span<const BlockId> reserved = blocks.get_reserved_table(id);
  BlockMoves moves;
  blocks.take_freed_blocks(moves);
  EXPECT_EQ(moves.freed_device.size(), 2u);
  for (const BlockId block : moves.freed_device) EXPECT_EQ(std::ranges::count(reserved, block), 0);
}

TEST(BlockSpaceManager, AGroupIsSwappedInWithoutTheReservedBlocks) {
  BlockSpaceManager::Options options = small_options();
  options.specs[1].owner = TableOwner::kItem;
  options.keep_unused_items = true;
  options.max_reserved_blocks = 3;
  BlockSpaceManager manager(options);
  for (const uint64_t i : {1, 2}) {  // of 4 and 5 blocks, and one more for its table
    manager.allocate({.group_id = GroupId(i), .seq_id = SeqId(i), .num_tokens = 16});
    std::vector<BlockCopy> moves;
    if (i == 2) manager.append_slots(SeqId(2), 1, moves);
    manager.swap_out(GroupId(i), moves);
    EXPECT_EQ(manager.can_swap_in(GroupId(i)), i == 1 ? AllocStatus::kOk : AllocStatus::kNever);
    manager.free(SeqId(i));
  }
}

TEST(BlockSpaceManagerDeathTest, CatchesMisuse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  BlockSpaceManager manager(small_options());
  manager.allocate({.group_id = GroupId(1), .seq_id = SeqId(1), .num_tokens = 4});
  std::vector<BlockCopy> moves;
  EXPECT_DEATH(manager.allocate({.group_id = GroupId(1), .seq_id = SeqId(2), .num_tokens = 4}), "has tables already");
  EXPECT_DEATH(manager.allocate({.group_id = GroupId(2), .seq_id = SeqId(1), .num_tokens = 4}), "has a table already");
  EXPECT_DEATH(manager.allocate({.group_id = GroupId(2), .seq_id = SeqId(2), .num_tokens = 40}), "can_allocate");
  EXPECT_DEATH(manager.append_slots(SeqId(9), 1, moves), "sequence 9 has no table");
  EXPECT_DEATH(manager.truncate(SeqId(1), 5), "truncate to 5 of 4");
  EXPECT_DEATH(manager.swap_in(GroupId(1), moves), "kHost");
  EXPECT_DEATH(manager.begin_write(GroupId(1), 0), "group 1: a shared table is written once");
  EXPECT_DEATH(manager.reserve({.num_tokens = 4, .digest = testing::digest_of(1)}), "found by its digest");
  EXPECT_DEATH(manager.finish_reservation(ReservationId(9)), "reservation 9 has no table");
  manager.swap_out(GroupId(1), moves);
  EXPECT_DEATH(manager.append_slots(SeqId(1), 1, moves), "a swapped sequence cannot grow");
}

}  // namespace
}  // namespace transept
