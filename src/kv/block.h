// Blocks: the unit in which KV memory is given out, and what a step asks to have done to them. Values.
#pragma once

#include <cstdint>
#include <vector>

namespace transept {

// A block of block_size slots (tokens), all layers of one table. Counted from 0 within its pool.
using BlockId = int32_t;

// The blocks of a sequence (self) or of a group's encoder input (cross), in the order of their tokens.
using BlockTable = std::vector<BlockId>;

enum class MemoryPool : uint8_t { kDevice, kHost };

struct BlockCopy {
  BlockId src = 0;
  BlockId dst = 0;
  bool operator==(const BlockCopy&) const = default;
};

// What happens to blocks before a step computes, in this order (KvStorage::apply): the order makes it right that one
// plan frees a block and gives it to another table.
struct BlockMoves {
  std::vector<BlockCopy> swap_out;    // device -> host
  std::vector<BlockId> freed_device;  // to be poisoned; filled with Options::track_freed_blocks only
  std::vector<BlockCopy> swap_in;     // host -> device
  std::vector<BlockId> freed_host;    // as freed_device, but only those that are still free
  std::vector<BlockCopy> copy;        // device -> device: copy-on-write

  void clear() {
    swap_out.clear();
    freed_device.clear();
    swap_in.clear();
    freed_host.clear();
    copy.clear();
  }
  bool operator==(const BlockMoves&) const = default;
};

}  // namespace transept
