// For tests: what lies in the blocks of both pools, a word a slot.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kv/block.h"

namespace transept::testing {

// What lies in the blocks, written as the engine would write it: a wrong table, a missing copy or a premature reuse
// shows as a wrong content.
class Contents final {
 public:
  // block_size: slots that there is room for in a block, of the spec with the most.
  Contents(int32_t num_device, int32_t num_host, int32_t block_size)
      : block_size_(block_size), device_(slots(num_device)), host_(slots(num_host)) {}

  void apply(const BlockMoves& moves) {
    transfer(device_, host_, moves.swap_out);
    poison(device_, moves.freed_device);
    transfer(host_, device_, moves.swap_in);
    poison(host_, moves.freed_host);
    transfer(device_, device_, moves.copy);
  }
  // per_block: tokens of a block of this table; salt: what tells its contents from another spec's of the same tokens.
  struct Table {
    std::span<const BlockId> blocks;
    int32_t per_block;
    uint64_t salt;
  };
  void write(const Table& table, int32_t begin, const std::vector<uint64_t>& tokens) {
    for (size_t i = static_cast<size_t>(begin); i < tokens.size(); ++i) at(device_, table, i) = tokens[i] ^ table.salt;
  }
  bool holds(MemoryPool pool, const Table& table, const std::vector<uint64_t>& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (at(pool == MemoryPool::kDevice ? device_ : host_, table, i) != (tokens[i] ^ table.salt)) return false;
    }
    return true;
  }

 private:
  static constexpr uint64_t kPoison = ~uint64_t{0};
  std::vector<uint64_t> slots(int32_t blocks) const {
    return std::vector<uint64_t>(size_t(blocks) * size_t(block_size_));
  }
  uint64_t& at(std::vector<uint64_t>& pool, const Table& table, size_t i) const {
    const size_t size = static_cast<size_t>(table.per_block);
    return pool.at(static_cast<size_t>(table.blocks[i / size]) * static_cast<size_t>(block_size_) + i % size);
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

}  // namespace transept::testing
