// Fewer kernels for the same ops: before recorded ops are submitted, neighbours become one kernel. A product and the op
// behind it that takes its rows (kernels/tail.glsl): a norm of y, a gated activation of its columns, or the writing of
// keys and values of them. Attention, the product of what it gives, and a norm of that (kernels/attention.comp). Behind
// any of these but the last the rounding of what it gives, for the next product of int8 weights (kernels/round.glsl).
// All that they write is written, with the same bits. Pure.
//
// Models, layers and what is compared to find a recording again (recording/kept_recordings.h) do not know of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "recording/recording.h"

namespace transept {

// Memory of fused kernels alone, and what the device allows.
struct FusionRoom {
  BufferRange arrivals;       // words that are 0: a kernel takes one for each tile of rows or row, and leaves it 0
  BufferRange sums;           // attention's product: of each row, and of each 64 inputs, the outputs
  uint32_t max_operands = 0;  // of the device's kernels
};

// Returns `ops` with some of them fused, each where the first of them was. They are fused only if what the later ones
// write is nothing that the first still reads.
std::vector<RecordedOp> fuse_ops(std::span<const RecordedOp> ops, const FusionRoom& room);

}  // namespace transept
