// What a product of int8 weights must know of a whole row of x before it rounds the row. A value.
//
// A product finds them by itself. They are given to it (GemmInput) where it sees only some of the row's inputs: ranks
// that divide the inputs merge theirs, and each rounds its part as one product of the whole row would.
//
// Included by kernels: obeys the rule of ops/kernels.h.
#pragma once

namespace transept {

struct RowStatistics {
  float low, high;  // the least and the largest entry, 0 included: low <= 0 <= high
  float strange;    // 0, or NaN where an entry is not finite
  float squares;    // the sum of the squares
  float count;      // of entries other than 0
};

// Of a row that consists of both parts. All but `squares` are those of the whole row to the bit; squares are a sum of
// float32, whose last bits depend on where the row is divided.
static inline RowStatistics merged(const RowStatistics& a, const RowStatistics& b) {
  return {a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high, a.strange + b.strange,
          a.squares + b.squares, a.count + b.count};
}

}  // namespace transept
