// One pool of blocks: a free list, and a reference count per block. It does not know the owners of the references.
//
// Owned by the BlockSpaceManager. Not thread-safe (engine thread). Misuse (releasing a free block, allocating from an
// empty pool) is a CHECK.
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
  // Blocks 0 .. num_blocks - 1, all free. A seed shuffles the order of allocation, so that a wrong table cannot be
  // right by accident.
  explicit BlockAllocator(int32_t num_blocks, std::optional<uint64_t> shuffle_seed = std::nullopt);

  // Returns a block with one reference. REQUIRES: num_free() > 0.
  BlockId allocate();
  // REQUIRES: the block is in use.
  void add_reference(BlockId block);
  // Drops a reference. Returns true if it was the last one: the block is free again. REQUIRES: the block is in use.
  bool release(BlockId block);
  // Drops a block's only reference without freeing it: it is kept, neither free nor in use. REQUIRES: it has one.
  void keep(BlockId block);
  // Gives a kept block a reference again, or frees it. REQUIRES: it is kept.
  void revive(BlockId block);
  void free_kept(BlockId block);
  // Frees all blocks and restores the initial order.
  void reset();

  int32_t num_references(BlockId block) const;  // 0: free or kept
  int32_t num_free() const { return static_cast<int32_t>(free_.size()); }
  int32_t num_total() const { return static_cast<int32_t>(num_references_.size()); }

  // Checks that the free list has exactly the blocks that are neither in use nor kept, and that each block's count is
  // expected_references[block].
  // Errors: kInternal, naming the block. REQUIRES: expected_references.size() == num_total().
  Status check_invariants(std::span<const int32_t> expected_references) const;

 private:
  static constexpr int32_t kKept = -1;

  std::optional<uint64_t> shuffle_seed_;
  std::vector<int32_t> num_references_;  // or kKept
  std::vector<BlockId> free_;  // a stack: the block freed last is allocated first, as it is warmest in the caches
};

}  // namespace transept
