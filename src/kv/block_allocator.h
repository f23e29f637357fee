// One pool of blocks: a free list and a reference count a block. It does not know what refers to a block.
//
// Not thread-safe (engine thread). Misuse (releasing a free block, allocating from an empty pool) is a CHECK.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "kv/block.h"

namespace transept {

class BlockAllocator final {
 public:
  // Blocks 0 .. num_blocks - 1, all free. With a seed they come in a shuffled order, so that a table that is wrong
  // cannot be right by accident.
  explicit BlockAllocator(int32_t num_blocks, std::optional<uint64_t> shuffle_seed = std::nullopt);

  // A block with one reference. REQUIRES: num_free() > 0.
  BlockId allocate();
  // REQUIRES: the block is in use.
  void add_reference(BlockId block);
  // True: that was the last reference, and the block is free again. REQUIRES: the block is in use (freeing a block
  // twice is a bug of the caller, and is caught here).
  bool release(BlockId block);
  // Everything is free again, in the order of the start.
  void reset();

  int32_t num_references(BlockId block) const;  // 0: free
  int32_t num_free() const { return static_cast<int32_t>(free_.size()); }
  int32_t num_total() const { return static_cast<int32_t>(num_references_.size()); }

  // Free list and counts agree, and each block's count is expected_references[block].
  Status check_invariants(std::span<const int32_t> expected_references) const;

 private:
  std::optional<uint64_t> shuffle_seed_;
  std::vector<int32_t> num_references_;
  std::vector<BlockId> free_;  // a stack: what was freed last is given out first, it is the warmest
};

}  // namespace transept
