// Blocks: the unit of KV allocation, and the block moves of a step. Values.
#pragma once

#include <cstdint>
#include <vector>

namespace transept {

// A block: slots (tokens) of all layers of one spec, as many as the spec says (kv/table_spec.h). Ids count from 0
// within a pool.
using BlockId = int32_t;

// The blocks of a sequence (self), a group's encoder input (cross) or an item, of one spec, in order of positions.
using BlockTable = std::vector<BlockId>;

enum class MemoryPool : uint8_t { kDevice, kHost };

struct BlockCopy {
  BlockId src = 0;
  BlockId dst = 0;
  bool operator==(const BlockCopy&) const = default;
};

// Slots [begin, end) of a block of a sequence's spec (an index of BlockSpaceManager::Options::specs).
struct SlotRange {
  int32_t spec = 0;
  BlockId block = 0;
  int32_t begin = 0;
  int32_t end = 0;
  bool operator==(const SlotRange&) const = default;
};

// The moves before a step computes. KvStorage::apply executes the lists in this order, so one plan may free a block and
// allocate it to another table.
struct BlockMoves {
  std::vector<BlockCopy> swap_out;    // device -> host
  std::vector<BlockId> freed_device;  // poisoned; empty without BlockSpaceManager::Options::track_freed_blocks
  std::vector<BlockCopy> swap_in;     // host -> device
  std::vector<BlockId> freed_host;    // as freed_device, but only blocks that are still free
  std::vector<BlockCopy> copy;        // device -> device: copy-on-write
  // Slots whose tokens were taken back (rejected drafts), in blocks that their sequence keeps: poisoned. Empty without
  // track_freed_blocks. Only a device's attention backend knows where a slot's bytes lie, so KvStorage leaves this one
  // to its owner.
  std::vector<SlotRange> truncated;

  void clear() {
    swap_out.clear();
    freed_device.clear();
    swap_in.clear();
    freed_host.clear();
    copy.clear();
    truncated.clear();
  }
  bool operator==(const BlockMoves&) const = default;
};

}  // namespace transept
