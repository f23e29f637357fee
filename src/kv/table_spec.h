// What kinds of tables a model's KV needs. A value.
#pragma once

#include <cstddef>
#include <cstdint>

namespace transept {

// Who a table belongs to.
enum class TableOwner : uint8_t {
  kSequence,  // one for each sequence: grows, forks with copy-on-write (self-attention)
  kGroup,     // one for each encoder input of a group, read by every decoder step (cross-attention)
  kItem,      // one for each item of a group's input, until its rows were used (encoder rows)
};

inline constexpr size_t kNumTableOwners = 3;

// One kind of table over the one pool of blocks.
struct TableSpec {
  TableOwner owner = TableOwner::kSequence;
  // Slots of a block. It differs by spec, because a slot's bytes do: blocks are of one size. 0: the pool's block_size.
  int32_t tokens_per_block = 0;
};

}  // namespace transept
