#include "kv/block_allocator.h"

#include <algorithm>
#include <random>
#include <utility>

#include "base/check.h"

namespace transept {

BlockAllocator::BlockAllocator(int32_t num_blocks, std::optional<uint64_t> shuffle_seed) : shuffle_seed_(shuffle_seed) {
  CHECK(num_blocks >= 0);
  num_references_.resize(static_cast<size_t>(num_blocks));
  free_.reserve(static_cast<size_t>(num_blocks));
  reset();
}

void BlockAllocator::reset() {
  std::fill(num_references_.begin(), num_references_.end(), 0);
  free_.clear();
  for (int32_t block = num_total() - 1; block >= 0; --block) free_.push_back(block);
  if (!shuffle_seed_) return;
  std::mt19937_64 random(*shuffle_seed_);
  for (size_t i = free_.size(); i > 1; --i) std::swap(free_[i - 1], free_[random() % i]);
}

BlockId BlockAllocator::allocate() {
  CHECK(!free_.empty(), "no free block among ", num_total());
  const BlockId block = free_.back();
  free_.pop_back();
  num_references_[static_cast<size_t>(block)] = 1;
  return block;
}

void BlockAllocator::add_reference(BlockId block) {
  CHECK(num_references(block) > 0, "block ", block, " is free");
  ++num_references_[static_cast<size_t>(block)];
}

bool BlockAllocator::release(BlockId block) {
  CHECK(num_references(block) > 0, "block ", block, " is freed twice");
  if (--num_references_[static_cast<size_t>(block)] > 0) return false;
  free_.push_back(block);
  return true;
}

void BlockAllocator::keep(BlockId block) {
  CHECK(num_references(block) == 1, "block ", block, " is kept with ", num_references(block), " references");
  num_references_[static_cast<size_t>(block)] = kKept;
}

void BlockAllocator::revive(BlockId block) {
  CHECK(num_references_.at(static_cast<size_t>(block)) == kKept, "block ", block, " is not kept");
  num_references_[static_cast<size_t>(block)] = 1;
}

void BlockAllocator::free_kept(BlockId block) {
  revive(block);
  release(block);
}

int32_t BlockAllocator::num_references(BlockId block) const {
  CHECK(block >= 0 && block < num_total(), "block ", block, " of ", num_total());
  return std::max(num_references_[static_cast<size_t>(block)], 0);
}

Status BlockAllocator::check_invariants(std::span<const int32_t> expected_references) const {
  CHECK(expected_references.size() == num_references_.size());
  std::vector<bool> is_free(num_references_.size(), false);
  for (const BlockId block : free_) {
    if (is_free[static_cast<size_t>(block)]) return absl::InternalError(str_cat("block ", block, " is free twice"));
    is_free[static_cast<size_t>(block)] = true;
  }
  for (size_t block = 0; block < num_references_.size(); ++block) {
    const bool is_kept = num_references_[block] == kKept;
    const int32_t count = is_kept ? 0 : num_references_[block];
    if (count != expected_references[block]) {
      return absl::InternalError(
          str_cat("block ", block, " counts ", count, " references, tables hold ", expected_references[block]));
    }
    if ((count == 0 && !is_kept) != is_free[block]) {
      return absl::InternalError(str_cat("block ", block, " with ", count, " references: free list disagrees"));
    }
  }
  return ok_status();
}

}  // namespace transept
