// Brings what ranks have found of a few rows to the first of them, which chooses. A function without state: one thread
// calls it.
#pragma once

#include <cstddef>
#include <span>

#include "base/communicator.h"
#include "base/function_ref.h"
#include "weights/matrix_source.h"

namespace transept {

// Each rank has some bytes of every row, side by side in the order of ranks: `bytes_of(rank)`, the same on all ranks.
// rows[i]: the first byte of a whole row, in which a rank has filled its own. Fills those of the others on rank 0;
// other ranks' rows stay as they are. As many bytes at a time as an exchange takes. Errors: the communicator's; rows
// are undefined then.
Status gather_columns(Communicator& ranks, std::span<std::byte* const> rows, FunctionRef<IndexRange(int)> bytes_of);

}  // namespace transept
