// How ranks divide the matrix of a layer among them. Values and pure functions: thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/checked_math.h"
#include "weights/matrix_source.h"

namespace transept {

// The ranks that hold one model together, and which of them this is.
struct Ranks {
  int32_t rank = 0;  // below count
  int32_t count = 1;
};

enum class Split : uint8_t {
  kNone,     // every rank has the whole matrix
  kOutputs,  // each rank computes some outputs: the ranks' results side by side are the whole's, to the bit
  kInputs,   // each rank multiplies some inputs: the ranks' results add up to the whole's
};

// The part of `size` rows or columns that this rank has. `unit` of them (a head's, a piece's) stay on one rank; the
// units are divided as evenly as they can be, in order. The last unit may be short; with fewer units than ranks some
// ranks have nothing. REQUIRES: size >= 0, unit >= 1.
inline IndexRange share_of(int64_t size, int64_t unit, const Ranks& ranks) {
  const int64_t units = ceil_div(size, unit);
  const auto border = [&](int64_t rank) { return std::min(size, units * rank / ranks.count * unit); };
  return {border(ranks.rank), border(int64_t{ranks.rank} + 1)};
}

}  // namespace transept
