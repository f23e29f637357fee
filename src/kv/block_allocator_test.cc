#include "kv/block_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace transept {
namespace {

std::vector<BlockId> take_all(BlockAllocator& allocator) {
  std::vector<BlockId> blocks;
  while (allocator.num_free() > 0) blocks.push_back(allocator.allocate());
  return blocks;
}

TEST(BlockAllocator, GivesEveryBlockOnce) {
  BlockAllocator allocator(5);
  EXPECT_EQ(take_all(allocator), (std::vector<BlockId>{0, 1, 2, 3, 4}));
  EXPECT_EQ(allocator.num_free(), 0);
  EXPECT_EQ(allocator.num_total(), 5);
}

TEST(BlockAllocator, CountsReferences) {
  BlockAllocator allocator(2);
  const BlockId block = allocator.allocate();
  allocator.add_reference(block);
  EXPECT_EQ(allocator.num_references(block), 2);
  EXPECT_FALSE(allocator.release(block));
  EXPECT_EQ(allocator.num_free(), 1);
  EXPECT_TRUE(allocator.release(block));
  EXPECT_EQ(allocator.num_free(), 2);
  EXPECT_EQ(allocator.num_references(block), 0);
}

TEST(BlockAllocator, ShuffledOrderIsAPermutationFixedByTheSeed) {
  BlockAllocator a(100, 7), b(100, 7), c(100, 8);
  const std::vector<BlockId> first = take_all(a);
  EXPECT_EQ(first, take_all(b));
  EXPECT_NE(first, take_all(c));
  std::vector<BlockId> sorted = first;
  std::sort(sorted.begin(), sorted.end());
  std::vector<BlockId> all(100);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted, all);
  EXPECT_NE(first, all);
  a.reset();
  EXPECT_EQ(first, take_all(a));
}

TEST(BlockAllocator, ChecksWhatTablesHold) {
  BlockAllocator allocator(3);
  const BlockId block = allocator.allocate();
  std::vector<int32_t> counts(3);
  EXPECT_FALSE(allocator.check_invariants(counts).ok());
  counts[static_cast<size_t>(block)] = 1;
  EXPECT_TRUE(allocator.check_invariants(counts).ok());
  counts[static_cast<size_t>(block)] = 2;
  EXPECT_FALSE(allocator.check_invariants(counts).ok());
}

TEST(BlockAllocatorDeathTest, CatchesMisuse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  BlockAllocator allocator(1);
  const BlockId block = allocator.allocate();
  EXPECT_DEATH(allocator.allocate(), "no free block");
  allocator.release(block);
  EXPECT_DEATH(allocator.release(block), "freed twice");
  EXPECT_DEATH(allocator.add_reference(block), "is free");
  EXPECT_DEATH(allocator.num_references(1), "block 1 of 1");
}

}  // namespace
}  // namespace transept
