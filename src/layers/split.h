// How ranks divide the matrix of a layer among them. Values and pure functions: thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/checked_math.h"
#include "base/strings.h"
#include "weights/matrix_source.h"

namespace transept {

// A sum over ranks has a tree for 1, 2, 4 and 8 of them (comm/reduce.h).
inline constexpr int32_t kMostRanks = 8;

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

// "1, 2 or 4": the numbers of ranks that `size` heads, leaves or the like can be divided among, which are those that
// divide it and that sums have a tree for.
inline std::string possible_ranks(int64_t size) {
  std::string text;
  for (int64_t count = 1; count <= kMostRanks && size % count == 0; count *= 2) {
    const bool is_last = count == kMostRanks || size % (2 * count) != 0;
    text += str_cat(count == 1 ? "" : is_last ? " or " : ", ", count);
  }
  return text;
}

// Whether that many ranks can divide `size` heads, leaves or the like. False: *why says what they are.
inline bool divides(const Ranks& ranks, int64_t size, std::string_view what, std::string* why) {
  const bool has_tree = ranks.count <= kMostRanks && (ranks.count & (ranks.count - 1)) == 0;
  if (has_tree && size % ranks.count == 0) return true;
  *why = str_cat(size, " ", what, ": --tensor-parallel-size ", possible_ranks(size));
  return false;
}

// The part of `size` rows or columns that this rank has. `unit` of them (a head's, a piece's) stay on one rank; the
// units are divided as evenly as they can be, in order. The last unit may be short; with fewer units than ranks some
// ranks have nothing. REQUIRES: size >= 0, unit >= 1.
inline IndexRange share_of(int64_t size, int64_t unit, const Ranks& ranks) {
  const int64_t units = ceil_div(size, unit);
  const auto border = [&](int64_t rank) { return std::min(size, units * rank / ranks.count * unit); };
  return {border(ranks.rank), border(int64_t{ranks.rank} + 1)};
}

// Of a table [rows, columns] the columns that this rank has, side by side: those of its heads.
inline std::vector<float> columns_of_rank(std::span<const float> table, int64_t columns, const Ranks& ranks) {
  const IndexRange own = share_of(columns, 1, ranks);
  std::vector<float> kept;
  kept.reserve(table.size());
  for (int64_t row = 0; row < std::ssize(table); row += columns) {
    kept.insert(kept.end(), table.begin() + row + own.begin, table.begin() + row + own.end);
  }
  return kept;
}

}  // namespace transept
